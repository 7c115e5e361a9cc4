//! Costly handoff: workers with a CPU each queue for a lock whose way from one to the next takes longer than what they
//! do with it.
//!
//! A lock that serves by arrival (`ticket`, `mcs`, `clh`) makes every release a handoff as soon as somebody waits. Its
//! lines, and those of what it protects, then go to another core for each critical section; a short section is over
//! sooner than that. No convoy: nobody sleeps, and the queue is as long as the demand.
//!
//! # References
//! J. Mellor-Crummey, M. Scott, *Algorithms for Scalable Synchronization on Shared-Memory Multiprocessors*, ACM TOCS
//! 9(1), 1991; T. David, R. Guerraoui, V. Trigonakis, *Everything You Always Wanted to Know About Synchronization but
//! Were Afraid to Ask*, SOSP 2013.

use super::locks::{self, Finding, Site};
use super::queue::Queue;
use crate::view::View;
use crate::words::{figure, percent};
use record::{ArmSummary, Diagnosis};

pub(super) fn find(view: &View, arms: &[ArmSummary]) -> Option<(f64, Diagnosis)> {
    let sites = locks::sites(view, arms);
    // Where workers share a CPU a spinner waits for the scheduler: that is the rule on oversubscription.
    let awake = |queue: &Queue| !queue.sleeps() && !queue.site.program.shares_cpu;
    let queues = sites.iter().filter_map(|site| Queue::of(view, site));
    let found = queues.filter(awake).map(|queue| told(view, &sites, queue));
    locks::report("costly_handoff", found.collect())
}

fn told<'a>(view: &View<'a>, sites: &[Site<'a>], queue: Queue<'a>) -> Finding<'a> {
    let (name, lock, kind) = (queue.site.name(), &queue.site.lock.lock, &queue.site.lock.kind);
    let ordered = match queue.site.kind().is_some_and(|kind| kind.serves_by_arrival()) {
        true => ": it serves by arrival, so each release hands it over as soon as somebody waits",
        false => "",
    };
    let text = format!(
        "In `{name}`, `{lock}` ({kind}) goes to another worker at {} of its acquisitions{ordered}. Handing it over takes \
         longer than using it: it is held only {} of the time, and a wait takes {} ns on average where a hold takes {}.",
        percent(queue.handoffs),
        percent(queue.held),
        figure(queue.wait.mean),
        figure(queue.hold.mean)
    );
    queue.told(view, sites, text, |shown| {
        format!(
            "Do more in each critical section and enter it less often, so that a handoff is paid for more work; or take a \
             kind that lets the last owner, in whose cache the lines are, take it again{shown}. That is less even: compare \
             longest run and longest gap, and keep a fair lock where nobody may be passed over."
        )
    })
}

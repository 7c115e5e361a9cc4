//! Convoy: everybody sleeps in a queue for a lock that is hardly held; what takes the time is waking the next one.
//!
//! Blasgen and others saw it in System R: an owner is interrupted, the others queue behind it, and when it goes on the
//! queue does not dissolve. Each release leaves the lock to a sleeper, and before that has been woken the one that
//! released it is back and queues again. A lock that had seldom been found held is from then on out of use for as long
//! as it takes to wake somebody, once for each section. Waiters that spin with a CPU each form no convoy, however long
//! the queue: see the rule on costly handoffs.
//!
//! # References
//! M. Blasgen, J. Gray, M. Mitoma, T. Price, *The Convoy Phenomenon*, ACM SIGOPS Operating Systems Review 13(2), 1979.

use super::locks::{self, Finding, Site};
use super::queue::Queue;
use crate::view::View;
use crate::words::{figure, percent};
use record::{ArmSummary, Diagnosis};

/// So many times as long as the holds of all others, one after the other, is the mean wait: a fair queue behind a busy
/// lock waits once for each of them, and the rest is waking.
const WAITS_OVER_HOLDS: f64 = 3.0;

pub(super) fn find(view: &View, arms: &[ArmSummary]) -> Option<(f64, Diagnosis)> {
    let sites = locks::sites(view, arms);
    let queues = sites.iter().filter_map(|site| Queue::of(view, site));
    let long = |queue: &Queue| queue.wait.mean >= WAITS_OVER_HOLDS * queue.hold.mean * (queue.site.workers() - 1.0);
    let found = queues.filter(|queue| queue.sleeps() && long(queue)).map(|queue| told(view, &sites, queue));
    locks::report("convoy", found.collect())
}

fn told<'a>(view: &View<'a>, sites: &[Site<'a>], queue: Queue<'a>) -> Finding<'a> {
    let (name, lock, kind) = (queue.site.name(), &queue.site.lock.lock, &queue.site.lock.kind);
    let text = format!(
        "In `{name}`, {} of the acquisitions of `{lock}` ({kind}) wait although it is held only {} of the time, and {} of \
         all go to another worker: a wait takes {} ns on average where a hold takes {}. Most of a wait is being woken, and by \
         then the others wait again, so the queue does not dissolve.",
        percent(queue.contended),
        percent(queue.held),
        percent(queue.handoffs),
        figure(queue.wait.mean),
        figure(queue.hold.mean)
    );
    queue.told(view, sites, text, |shown| {
        format!(
            "Keep waiters awake or let whoever runs take the lock{shown}: a kind that tries for a while before it sleeps \
             (`pthread-adaptive`) or spins where each worker has a CPU (`ttas`), and none that hands the lock to a sleeper \
             (`pthread-pi`); or do more in each critical section and enter it less often."
        )
    })
}

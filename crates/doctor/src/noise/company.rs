//! Who else runs on the CPUs in question.

use super::sample::Sample;
use crate::patient::labelled;
use crate::{Finding, Patient, Spoils};
use host::Ran;
use plan::CpuId;
use std::collections::BTreeSet;

/// Share of a CPU taken by others from which on a run there is spoiled: a fifth of its slices are lost, and the rest
/// are measured on caches that others have filled.
const TOO_MUCH: f64 = 0.2;
/// Share of a CPU in which something ran that no thread accounts for, from which on it is told. The kernel's books are
/// kept by the tick: over ten ticks, two or three are an accident.
const UNSEEN: f64 = 0.4;

/// Share below which nothing is told of a process: it would be called 0 %.
const TOLD: f64 = 0.005;
/// So many are named, busiest first.
const NAMED: usize = 2;

const WHY: &str = "who runs on a worker's CPU evicts it: those slices are lost, and the caches are cold afterwards";

/// Processes, then kernel threads.
pub(super) fn findings(patient: &Patient<'_>, sample: &Sample) -> Vec<Finding> {
    let Some(ran) = &sample.ran else {
        let silent = |name| Finding::missing(name, "this kernel or container does not show who ran", WHY);
        return vec![silent("other_processes"), silent("kernel_threads")];
    };
    let (kernel, others): (Vec<&Ran>, Vec<&Ran>) = ran.iter().partition(|ran| ran.kernel);
    vec![other_processes(patient, sample, &others, &kernel), kernel_threads(patient, &kernel)]
}

fn other_processes(patient: &Patient<'_>, sample: &Sample, others: &[&Ran], kernel: &[&Ran]) -> Finding {
    const NAME: &str = "other_processes";
    let loads = loads(patient, others);
    if let Some(Crowd { seen, cpus, by }) = crowded(&loads) {
        return Finding::warn(NAME, seen, WHY).cured_by(sent_away(patient, &by)).spoiling(Spoils::On(cpus));
    }
    let accounted = |cpu| share_on(others, cpu) + share_on(kernel, cpu);
    let unseen = |cpu: &CpuId| Some((*cpu, sample.busy(*cpu)? - accounted(*cpu))).filter(|(_, more)| *more >= UNSEEN);
    let unseen: Vec<(CpuId, f64)> = patient.cpus.iter().filter_map(unseen).collect();
    if let Some((cpu, more)) = unseen.iter().max_by(|a, b| a.1.total_cmp(&b.1)) {
        let why = format!("{WHY}; here it ended too soon to be named, or runs in another container");
        return Finding::warn(NAME, format!("CPU {cpu} {} busy with what /proc does not show", percent(*more)), why)
            .cured_by("look with `top` outside of this container; choose other CPUs with `--cpus`")
            .spoiling(Spoils::On(unseen.iter().map(|(cpu, _)| *cpu).collect()));
    }
    Finding::ok(NAME, quiet(&loads), WHY)
}

/// How to be rid of `by`, busiest first: by commands for every one of them, or in words where they are too many to be
/// named or this process may not give such orders.
fn sent_away(patient: &Patient<'_>, by: &[&Ran]) -> String {
    let pids: Vec<u32> = by.iter().map(|ran| ran.pid).collect::<BTreeSet<_>>().into_iter().collect();
    let each = |command: &str| pids.iter().map(|pid| format!("`{command} {pid}`")).collect::<Vec<_>>().join(" and ");
    let all = || pids.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    let may = |rule: fn(&host::Root, u32) -> bool| by.len() <= NAMED && pids.iter().all(|&pid| rule(patient.root, pid));
    let them = if pids.len() == 1 { "it" } else { "them" };
    match host::format_cpu_list(&patient.spare()) {
        spare if spare != "none" && may(host::may_move) => {
            format!("keep {them} off these CPUs: {}", each(&format!("taskset -apc {spare}")))
        }
        spare if spare != "none" => format!("let {them} finish (`top` shows whose they are), or use `--cpus {spare}`"),
        _ if may(host::may_signal) => {
            format!("let {them} finish, or `kill -STOP {}`, later `kill -CONT {}`", all(), all())
        }
        _ => format!("let {them} finish; `top` shows who runs, and for whom"),
    }
}

fn kernel_threads(patient: &Patient<'_>, kernel: &[&Ran]) -> Finding {
    const NAME: &str = "kernel_threads";
    let loads = loads(patient, kernel);
    match crowded(&loads) {
        None => Finding::ok(NAME, quiet(&loads), WHY),
        Some(Crowd { seen, cpus, .. }) => Finding::warn(NAME, seen, WHY)
            .cured_by(
                "its name says for whom it works: `ps -eLo tid,psr,pcpu,comm --ppid 2`; workqueues (kworker/u) move \
                 with `echo MASK | sudo tee /sys/devices/virtual/workqueue/cpumask`",
            )
            .spoiling(Spoils::On(cpus)),
    }
}

/// What some of those who ran take of one CPU in question.
struct Load<'a> {
    cpu: CpuId,
    share: f64,
    /// Busiest first.
    by: Vec<&'a Ran>,
}

/// Fullest CPU first.
fn loads<'a>(patient: &Patient<'_>, ran: &[&'a Ran]) -> Vec<Load<'a>> {
    let of = |cpu: &CpuId| Load {
        cpu: *cpu,
        share: share_on(ran, *cpu),
        by: ran.iter().copied().filter(|ran| ran.cpu == *cpu).collect(),
    };
    let mut loads: Vec<Load<'a>> = patient.cpus.iter().map(of).collect();
    loads.sort_by(|a, b| b.share.total_cmp(&a.share));
    loads
}

fn share_on(ran: &[&Ran], cpu: CpuId) -> f64 {
    ran.iter().filter(|ran| ran.cpu == cpu).map(|ran| ran.share).sum()
}

/// The CPUs of which too much is taken.
struct Crowd<'a> {
    /// Which, and by whom above all, in words.
    seen: String,
    cpus: Vec<CpuId>,
    /// All that take a share worth telling, busiest first.
    by: Vec<&'a Ran>,
}

fn crowded<'a>(loads: &[Load<'a>]) -> Option<Crowd<'a>> {
    let crowded: Vec<&Load<'_>> = loads.iter().filter(|load| load.share >= TOO_MUCH).collect();
    let cpus: Vec<CpuId> = crowded.iter().map(|load| load.cpu).collect();
    let mut by: Vec<&Ran> = crowded.iter().flat_map(|load| load.by.iter().copied()).collect();
    by.retain(|ran| ran.share >= TOLD);
    by.sort_by(|a, b| b.share.total_cmp(&a.share));
    let shown: Vec<String> = by.iter().take(NAMED).map(|ran| format!("{} {}", ran.name, percent(ran.share))).collect();
    let more = match by.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let seen = format!("{}: {}{more}", labelled(&numbers(&cpus)), shown.join(", "));
    (!cpus.is_empty()).then_some(Crowd { seen, cpus, by })
}

/// The fullest CPU in words, where none is crowded.
fn quiet(loads: &[Load<'_>]) -> String {
    match loads.first().and_then(|load| Some((load, load.by.first()?))) {
        Some((load, busiest)) if load.share >= TOLD => {
            format!("at most {} of a CPU ({}: {})", percent(load.share), load.cpu, busiest.name)
        }
        _ => "under 1 % of each CPU".to_owned(),
    }
}

/// Whole per cent, never above 100: threads are told a little more than the time between two looks.
fn percent(share: f64) -> String {
    format!("{:.0} %", (share * 100.0).min(100.0))
}

fn numbers(cpus: &[CpuId]) -> BTreeSet<u32> {
    cpus.iter().map(|cpu| cpu.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, assert_well_formed};
    use record::CheckState::{self, Missing, Ok, Warn};

    fn ran(pid: u32, name: &str, kernel: bool, cpu: u32, share: f64) -> Ran {
        Ran { pid, name: name.to_owned(), kernel, cpu: CpuId(cpu), share }
    }

    /// This process with that user and those capabilities, beside processes 7 to 9 of user 1001's.
    fn owned(fixture: Fixture, user: &str, capabilities: &str) -> Fixture {
        let own = format!("Uid:\t{user}\t{user}\t{user}\t{user}\nCapEff:\t{capabilities}\n");
        [7, 8, 9].iter().fold(fixture.file("proc/self/status", &own), |fixture, pid| {
            fixture.file(&format!("proc/{pid}/status"), "Uid:\t1001\t1001\t1001\t1001\n")
        })
    }

    /// Processes and kernel threads, on a machine of four CPUs of which 2 and 3 are in question.
    fn of(sample: &Sample) -> [Finding; 2] {
        let fixture = owned(Fixture::new(), "0", "000001ffffffffff").cores(4).in_question(&[2, 3]);
        let found = fixture.findings(|patient| findings(patient, sample));
        found.iter().for_each(assert_well_formed);
        found.try_into().unwrap()
    }

    fn with(ran: &[Ran]) -> [Finding; 2] {
        of(&Sample { ran: Some(ran.to_vec()), ..Sample::default() })
    }

    fn state(finding: &Finding) -> (CheckState, &str) {
        (finding.check.state, &finding.check.seen)
    }

    #[test]
    fn little_company_is_told_and_what_runs_elsewhere_is_not_company() {
        let [processes, kernel] = with(&[ran(9, "cc1", false, 1, 1.0), ran(7, "shell", false, 3, 0.04)]);
        assert_eq!(state(&processes), (Ok, "at most 4 % of a CPU (3: shell)"));
        assert_eq!(state(&kernel), (Ok, "under 1 % of each CPU"));
    }

    #[test]
    fn many_small_ones_on_one_cpu_add_up() {
        let [processes, _] =
            with(&[ran(7, "a", false, 3, 0.15), ran(8, "b", false, 3, 0.1), ran(9, "c", false, 2, 0.1)]);
        assert_eq!(state(&processes), (Warn, "CPU 3: a 15 %, b 10 %"));
        assert_eq!(processes.spoils, Spoils::On(vec![CpuId(3)]));
        let cure = "keep them off these CPUs: `taskset -apc 0-1 7` and `taskset -apc 0-1 8`";
        assert_eq!(processes.check.cure.as_deref(), Some(cure), "who is listed is named");
    }

    #[test]
    fn kernel_threads_are_told_apart_from_processes() {
        let [processes, kernel] = with(&[ran(7, "kswapd0", true, 2, 1.02), ran(8, "kworker/3:1", true, 3, 0.3)]);
        assert_eq!(processes.check.state, Ok);
        assert_eq!(state(&kernel), (Warn, "CPUs 2-3: kswapd0 100 %, kworker/3:1 30 %"));
        assert_eq!(kernel.spoils, Spoils::On(vec![CpuId(2), CpuId(3)]));
    }

    #[test]
    fn where_every_cpu_is_in_question_there_is_nowhere_to_send_them() {
        let cure = |fixture: Fixture, ran: &[Ran]| {
            let sample = Sample { ran: Some(ran.to_vec()), ..Sample::default() };
            let found = fixture.findings(|patient| findings(patient, &sample));
            assert_well_formed(&found[0]);
            found[0].check.cure.clone().unwrap()
        };
        let one = [ran(7, "cc1", false, 1, 0.9)];
        let two = [one[0].clone(), ran(8, "cc1", false, 0, 0.8)];
        let mine = || owned(Fixture::new(), "1001", "0");
        assert_eq!(cure(mine(), &one), "let it finish, or `kill -STOP 7`, later `kill -CONT 7`");
        assert_eq!(cure(mine(), &two), "let them finish, or `kill -STOP 7 8`, later `kill -CONT 7 8`");
        let three = [two[0].clone(), two[1].clone(), ran(9, "ld", false, 0, 0.1)];
        assert!(!cure(mine(), &three).contains("kill"), "all or none: {}", cure(mine(), &three));
        let nobody = || owned(Fixture::new(), "65534", "0");
        assert!(!cure(nobody(), &two).contains("kill"), "{}", cure(nobody(), &two));
        let spare = cure(nobody().cores(4).in_question(&[0, 1]), &two);
        assert!(!spare.contains("taskset") && spare.contains("--cpus 2-3"), "{spare}");
        let moved = cure(mine().cores(4).in_question(&[0, 1]), &two);
        assert_eq!(moved, "keep them off these CPUs: `taskset -apc 2-3 7` and `taskset -apc 2-3 8`");
    }

    #[test]
    fn who_took_next_to_nothing_is_not_told() {
        let [processes, _] = with(&[ran(7, "cc1", false, 3, 0.9), ran(8, "cargo", false, 3, 0.004)]);
        assert_eq!(state(&processes), (Warn, "CPU 3: cc1 90 %"));
        let many = [ran(7, "a", false, 3, 0.4), ran(8, "b", false, 3, 0.3), ran(9, "c", false, 3, 0.2)];
        assert_eq!(with(&many)[0].check.seen, "CPU 3: a 40 %, b 30 % and 1 more");
    }

    #[test]
    fn what_runs_unseen_is_found_in_the_kernel_s_books() {
        let read = |busy: u32| {
            let text = format!("cpu2 0 0 0 0\ncpu3 {busy} 0 0 {}\n", 20 - busy);
            host::cpu_times(Fixture::new().file("proc/stat", &text).patient().root).unwrap()
        };
        let empty =
            host::cpu_times(Fixture::new().file("proc/stat", "cpu2 0 0 0 0\ncpu3 0 0 0 0\n").patient().root).unwrap();
        let sample = |busy, share| Sample {
            ran: Some(vec![ran(7, "cc1", false, 3, share)]),
            cpu_times: Some((empty.clone(), read(busy))),
            ..Sample::default()
        };
        let [unseen, _] = of(&sample(18, 0.1));
        assert_eq!(state(&unseen), (Warn, "CPU 3 80 % busy with what /proc does not show"));
        assert_eq!(unseen.spoils, Spoils::On(vec![CpuId(3)]));
        assert_eq!(of(&sample(6, 0.1))[0].check.state, Ok, "two ticks more than the thread's time");
    }

    #[test]
    fn silence_is_not_quiet() {
        let found = of(&Sample::default());
        assert!(found.iter().all(|finding| finding.check.state == Missing), "{found:?}");
    }
}

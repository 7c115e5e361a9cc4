//! Which threads have run on which CPU, and for how long: two readings, and what happened between them.

use crate::root::Root;
use plan::CpuId;
use std::collections::BTreeMap;
use std::time::Instant;

/// The kernel's mark of a thread of its own in the flags of `/proc/PID/stat` (PF_KTHREAD, `linux/sched.h`). Should it
/// ever move, kernel threads would be called processes.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// How long each thread that this process can see has run, its own left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunTimes {
    at: Instant,
    ran_ns: BTreeMap<Thread, u64>,
}

/// A thread, by its process and itself, as `/proc` numbers them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Thread {
    pid: u32,
    tid: u32,
}

/// A process, or a thread of the kernel's, that ran between two readings.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// Its number.
    pub pid: u32,
    /// Its name, as `ps` shows it: at most 15 bytes.
    pub name: String,
    /// Whether it is the kernel's.
    pub kernel: bool,
    /// The CPU on which these threads of it ran last: they may have used others between the readings.
    pub cpu: CpuId,
    /// Those threads' share of the time between the readings, 0 to about 1.
    pub share: f64,
}

impl RunTimes {
    /// Reads the `schedstat` of every thread: two system calls and a few microseconds each. `None` where this kernel
    /// keeps none (no CONFIG_SCHED_INFO) or `/proc` is not there.
    ///
    /// # References
    /// `Documentation/scheduler/sched-stats.rst`, `/proc/<pid>/schedstat`: time on a CPU in nanoseconds, brought up to
    /// date at each tick for a thread that is running.
    pub fn read(root: &Root) -> Option<RunTimes> {
        let at = Instant::now();
        let own: Option<u32> = root.text("proc/self/stat").and_then(|stat| stat.split(' ').next()?.parse().ok());
        let mut ran_ns = BTreeMap::new();
        for pid in numbers(root, "proc").filter(|pid| Some(*pid) != own) {
            for tid in numbers(root, &format!("proc/{pid}/task")) {
                let thread = Thread { pid, tid };
                let first = |text: String| text.split(' ').next()?.parse().ok();
                // A thread that has ended meanwhile has none.
                ran_ns.extend(root.text(&thread.file("schedstat")).and_then(first).map(|ns: u64| (thread, ns)));
            }
        }
        (!ran_ns.is_empty()).then_some(RunTimes { at, ran_ns })
    }

    /// Who ran since `earlier`, busiest first, one entry a process and CPU: threads that still live, also those that
    /// were born meanwhile.
    pub fn since(&self, earlier: &RunTimes, root: &Root) -> Vec<Ran> {
        let elapsed_ns = self.at.saturating_duration_since(earlier.at).as_nanos() as f64;
        let ran = |(thread, ns): (&Thread, &u64)| {
            let more = ns.checked_sub(earlier.ran_ns.get(thread).copied().unwrap_or(0)).filter(|more| *more > 0)?;
            let share = more as f64 / elapsed_ns;
            if share.is_finite() { ran(root, *thread, share) } else { None }
        };
        let mut all: Vec<Ran> = Vec::new();
        for ran in self.ran_ns.iter().filter_map(ran) {
            match all.iter_mut().find(|known| (known.pid, known.cpu) == (ran.pid, ran.cpu)) {
                Some(known) => known.share += ran.share,
                None => all.push(ran),
            }
        }
        all.sort_by(|a, b| b.share.total_cmp(&a.share));
        all
    }
}

impl Thread {
    fn file(self, name: &str) -> String {
        format!("proc/{}/task/{}/{name}", self.pid, self.tid)
    }
}

fn numbers(root: &Root, folder: &str) -> impl Iterator<Item = u32> {
    root.names(folder).into_iter().filter_map(|name| name.parse().ok())
}

/// # References
/// proc_pid_stat(5): behind the name, which may hold anything, flags are field 9 and processor field 39.
fn ran(root: &Root, thread: Thread, share: f64) -> Option<Ran> {
    let stat = root.text(&thread.file("stat"))?;
    let (head, tail) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let of_process = (thread.tid != thread.pid).then(|| root.text(&format!("proc/{}/comm", thread.pid))).flatten();
    let field = |number: usize| tail.split_whitespace().nth(number - 3)?.parse::<u64>().ok();
    Some(Ran {
        pid: thread.pid,
        name: of_process.unwrap_or_else(|| name.to_owned()),
        kernel: field(9)? & KERNEL_THREAD != 0,
        cpu: CpuId(u32::try_from(field(39)?).ok()?),
        share,
    })
}

/// Which of `names` some process is called, as `ps` shows it; kernel threads count.
pub fn processes_called<'a>(root: &Root, names: &[&'a str]) -> Vec<&'a str> {
    let running: Vec<String> = numbers(root, "proc").filter_map(|pid| root.text(&format!("proc/{pid}/comm"))).collect();
    names.iter().copied().filter(|name| running.iter().any(|known| known == name)).collect()
}

#[cfg(test)]
mod tests {
    use super::{Ran, RunTimes, processes_called};
    use crate::fixture::Fixture;
    use crate::root::Root;
    use plan::CpuId;
    use std::time::{Duration, Instant};

    fn thread(fixture: Fixture, pid: u32, tid: u32, ran_ns: u64, stat: &str) -> Fixture {
        let folder = format!("proc/{pid}/task/{tid}");
        fixture.file(&format!("{folder}/schedstat"), &format!("{ran_ns} 7 1\n")).file(&format!("{folder}/stat"), stat)
    }

    /// A line of `stat` with 52 fields, of which only name, flags and processor say something.
    fn stat(tid: u32, name: &str, flags: u64, cpu: u32) -> String {
        let zeros = |count: usize| vec!["0"; count].join(" ");
        format!("{tid} ({name}) S {} {flags} {} {cpu} {}\n", zeros(5), zeros(29), zeros(13))
    }

    #[test]
    fn who_ran_is_told_with_the_cpu() {
        let own = |fixture: Fixture| thread(fixture.file("proc/self/stat", "5 (doctor) R 1\n"), 5, 5, 0, "");
        let before = own(Fixture::new());
        let before = thread(before, 7, 7, 1_000_000, "");
        let before = thread(before, 9, 9, 500, "");
        let before = RunTimes::read(&before.root()).unwrap();

        let after = thread(own(Fixture::new()), 5, 5, 90_000_000, &stat(5, "doctor", 0, 0));
        let after = thread(after, 7, 7, 41_000_000, &stat(7, "a (b) c", 0, 1));
        let after = thread(after, 7, 8, 20_000_000, &stat(8, "born", 0, 3));
        let after = thread(after, 7, 11, 10_000_000, &stat(11, "beside", 0, 1)).file("proc/7/comm", "a (b) c\n");
        let after = thread(after, 9, 9, 500, &stat(9, "idle", 0, 0));
        let after = thread(after, 2, 2, 80_000_000, &stat(2, "kswapd0", 0x0020_8040, 2));
        let mut later = RunTimes::read(&after.root()).unwrap();
        later.at = before.at + Duration::from_millis(100);

        let of = |pid, name: &str, kernel, cpu, share| Ran { pid, name: name.into(), kernel, cpu: CpuId(cpu), share };
        let seen = later.since(&before, &after.root());
        assert_eq!(
            seen,
            [of(2, "kswapd0", true, 2, 0.8), of(7, "a (b) c", false, 1, 0.5), of(7, "a (b) c", false, 3, 0.2)],
            "threads of one process on one CPU are added up, under its name"
        );
    }

    #[test]
    fn a_kernel_that_keeps_no_times_says_so() {
        let fixture = Fixture::new().file("proc/7/task/7/stat", &stat(7, "x", 0, 0));
        assert_eq!(RunTimes::read(&fixture.root()), None);
        assert_eq!(RunTimes::read(&Fixture::new().root()), None);
    }

    #[test]
    fn processes_are_known_by_their_whole_name() {
        let fixture = Fixture::new().file("proc/7/comm", "irqbalance\n").file("proc/8/comm", "auditdx\n");
        assert_eq!(processes_called(&fixture.root(), &["auditd", "irqbalance"]), ["irqbalance"]);
    }

    /// A process that ends with the test, however that ends.
    struct Busy(std::process::Child);

    impl Drop for Busy {
        fn drop(&mut self) {
            // It may have ended by itself.
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn on_this_machine_a_busy_child_is_seen_and_this_process_is_not() {
        let root = Root::system();
        let Some(before) = RunTimes::read(&root) else { return testing::skip("the kernel keeps no run times") };
        let child = Busy(std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap());
        let pid = child.0.id();
        let deadline = Instant::now() + Duration::from_secs(120);
        let ran = |pid| {
            let ran = RunTimes::read(&root).unwrap().since(&before, &root);
            ran.into_iter().find(|ran| ran.pid == pid)
        };
        let seen = loop {
            match ran(pid) {
                Some(seen) => break seen,
                None if Instant::now() > deadline => panic!("process {pid} has not run for two minutes"),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        assert_eq!(ran(std::process::id()), None);
        drop(child);
        assert!(seen.share > 0.0 && !seen.kernel && seen.name == "sh", "{seen:?}");
    }
}

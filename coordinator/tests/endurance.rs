//! Runs one after another, ended in every way, leave everything as it was: shared memory, processes, descriptors, memory of
//! the kernel's and of files that nobody has. For `LAB_MINUTES`, or a few rounds. They have `/dev/shm`, process numbers and
//! a memory cgroup to themselves, so that each of these counts what they left and nothing else.

mod common;

use common::{Bench, coordinator, is_root, stderr, workers_of};
use nix::sys::signal::{Signal, kill};
use nix::sys::statvfs::statvfs;
use nix::unistd::Pid;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use testing::{A_LONG_TIME, skip, within};

/// Says to the test that it is the process inside, and which cgroup it is in.
const INSIDE: &str = "LAB_ENDURANCE_GROUP";

/// Rounds before anything is compared: the first one fills caches.
const FIRST: u32 = 4;

/// Rounds where no time is given.
const FEWEST: u32 = 8;

/// What the group may have more at the end, besides what each CPU keeps charged in advance (64 pages, `MEMCG_CHARGE_BATCH`
/// of mm/memcontrol.c). An hour has some ten thousand repetitions: a page left by each would be ten times as much.
const MEMORY_BYTES: u64 = 4 << 20;
const MEMORY_BYTES_A_CPU: u64 = 256 << 10;

/// Processes and threads, a lock, memory that both map and give back.
const SCENARIO: &str = r#"
title = "Endured"
question = "What is left of it?"
[measure]
window = "20ms"
warm_up = "1ms"
repetitions = 2
baselines = []
[lock.m]
kind = "ticket"
[field.balance]
type = "u64"
[region.seg]
size = "8MiB"
shared = true
[[variant]]
name = "processes"
[[variant]]
name = "threads"
[variant.set]
"role.teller.threads" = 2
[[role]]
name = "teller"
workers = 2
loop = ["lock m", "bump balance", "unlock m", "punch seg 4KiB pause 50us"]
"#;

/// How a round ends.
#[derive(Copy, Clone, Debug)]
enum Ending {
    ByItself,
    Interrupted,
    WorkerKilled,
    CoordinatorKilled,
}

const ENDINGS: [Ending; 4] = [Ending::ByItself, Ending::CoordinatorKilled, Ending::Interrupted, Ending::WorkerKilled];

/// A memory cgroup of the test's own, removed at its end.
struct Group(PathBuf);

impl Group {
    /// Makes one, under version 1 or 2; `None` where neither is to be had.
    fn new() -> Option<Group> {
        let (v1, v2) = (Path::new("/sys/fs/cgroup/memory"), Path::new("/sys/fs/cgroup"));
        let is_v1 = v1.join("memory.usage_in_bytes").exists();
        if !is_v1 {
            // It may be on already, or not be ours to turn on: the child shows which.
            let _ = fs::write(v2.join("cgroup.subtree_control"), "+memory");
        }
        let parent = if is_v1 { v1 } else { v2 };
        let group = Group(parent.join(format!("contention-lab-test-endurance-{}", std::process::id())));
        fs::create_dir(&group.0).ok()?;
        usage(&group.0).map(|_| group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Busy until the kernel has let go of the last process.
        within(A_LONG_TIME, "the cgroup removed", || match fs::remove_dir(&self.0) {
            Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => None,
            _ => Some(()),
        });
    }
}

/// Bytes charged to a cgroup; `None` where it counts none.
fn usage(group: &Path) -> Option<u64> {
    let read = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse().ok();
    read("memory.usage_in_bytes").or_else(|| read("memory.current"))
}

/// Has the kernel give up what it can have again: pages of files, and what it remembers of names.
fn reclaim(group: &Path) {
    // Of version 1; it says EBUSY, and version 2 EAGAIN, where not everything could be given up, which is so here.
    let _ = fs::write(group.join("memory.force_empty"), "0");
    let _ = fs::write(group.join("memory.reclaim"), "1G");
}

/// What could be left.
#[derive(Debug)]
struct Footprint {
    segments: Vec<String>,
    /// Those without a name too.
    shared_bytes: u64,
    processes: BTreeSet<i32>,
    descriptors: usize,
}

impl Footprint {
    fn now() -> Footprint {
        let names = |folder: &str| fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let shm = statvfs("/dev/shm").unwrap();
        Footprint {
            segments: names("/dev/shm").collect(),
            shared_bytes: (shm.blocks() - shm.blocks_free()) * shm.fragment_size(),
            processes: names("/proc").filter_map(|name| name.parse().ok()).collect(),
            descriptors: names("/proc/self/fd").count(),
        }
    }

    fn assert_nothing_shared(&self, round: &str) {
        assert!(self.segments.is_empty() && self.shared_bytes == 0, "{round}: {self:?}");
    }
}

/// One run that is ended so, at an instant of its own.
fn round(ending: Ending, random: &mut SmallRng) -> Output {
    let bench = Bench::new(SCENARIO);
    let mut command = bench.run();
    command.args(["--quiet", "--lock-log"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let pid = Pid::from_raw(child.id() as i32);
    let pause = Duration::from_millis(random.random_range(0..1_500));
    match ending {
        Ending::ByItself => {}
        Ending::Interrupted | Ending::CoordinatorKilled => {
            std::thread::sleep(pause);
            let signal = if matches!(ending, Ending::Interrupted) { Signal::SIGINT } else { Signal::SIGKILL };
            // It was not waited for, so the number is its own still.
            kill(pid, signal).unwrap();
        }
        Ending::WorkerKilled => {
            std::thread::sleep(pause);
            if let Some(worker) = workers_of(child.id()).first() {
                // It may have ended since; nobody else starts processes here who could have got its number.
                let _ = kill(Pid::from_raw(worker.pid), Signal::SIGKILL);
            }
        }
    }
    child.wait_with_output().unwrap()
}

fn assert_ended(ending: Ending, output: &Output) {
    let (code, signal) = (output.status.code(), output.status.signal());
    // A machine so busy that a worker slept through its whole window says so.
    let passless = code == Some(1) && stderr(output).contains("completed no pass in the window of");
    // One that was done before it was to be ended, or that had no worker yet, is ended well; 3: the machine was noisy.
    let as_meant = match ending {
        Ending::ByItself => false,
        Ending::Interrupted => code == Some(130) || signal == Some(Signal::SIGINT as i32),
        Ending::WorkerKilled => code == Some(1) && stderr(output).contains("SIGKILL"),
        Ending::CoordinatorKilled => signal == Some(Signal::SIGKILL as i32),
    };
    assert!(as_meant || passless || matches!(code, Some(0 | 3)), "{ending:?}: {:?} {}", output.status, stderr(output));
}

/// A line of /proc/meminfo, of the whole machine: to be read, since others have their part in it.
fn machine_kib(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn rounds(group: &Path) {
    let minutes: f64 = std::env::var("LAB_MINUTES").map_or(0.0, |text| text.parse().expect("LAB_MINUTES: a number"));
    let seed = std::env::var("LAB_SEED").map_or(1, |text| text.parse().expect("LAB_SEED: a number"));
    let (mut random, end) = (SmallRng::seed_from_u64(seed), Instant::now() + Duration::from_secs_f64(minutes * 60.0));
    let before = Footprint::now();
    before.assert_nothing_shared("before the first");
    let mut settled = None;
    let mut count = 0;
    while count < FEWEST || Instant::now() < end {
        let ending = ENDINGS[count as usize % ENDINGS.len()];
        assert_ended(ending, &round(ending, &mut random));
        count += 1;
        let said = format!("round {count}, {ending:?}, LAB_SEED={seed}");
        if let Ending::CoordinatorKilled = ending {
            // Its workers notice by themselves.
            within(A_LONG_TIME, &said, || (Footprint::now().processes == before.processes).then_some(()));
            assert!(coordinator().arg("clean").stdout(Stdio::null()).status().unwrap().success());
        }
        let now = Footprint::now();
        now.assert_nothing_shared(&said);
        assert_eq!((&now.processes, now.descriptors), (&before.processes, before.descriptors), "{said}");
        if count == FIRST || count.is_multiple_of(100) {
            reclaim(group);
            let memory_bytes = usage(group).unwrap();
            println!(
                "{count} rounds: {} KiB in the group; of the machine: MemAvailable {} KiB, SUnreclaim {} KiB, Shmem {} KiB",
                memory_bytes / 1024,
                machine_kib("MemAvailable:"),
                machine_kib("SUnreclaim:"),
                machine_kib("Shmem:")
            );
            settled.get_or_insert(memory_bytes);
        }
    }
    reclaim(group);
    let (settled, last) = (settled.unwrap(), usage(group).unwrap());
    println!("{count} rounds: {} KiB in the group, {} KiB after the first {FIRST}", last / 1024, settled / 1024);
    let cpus = std::thread::available_parallelism().unwrap().get() as u64;
    assert!(last <= settled + MEMORY_BYTES + MEMORY_BYTES_A_CPU * cpus, "{settled} bytes have become {last}");
}

#[test]
fn runs_one_after_another_leave_everything_as_it_was() {
    if let Some(group) = std::env::var_os(INSIDE) {
        return rounds(Path::new(&group));
    }
    let apart = ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let may_unshare = |status: std::io::Result<std::process::ExitStatus>| status.is_ok_and(|status| status.success());
    if !may_unshare(Command::new("unshare").args(apart).args(["mount", "-t", "tmpfs", "tmpfs", "/dev/shm"]).status()) {
        return skip("unshare of util-linux makes no namespaces with a /dev/shm of their own here");
    }
    let group = if is_root() { Group::new() } else { None };
    let Some(group) = group else { return skip("a memory cgroup needs root and a writable cgroup tree") };
    let enter = "echo $$ >\"$0/cgroup.procs\" && mount -t tmpfs -o mode=1777 tmpfs /dev/shm && \"$@\"";
    let mut inside = Command::new("unshare");
    inside.args(apart).args(["sh", "-c", enter]).arg(&group.0);
    inside.arg(std::env::current_exe().unwrap());
    inside.args(["--exact", "runs_one_after_another_leave_everything_as_it_was", "--nocapture"]);
    let status = inside.env(INSIDE, &group.0).stdin(Stdio::null()).status().unwrap();
    assert!(status.success(), "{status}: see above");
}

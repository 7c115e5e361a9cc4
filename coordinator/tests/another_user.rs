//! Another user of the machine gets nowhere: neither at a segment while it has its name nor at the processes of a running
//! lab; and names that look like the lab's own, made by others, stop no run and are removed by none.
//!
//! The other user is this program again, as `nobody`: `LAB_STRANGER` says what it is to try.

mod common;
#[path = "common/segment.rs"]
mod segment;

use common::{Bench, Conversation, NOBODY, QUICK, alone, bench_of, coordinator, is_root, stderr, stdout};
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo, truncate};
use record::Run;
use shm_layout::{AttachError, Segment, orphans, remove_orphan};
use std::fmt::Debug;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testing::skip;

const STRANGER: &str = "LAB_STRANGER";

/// The user whose lab it is: neither root, whom the kernel protects for more reasons, nor the stranger.
const SOMEBODY: u32 = 54_321;

/// The test of that name as the stranger goes through it.
fn stranger(test: &str, task: &str) -> Command {
    // Not by its path, which may lead through folders that are closed to others.
    let mut command = Command::new("/proc/self/exe");
    command.args(["--exact", test, "--nocapture"]).env(STRANGER, task).uid(NOBODY).gid(NOBODY);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn task() -> Option<String> {
    std::env::var(STRANGER).ok()
}

fn assert_tried(mut command: Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
}

/// Asserts that the kernel refused it to this user.
fn refused<T: Debug>(what: &str, answer: io::Result<T>) {
    let error = answer.expect_err(what);
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{what}: {error}");
}

fn in_shm(name: &str) -> PathBuf {
    Path::new("/dev/shm").join(name)
}

#[test]
fn a_segment_is_closed_to_others_while_it_has_its_name() {
    if let Some(name) = task() {
        return at_a_segment(&name);
    }
    if !is_root() {
        return skip("only root becomes somebody else");
    }
    let segment = segment::created();
    let path = in_shm(segment.name());
    let seen = || (fs::read(&path).unwrap(), fs::metadata(&path).map(|it| (it.ino(), it.mode(), it.uid())).unwrap());
    let before = seen();
    assert_eq!(before.1.1 & 0o7777, 0o600);
    assert_tried(stranger("a_segment_is_closed_to_others_while_it_has_its_name", segment.name()));
    assert_eq!(seen(), before);
    assert!(Segment::attach(segment.name(), &segment::program(), segment::ENCODED, 1).is_ok(), "its own user's may");
}

fn at_a_segment(name: &str) {
    let path = in_shm(name);
    refused("read", File::open(&path));
    refused("write", OpenOptions::new().write(true).open(&path));
    refused("make anew", OpenOptions::new().write(true).create(true).truncate(true).open(&path));
    refused("truncate", truncate(&path, 0).map_err(io::Error::from));
    refused("remove", fs::remove_file(&path));
    refused("rename", fs::rename(&path, path.with_extension("mine")));
    refused("open to all", fs::set_permissions(&path, Permissions::from_mode(0o666)));
    refused("take", chown(&path, Some(NOBODY), Some(NOBODY)));
    // Where the kernel lets everybody link everything (`fs.protected_hardlinks` is 0), the link would be as closed.
    if fs::read_to_string("/proc/sys/fs/protected_hardlinks").is_ok_and(|text| text.trim() != "0") {
        refused("link", fs::hard_link(&path, path.with_extension("link")));
    }
    let taken = OpenOptions::new().write(true).create_new(true).open(&path).unwrap_err();
    assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
    // A worker that the coordinator did not start, although it knows name and program.
    let attached = Segment::attach(name, &segment::program(), segment::ENCODED, 1);
    assert!(matches!(attached, Err(AttachError::Open { .. })), "{attached:?}");
    // `clean`.
    assert!(orphans().unwrap().iter().all(|orphan| orphan.name != name) && !remove_orphan(name));
}

#[test]
fn what_a_dead_run_left_is_for_its_own_user_to_remove() {
    if let Some(name) = task() {
        return assert!(orphans().unwrap().iter().all(|orphan| orphan.name != name) && !remove_orphan(&name));
    }
    if !is_root() {
        return skip("only root becomes somebody else");
    }
    // The name of a segment that was just dropped, which nobody has now. A sweep from elsewhere on this machine may be
    // first; then there is nothing to remove for the stranger either.
    let name = segment::created().name().to_owned();
    for mode in [0o600, 0o666] {
        File::create_new(in_shm(&name)).unwrap();
        let _ = fs::set_permissions(in_shm(&name), Permissions::from_mode(mode));
        assert_tried(stranger("what_a_dead_run_left_is_for_its_own_user_to_remove", &name));
        let _ = fs::remove_file(in_shm(&name));
    }
}

#[test]
fn a_running_lab_is_closed_to_others() {
    if let Some(pids) = task() {
        return pids.split(' ').for_each(|pid| at_a_process(pid.parse().unwrap()));
    }
    if !is_root() {
        return skip("only root becomes somebody else");
    }
    let _alone = alone();
    let (_bench, mut command) =
        bench_of(SOMEBODY, &QUICK.replace("repetitions = 3", "repetitions = 1\nbaselines = []"));
    command.args(["--hold", "--json", "--only", "padded"]);
    let mut run = Conversation::with(command);
    let mut seen = Vec::new();
    // The arm and its control, each held before its warm-up and after its window.
    for gate in 0..4 {
        let held = run.gate().pids;
        let pids: Vec<String> =
            held.iter().copied().chain([run.child.id() as i32]).map(|pid| pid.to_string()).collect();
        assert_tried(stranger("a_running_lab_is_closed_to_others", &pids.join(" ")));
        if gate % 2 == 0 {
            seen.extend(held);
        }
        run.go_on();
    }
    let (status, said, out) = run.finish();
    assert!(matches!(status.code(), Some(0 | 3)), "{status} {said}"); // 3: the machine was noisy
    let run: Run = serde_json::from_str(&out).unwrap();
    let mut pids: Vec<i32> = run.observations.iter().filter_map(|one| one.pid).collect();
    pids.sort_unstable();
    seen.sort_unstable();
    assert_eq!(pids, seen, "the workers that were started, and nobody else's");
}

fn at_a_process(pid: i32) {
    let of = |name: &str| Path::new("/proc").join(pid.to_string()).join(name);
    let number = Pid::from_raw(pid);
    // Not SIGCONT, which everybody may send within a session; none of these is stopped.
    for signal in [Signal::SIGSTOP, Signal::SIGIO, Signal::SIGALRM, Signal::SIGTERM, Signal::SIGKILL] {
        assert_eq!(kill(number, signal), Err(Errno::EPERM), "{signal}");
    }
    let mut one = CpuSet::new();
    one.set(0).unwrap();
    assert_eq!(sched_setaffinity(number, &one), Err(Errno::EPERM));
    // Its memory, and with it the segment; its files: the program, the reports, both pipes, regions.
    refused("memory", OpenOptions::new().read(true).write(true).open(of("mem")));
    refused("mappings", File::open(of("maps")));
    refused("mapped files", fs::read_dir(of("map_files")));
    refused("files", fs::read_dir(of("fd")));
    for fd in 0..32 {
        refused("a file", File::open(of("fd").join(fd.to_string())));
    }
    refused("score", OpenOptions::new().write(true).open(of("oom_score_adj")));
}

/// Everything that one can put under a name of the lab's form, and what stands behind it.
fn squat() {
    let name = || segment_name(rand::random());
    let [file, fifo, link, folder, leased] = [(); 5].map(|()| in_shm(&name()));
    OpenOptions::new().write(true).create_new(true).open(&file).unwrap().write_all(b"mine").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
    mkfifo(&fifo, Mode::from_bits_truncate(0o666)).unwrap();
    symlink("/etc/passwd", &link).unwrap();
    fs::create_dir(&folder).unwrap();
    let held = OpenOptions::new().write(true).create_new(true).open(&leased).unwrap();
    fs::set_permissions(&leased, Permissions::from_mode(0o666)).unwrap();
    lease::take(&held);
    let all = [file, fifo, link, folder, leased];
    println!("\nsquatted {}", all.each_ref().map(|path| path.to_str().unwrap()).join(" "));
    io::stdin().read_to_end(&mut Vec::new()).unwrap();
    let left: Vec<_> = all.iter().filter(|path| path.symlink_metadata().is_ok()).collect();
    let content = fs::read(&all[0]);
    for path in &all {
        let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
    }
    assert!(left.len() == all.len() && content.unwrap() == b"mine", "{left:?}");
}

fn segment_name(digits: u64) -> String {
    format!("contention-lab-{digits:016x}")
}

#[test]
fn names_that_another_user_made_stop_no_run_and_stay() {
    const NAME: &str = "names_that_another_user_made_stop_no_run_and_stay";
    if task().is_some() {
        return squat();
    }
    if !is_root() {
        return skip("only root becomes somebody else");
    }
    let _alone = alone();
    let mut squatter = stranger(NAME, "squat").stdin(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(squatter.stdout.take().unwrap()).lines();
    let squatted = lines.find_map(|line| Some(line.unwrap().strip_prefix("squatted ")?.to_owned())).unwrap();
    // A lease is waited for so long, by whoever waits.
    let lease = fs::read_to_string("/proc/sys/fs/lease-break-time").unwrap();
    let lease = Duration::from_secs(lease.trim().parse().unwrap());
    let began = Instant::now();
    let cleaned = coordinator().arg("clean").output().unwrap();
    assert!(began.elapsed() < lease, "it waited for another user's lease: {:?}", began.elapsed());
    assert_eq!(cleaned.status.code(), Some(0), "{}", stderr(&cleaned));
    let said = stdout(&cleaned);
    assert!(squatted.split(' ').all(|path| !said.contains(path)), "{said}");
    let bench = Bench::new(QUICK);
    let output = bench.run().args(["--quiet", "--repetitions", "1", "--only", "padded"]).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{:?} {}", output.status, stderr(&output));
    // It looks whether all is there still, and removes it.
    drop(squatter.stdin.take());
    lines.for_each(drop);
    let output = squatter.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

/// 64 random bits: in as many names each is seen set and clear, unless a coin falls on one side 64 times.
#[test]
fn no_name_can_be_guessed() {
    let names: Vec<String> = (0..64).map(|_| segment::created().name().to_owned()).collect();
    let digits = |name: &String| u64::from_str_radix(name.strip_prefix("contention-lab-").unwrap(), 16).unwrap();
    let all: Vec<u64> = names.iter().map(digits).collect();
    let (set, clear) = all.iter().fold((0, 0), |(set, clear), digits| (set | digits, clear | !digits));
    assert_eq!((set, clear), (u64::MAX, u64::MAX), "{names:?}");
}

mod lease {
    #![allow(unsafe_code)] // fcntl(F_SETLEASE), which the safe wrapper lacks

    use nix::libc;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    /// Takes a lease for writing on an own file, for as long as it is open: whoever opens it waits, or is refused.
    pub(super) fn take(file: &File) {
        // SAFETY: neither call is given memory; no handler is run for a signal that is ignored. The descriptor is
        // borrowed, so it is open.
        unsafe {
            // Sent where somebody wants to open it; it would end this process.
            libc::signal(libc::SIGIO, libc::SIG_IGN);
            assert_eq!(
                libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK),
                0,
                "{}",
                std::io::Error::last_os_error()
            );
        }
    }
}

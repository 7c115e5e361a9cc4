//! Foreign programs in C, built by `cc`, in a segment of the test's own.
#![allow(dead_code)] // each test binary uses a part

use attach::symbols::SymbolParser;
use attach::touch::{TouchOptions, Touched, watch};
use attach::{Targets, Wanted, find};
use record::{Interval, LineVerdict, TouchedLine};
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use testing::{Lines, skip};

/// `toucher.c`, built once; `None`, having said why, where it cannot be built, or this process may not watch others.
pub(crate) fn toucher() -> Option<&'static Path> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("toucher-{}", std::process::id()));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/toucher.c");
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]).arg(&program).arg(source).arg("-lrt");
        match cc.output() {
            Err(error) => Err(format!("there is no C compiler: {error}")),
            Ok(output) if !output.status.success() => panic!("cc: {}", String::from_utf8_lossy(&output.stderr)),
            Ok(_) if !cfg!(target_arch = "x86_64") => Err("instructions are taken apart on x86-64 alone".to_owned()),
            Ok(_) if !nix::unistd::geteuid().is_root() => Err("watching others with breakpoints needs root".to_owned()),
            Ok(_) => Ok(program),
        }
    });
    built.as_deref().map_err(|why| skip(why)).ok()
}

/// The CPUs that this process may use.
pub(crate) fn allowed_cpus() -> Vec<usize> {
    let set = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).unwrap();
    (0..nix::sched::CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap()).collect()
}

/// A segment of shm_open, removed with this.
pub(crate) struct Segment {
    pub(crate) name: String,
    bytes: u64,
}

impl Segment {
    pub(crate) fn new(bytes: u64) -> Segment {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("/attach-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let segment = Segment { name, bytes };
        std::fs::File::create(segment.path()).unwrap().set_len(bytes).unwrap();
        segment
    }

    fn path(&self) -> String {
        format!("/dev/shm{}", self.name)
    }

    /// A process that uses it: what it does, from which offset on, and another number that its role wants.
    pub(crate) fn user(&self, role: &str, at: u64, other: u64) -> User {
        static DECOYS: AtomicU32 = AtomicU32::new(1);
        let decoy = DECOYS.fetch_add(3, Ordering::Relaxed);
        let mut command = Command::new(toucher().unwrap());
        command.args([
            &self.name,
            role,
            &self.bytes.to_string(),
            &at.to_string(),
            &decoy.to_string(),
            &other.to_string(),
        ]);
        User::start(&mut command)
    }

    /// Two that use words of it, each on a CPU of its own where there are two.
    pub(crate) fn pair(&self, role: &str, at: [u64; 2]) -> [User; 2] {
        let cpus = allowed_cpus();
        let one = |nth: usize| {
            let mut command = Command::new(toucher().unwrap());
            command.args([&self.name, role, &self.bytes.to_string(), &at[nth].to_string(), &(nth + 1).to_string()]);
            User::start(command.env("TOUCHER_CPU", cpus[nth % cpus.len()].to_string()))
        };
        [one(0), one(1)]
    }

    /// A process of 32 bits that counts in it; `None`, having said why, where it cannot be built.
    pub(crate) fn narrow(&self) -> Option<User> {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("narrow-{}", std::process::id()));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/narrow.c");
        let mut cc = Command::new("cc");
        cc.args(["-m32", "-O1", "-nostdlib", "-static", "-fno-pie", "-no-pie", "-fno-stack-protector", "-o"]);
        let output = cc.arg(&program).arg(source).output().unwrap();
        if !output.status.success() {
            skip(&format!("no compiler for 32 bits: {}", String::from_utf8_lossy(&output.stderr)));
            return None;
        }
        let segment = std::fs::File::options().read(true).write(true).open(self.path()).unwrap();
        let mut child = Command::new(&program).stdin(segment).stdout(Stdio::piped()).spawn().unwrap();
        let output = Lines::of(child.stdout.take().unwrap());
        output.hear();
        std::fs::remove_file(program).unwrap();
        Some(User { pid: child.id(), child, input: None, output, address: 0 })
    }

    /// Makes a process-shared mutex.
    pub(crate) fn make_mutex(&self, at: u64) {
        let mut command = Command::new(toucher().unwrap());
        command.args([&self.name, "make-mutex", &self.bytes.to_string(), &at.to_string(), "0"]);
        assert!(command.status().unwrap().success());
    }

    pub(crate) fn targets(&self) -> Targets {
        find(&host::Root::system(), &Wanted::Segment(self.name.clone()), &[]).unwrap().targets
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.path());
    }
}

/// A running `toucher`, which ends with this.
pub(crate) struct User {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines,
    pub(crate) pid: u32,
    /// Where it has the segment.
    pub(crate) address: u64,
}

impl User {
    fn start(command: &mut Command) -> User {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), Lines::of(child.stdout.take().unwrap()));
        let line = output.hear().expect("a line of the toucher");
        let address = line.strip_prefix("ready ").unwrap_or_else(|| panic!("{line:?}")).parse().unwrap();
        User { pid: child.id(), child, input, output, address }
    }

    /// Ends it at once.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// Has it end: how often it went round, and what its word holds.
    pub(crate) fn end(mut self) -> (u64, u64) {
        self.input = None;
        let line = self.output.hear().expect("what it counted");
        let (passes, value) = line.split_once(' ').unwrap_or_else(|| panic!("{line:?}"));
        (passes.parse().unwrap(), value.parse().unwrap())
    }
}

impl Drop for User {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The reader of symbols: this test program again, in the one test that calls it.
pub(crate) fn parser() -> SymbolParser {
    let program = CString::new(std::env::current_exe().unwrap().into_os_string().into_encoded_bytes()).unwrap();
    let arguments = [c"attach", c"reader_of_symbols", c"--exact", c"--nocapture"].map(CString::from).to_vec();
    SymbolParser::new(program, arguments, vec![c"LAB_READS_SYMBOLS=1".into()])
}

/// Watches for so many milliseconds, where another line's access costs 20 ns more between any two CPUs.
pub(crate) fn watched(targets: &Targets, milliseconds: u64) -> Touched {
    let penalty = |_: u32, _: u32| Some(Interval { median: 20.0, low: 15.0, high: 25.0 });
    let parser = parser();
    let options = TouchOptions {
        time: Duration::from_millis(milliseconds),
        penalty: &penalty,
        parser: Some(&parser),
        fields: None,
        stop: &|| false,
        proving: &|_| (),
    };
    watch(targets, &options)
}

/// The same again and again, for longer each time, until it has seen what it is to see: a machine may be so busy that
/// some hardly run. What it must not see it never may.
pub(crate) fn watched_until(
    targets: &Targets,
    is_seen: impl Fn(&Touched) -> bool,
    never: impl Fn(&Touched),
) -> Touched {
    let mut milliseconds = 800;
    loop {
        let seen = watched(targets, milliseconds);
        never(&seen);
        if is_seen(&seen) || milliseconds > 20_000 {
            return seen;
        }
        milliseconds *= 2;
    }
}

/// Whether so many processes were seen at a line.
pub(crate) fn users(seen: &Touched, offset: u64) -> usize {
    let words = seen.lines.iter().filter(|line| line.offset == offset).flat_map(|line| &line.words);
    words.flat_map(|word| word.writers.iter().chain(&word.readers)).collect::<std::collections::BTreeSet<_>>().len()
}

/// The line at that offset.
pub(crate) fn line(seen: &Touched, offset: u64) -> &TouchedLine {
    seen.lines.iter().find(|line| line.offset == offset).unwrap_or_else(|| panic!("no line {offset}: {seen:#?}"))
}

/// Words of a line: offset, bytes, writers, readers.
pub(crate) fn words(line: &TouchedLine) -> Vec<(u64, u32, Vec<u32>, Vec<u32>)> {
    let of = |word: &record::TouchedWord| (word.offset, word.bytes, word.writers.clone(), word.readers.clone());
    line.words.iter().map(of).collect()
}

/// Lines that several use, one of whom writes.
pub(crate) fn alarms(seen: &Touched) -> Vec<&TouchedLine> {
    let quiet = |line: &&TouchedLine| !matches!(line.verdict, LineVerdict::Private | LineVerdict::ReadMostly);
    seen.lines.iter().filter(quiet).collect()
}

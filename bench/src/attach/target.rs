//! Two running targets: `c/target.c`, with the segment at an address of its own in each.

use super::{AttachError, Kind};
use nix::sys::signal::{Signal, kill};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Built by `build.rs`.
const PROGRAM: &str = env!("ATTACH_TARGET");
/// The segment: its bytes, and where things lie in it, as `c/target.c` has them.
const BYTES: u64 = 4096;
const HUGE_BYTES: u64 = 1 << 30;
const IN_HUGE: u64 = 256 << 20;
const LINE_PAIR: u64 = plan::LINE_PAIR_BYTES;
const GUARDED: u64 = LINE_PAIR;
const OWN: u64 = 1024;
/// How long they run before anybody looks.
const WARM_UP: Duration = Duration::from_millis(200);

/// Two targets in one segment, which end with this.
pub(crate) struct Pair {
    kind: Kind,
    segment: File,
    /// Its name, for a watch; nobody else can open it any more.
    pub(crate) name: String,
    processes: [Target; 2],
}

/// How far a pair was at a moment.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Moment {
    pub(crate) at: Instant,
    /// Of both together.
    pub(crate) passes: u64,
    /// CPU time of both.
    pub(crate) cpu_ns: u64,
}

impl Pair {
    /// Starts them, a CPU each, and lets them warm up.
    pub(crate) fn start(kind: Kind, cpus: [usize; 2]) -> Result<Pair, AttachError> {
        let file = tempfile::Builder::new().prefix("bench-attach-").tempfile_in("/dev/shm")?;
        file.as_file().set_len(if kind == Kind::Huge { HUGE_BYTES } else { BYTES })?;
        let path = file.path().to_string_lossy().into_owned();
        // One behind the other: the first makes the mutex.
        let first = Target::start(&path, kind, 0, cpus[0])?;
        let second = Target::start(&path, kind, 1, cpus[1])?;
        let name = path.trim_start_matches("/dev/shm").to_owned();
        // Its name goes now, so that none is left behind by whatever ends this.
        let segment = file.into_file();
        let pair = Pair { kind, segment, name, processes: [first, second] };
        std::thread::sleep(WARM_UP);
        Ok(pair)
    }

    /// Their numbers.
    pub(crate) fn pids(&self) -> [u32; 2] {
        self.processes.each_ref().map(|one| one.child.id())
    }

    /// How far they are. Reads each word once, by way of the file: one transfer of its line.
    pub(crate) fn now(&self) -> Result<Moment, AttachError> {
        let passes = self.word(self.counter(0))? + self.word(self.counter(1))?;
        let at = Instant::now();
        let mut cpu_ns = 0;
        for pid in self.pids() {
            let time = clock_getcpuclockid(Pid::from_raw(pid as i32)).and_then(clock_gettime);
            cpu_ns += Duration::from(time.map_err(std::io::Error::from)?).as_nanos() as u64;
        }
        Ok(Moment { at, passes, cpu_ns })
    }

    /// Offset of the word in which a process counts its passes.
    pub(crate) fn counter(&self, process: u64) -> u64 {
        match self.kind {
            Kind::Padded => process * LINE_PAIR,
            Kind::Packed => process * size_of::<u64>() as u64,
            Kind::Convoy => OWN + process * LINE_PAIR,
            Kind::Shared => 0,
            Kind::Huge => IN_HUGE + process * size_of::<u64>() as u64,
        }
    }

    fn word(&self, offset: u64) -> Result<u64, AttachError> {
        let mut bytes = [0; size_of::<u64>()];
        self.segment.read_exact_at(&mut bytes, offset)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// Has them end, and holds what they counted against what they did.
    pub(crate) fn end(mut self) -> Result<(), AttachError> {
        let mut all = 0;
        for process in 0..2 {
            let passes = self.processes[process].end()?;
            let found = self.word(self.counter(process as u64))?;
            if found != passes {
                return Err(AttachError::Changed { kind: self.kind, process, passes, found });
            }
            all += passes;
        }
        match self.kind {
            Kind::Convoy => self.is_guarded(all),
            Kind::Padded | Kind::Packed | Kind::Huge | Kind::Shared => Ok(()),
        }
    }

    /// Whether what the mutex guards is what both did.
    fn is_guarded(&self, passes: u64) -> Result<(), AttachError> {
        match self.word(GUARDED)? {
            found if found == passes => Ok(()),
            found => Err(AttachError::Changed { kind: self.kind, process: 0, passes, found }),
        }
    }
}

struct Target {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Target {
    /// Starts it and waits until it has the segment.
    fn start(path: &str, kind: Kind, number: usize, cpu: usize) -> Result<Target, AttachError> {
        let mut command = Command::new(PROGRAM);
        command.args([path, kind.name(), &number.to_string(), &cpu.to_string()]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| AttachError::NoTarget { program: PROGRAM, error })?;
        let output = BufReader::new(child.stdout.take().expect("it was asked for"));
        let mut target = Target { child, output };
        let mut line = String::new();
        target.output.read_line(&mut line)?;
        match line.as_str() {
            "ready\n" => Ok(target),
            _ => Err(AttachError::Ended(target.child.wait()?)),
        }
    }

    /// Has it end: its passes.
    fn end(&mut self) -> Result<u64, AttachError> {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM).map_err(std::io::Error::from)?;
        let mut text = String::new();
        self.output.read_to_string(&mut text)?;
        let status = self.child.wait()?;
        text.trim().parse().map_err(|_| AttachError::Ended(status))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! Processes that the lab did not start: the JSON contracts of `coordinator attach --json` and of its `--list`.

use crate::{EmittedScenario, Interval, Reading};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What was seen of one shared segment and of the processes that map it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attach {
    /// [`crate::SCHEMA_VERSION`]; always the first key.
    pub schema_version: u32,
    /// The segment.
    pub segment: AttachedSegment,
    /// How long it was watched, nanoseconds of CLOCK_MONOTONIC, all steps together.
    pub watched_ns: u64,
    /// Whether it ended before its time, as its user asked: what its later steps would have seen is missing.
    #[serde(default)]
    pub ended_early: bool,
    /// The processes that mapped it while it was watched, ascending by pid.
    pub processes: Vec<AttachedProcess>,
    /// Its cache lines that somebody was seen to touch, the dearest first.
    pub lines: Vec<TouchedLine>,
    /// Its lock words that somebody was seen to wait for, the longest waits first.
    pub locks: Vec<WatchedLock>,
    /// What watching cost the watched.
    pub cost: WatchCost,
    /// What was not watched, or seen only in part, and why; in plain words, each with what helps.
    pub notes: Vec<AttachNote>,
    /// The scenario that was made of it, with `--emit-scenario`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<EmittedScenario>,
}

/// A piece of memory that several processes share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachedSegment {
    /// As the kernel names it in `/proc/PID/maps`: `/dev/shm/ring`, `/memfd:ring (deleted)`, `/SYSV00000000 (deleted)`.
    pub name: String,
    /// How it came to be.
    pub kind: SegmentKind,
    /// Major and minor number of its file system's device, as the maps have them.
    pub device: (u32, u32),
    /// Its number there.
    pub inode: u64,
    /// Length, bytes: the file's, or where that cannot be asked the furthest byte that anybody maps.
    pub bytes: u64,
    /// Whether its name is gone: no other process can open it by name.
    pub deleted: bool,
}

/// How a shared segment came to be.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SegmentKind {
    /// `shm_open`: a file below `/dev/shm`.
    Posix,
    /// `memfd_create`.
    Memfd,
    /// `shmget`.
    Sysv,
    /// A file elsewhere, mapped `MAP_SHARED`.
    File,
    /// `MAP_SHARED | MAP_ANONYMOUS`: shared by descent.
    Anonymous,
}

/// One process that maps the segment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttachedProcess {
    /// Its number here.
    pub pid: u32,
    /// Its number in its own namespace of pids; `None` where that is this one's.
    pub pid_inside: Option<u32>,
    /// Its short name (`comm`).
    pub command: String,
    /// Its executable, where that can be read.
    pub executable: Option<String>,
    /// Bits of its addresses: 32 or 64.
    pub address_bits: u32,
    /// Where the segment lies in it, ascending by address.
    pub mappings: Vec<SegmentMapping>,
    /// Threads seen in it.
    pub threads: u32,
    /// Nanoseconds after the watch began at which it was first seen to map the segment; `None` of one that did before.
    pub joined_ns: Option<u64>,
    /// How it ended, where it did while it was watched.
    pub ended: Option<ProcessEnd>,
    /// Whether and why it could not be watched; `None` where it was.
    pub unwatched: Option<String>,
    /// Events of all its threads, by name: the lab's portable ones, and software events.
    pub counters: BTreeMap<String, Reading>,
    /// Nanoseconds over which these were counted.
    pub counted_ns: u64,
    /// Of each counted event, how many a second before the watch's costly steps, while they ran, and behind them.
    pub per_second: BTreeMap<String, [Option<f64>; 3]>,
    /// CPU time that it took over wall time, before the watch's costly steps, while they ran, and behind them.
    pub cpu: [Option<f64>; 3],
}

/// The shared segments of the machine: what `coordinator attach --list --json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachListing {
    /// [`crate::SCHEMA_VERSION`]; always the first key.
    pub schema_version: u32,
    /// All that could be seen, those that most processes map first.
    pub segments: Vec<ListedSegment>,
    /// Pids whose mappings this process may not see: what they share is missing.
    pub closed: Vec<u32>,
}

/// One shared segment and who maps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedSegment {
    /// The segment.
    pub segment: AttachedSegment,
    /// The options of `coordinator attach` that name it and no other.
    pub choose: String,
    /// Who maps it, ascending by pid.
    pub users: Vec<SegmentUser>,
    /// Why it is no place to look for contention; `None` where it may be one.
    pub quiet: Option<SegmentQuiet>,
}

/// A process that maps a listed segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentUser {
    /// Its number here.
    pub pid: u32,
    /// Its short name (`comm`).
    pub command: String,
    /// Where the segment lies in it, ascending by address.
    pub mappings: Vec<SegmentMapping>,
}

/// Why processes do not contend on a segment.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SegmentQuiet {
    /// Nobody may write through a mapping of it: fonts, caches of locales and of icons.
    ReadOnly,
    /// A file, or memory without a name, that one process alone maps.
    OneProcess,
}

/// One mapping of the segment in a process. Everything else is keyed by offset in the segment.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentMapping {
    /// First address in that process.
    pub address: u64,
    /// Length, bytes.
    pub bytes: u64,
    /// The first address's offset in the segment, bytes.
    pub offset: u64,
    /// Whether it may be written through.
    pub writable: bool,
}

/// How a process left the watch.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessEnd {
    /// It ended.
    Exited,
    /// It executed another program.
    Executed,
    /// It unmapped the segment.
    Unmapped,
}

/// What the accesses to a cache line amount to.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineVerdict {
    /// Threads on several CPUs use different words of it, and one of them writes.
    FalseSharing,
    /// Several write one word, or one writes what others read.
    TrueSharing,
    /// It holds a word that the kernel was asked to wait for, or that is taken and given back as a lock.
    LockWord,
    /// Several read, nobody wrote.
    ReadMostly,
    /// One thread alone, or threads that followed each other, used it, but for who looks now and then.
    Private,
}

/// One line that was seen to be touched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TouchedLine {
    /// Offset of its first byte in the segment.
    pub offset: u64,
    /// What the accesses to it amount to.
    pub verdict: LineVerdict,
    /// Offset within its page, bytes: the same in every mapping.
    pub page_offset: u64,
    /// Its words that were touched, ascending by offset.
    pub words: Vec<TouchedWord>,
    /// Accesses to it a second, all processes together, from the proof's hits over the time they took; what the traps
    /// themselves cost is taken out. `None` where it was sampled and not proved.
    pub accesses_per_second: Option<f64>,
    /// Whether that is a lower bound: accesses much closer together than a trap takes are not told apart by traps, unless
    /// the word's value counts them.
    #[serde(default)]
    pub accesses_at_least: bool,
    /// What an access costs more than an uncontended one, nanoseconds, from this machine's own curve for the distance
    /// between the CPUs; `None` where that was not measured.
    pub penalty_ns: Option<Interval>,
    /// Share of the users' time that a cure could give back, from 0 to 1: lowest and highest.
    pub recoverable: Option<(f64, f64)>,
}

/// One word that was seen to be touched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TouchedWord {
    /// Offset of its first byte in the segment.
    pub offset: u64,
    /// Length of the accesses, bytes: 1, 2, 4 or 8, the widest seen.
    pub bytes: u32,
    /// Its name, where a struct was named (`--struct`).
    pub field: Option<String>,
    /// Pids that were proved or seen to write it, ascending.
    pub writers: Vec<u32>,
    /// Pids that were proved or seen to read it, ascending. A read-modify-write is both.
    pub readers: Vec<u32>,
    /// Whether a hardware breakpoint proved it; else it is what sampled registers amount to.
    pub proved: bool,
    /// What its writers add to it each time, the least of them; `None` where no instruction that adds was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adds: Option<u64>,
    /// How often it was written while nobody was disturbed; `None` where its value does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<WordPace>,
    /// Of a word of a line that is a lock: in which share of the looks at it, from 0 to 1, it was not 0, so that somebody had
    /// the lock; looked at while nobody was disturbed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<f64>,
    /// Who touched it, and where in the code.
    pub instructions: Vec<TouchingInstruction>,
}

/// How often a word is written that only grows: by its value, read again and again in the last part of the watch, when
/// nothing was armed. The medians over pieces of that time; between `low` and `high` lie 19 of 20 pieces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WordPace {
    /// Times a second that it was written, by all its writers.
    pub per_second: Interval,
    /// Times a second of the CPU time of the threads that write it, together; `None` where that could not be read.
    pub per_cpu_second: Option<Interval>,
    /// Pieces of time that this is made of.
    pub pieces: u32,
}

/// An instruction that touches a word.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TouchingInstruction {
    /// The process.
    pub pid: u32,
    /// Its address in that process.
    pub address: u64,
    /// As an assembler writes it (GNU syntax); `None` where it could not be read.
    pub text: Option<String>,
    /// The function that holds it and the distance into it, `bump+0x12`.
    pub symbol: Option<String>,
    /// The executable or library.
    pub object: Option<String>,
    /// Source file and line, where there is debug information.
    pub source: Option<(String, u32)>,
    /// Whether it writes.
    pub writes: bool,
    /// Whether it reads.
    pub reads: bool,
    /// Breakpoint hits at it.
    pub hits: u64,
    /// Samples of the loop around it that were taken at it: where time was seen, no share of time lost.
    pub samples: u64,
    /// Accesses of the word by it a second, all threads of the process together, from the proof; `None` where it was sampled
    /// and not proved.
    #[serde(default)]
    pub per_second: Option<f64>,
    /// Whether that is a lower bound: accesses that follow each other faster than traps can be taken are not told apart.
    #[serde(default)]
    pub at_least: bool,
    /// Threads of the process that were seen at it.
    #[serde(default)]
    pub threads: u32,
    /// Which, ascending; of threads that followed each other, the first. Empty where it was not proved.
    #[serde(default)]
    pub tids: Vec<u32>,
}

/// A word in the segment that somebody waited for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WatchedLock {
    /// Offset of its word in the segment.
    pub offset: u64,
    /// Its name, where a struct was named.
    pub field: Option<String>,
    /// The kind of lock that its bytes are, as scenarios spell it (`pthread`, `pthread-robust`, …; `futex` for a word of three
    /// states); `None` where it may be no lock at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Pid of the owner now, where the word holds one; 0 is never a pid.
    pub owner_pid: Option<u32>,
    /// Waits in the kernel that ended while it was watched, those that the kernel refused at once (`EAGAIN`) included.
    pub waits: u64,
    /// Of these, the ones that the kernel refused at once because the word had changed.
    pub refused: u64,
    /// Waits that had not ended when watching did, those begun before it included.
    pub unended: u64,
    /// Waits that had begun before watching did: how long they were is not known, so `waits` and `wait_ns` are without them.
    pub begun_before: u64,
    /// How long the waits in the kernel were, nanoseconds.
    pub wait_ns: WaitTimes,
    /// Pids that waited, with how many waits and how many nanoseconds in all; the most first.
    pub waiters: Vec<LockUser>,
    /// Pids that woke others, with how many calls and how many they woke in all; the most first.
    pub wakers: Vec<LockUser>,
    /// Pids seen spinning on it: their instruction pointer in a loop that reads the word.
    pub spinners: Vec<u32>,
    /// `long_hold`, `owner_died`, …: as the lab's own locks are judged; with a sentence each.
    pub findings: Vec<LockFinding>,
    /// Events lost by a full buffer.
    pub lost: u64,
    /// What probes in the programs' own code counted, where they were asked for.
    #[serde(default)]
    pub probed: Option<ProbedLock>,
}

/// How often a lock was taken, as probes counted it in a step of their own. Each is `None` where no program or library of those
/// that map the segment has such a place.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbedLock {
    /// Calls of `pthread_mutex_lock`, those that did not wait included.
    pub calls: Option<u64>,
    /// Waits begun, by the lab's own markers.
    pub contended: Option<u64>,
    /// Waits that ended in owning it, by the lab's own markers.
    pub acquired: Option<u64>,
}

/// Percentiles of waits, nanoseconds, to three digits; all 0 where there were none.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitTimes {
    /// The shortest.
    pub min: u64,
    /// Half are at most that long.
    pub p50: u64,
    /// Nine of ten.
    pub p90: u64,
    /// 99 of 100.
    pub p99: u64,
    /// 999 of 1,000.
    pub p999: u64,
    /// The longest.
    pub max: u64,
    /// All together.
    pub sum: u64,
}

/// One process's dealings with a lock word.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockUser {
    /// The process.
    pub pid: u32,
    /// Waits, or calls that wake.
    pub calls: u64,
    /// Nanoseconds waited in all, or threads woken in all.
    pub amount: u64,
}

/// A judgement on a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockFinding {
    /// Stable: `long_hold`, `owner_died`, `convoy`.
    pub kind: String,
    /// What it was judged from, in a sentence.
    pub text: String,
}

/// What watching cost the watched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WatchCost {
    /// Breakpoint traps taken in all processes.
    pub traps: u64,
    /// Samples taken.
    pub samples: u64,
    /// Tracepoint events written.
    pub events: u64,
    /// Nanoseconds of the targets' time that these took: counts times what each costs on this machine, measured on
    /// threads and processes of the watcher's own.
    pub stolen_ns: u64,
    /// The targets' time that was taken over the time they ran while they were watched: 0.01 is one part in a hundred.
    pub slowdown: Option<f64>,
}

/// Something that was not watched, or only in part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachNote {
    /// Stable: `not_permitted`, `breakpoints_taken`, `no_tracefs`, `foreign_architecture`, `thread_ended`, ….
    pub id: String,
    /// The process concerned; `None` where it is all of them.
    pub pid: Option<u32>,
    /// What happened, in a sentence.
    pub text: String,
    /// What helps: a command or a setting.
    pub cure: Option<String>,
}

//! The kernel's records, taken apart.
//!
//! # References
//! perf_event_open(2), "MMAP layout".

/// `PERF_RECORD_LOST`, `_COMM`, `_EXIT`, `_FORK` and `_SAMPLE` of `linux/perf_event.h`.
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
/// `PERF_RECORD_MISC_COMM_EXEC`: the new name is that of a program just executed.
const EXECUTES: u16 = 1 << 13;
/// `struct perf_event_header`: type, misc, size.
pub(super) const HEADER_BYTES: usize = 8;
/// The lower bits of `misc` say where the CPU was; 2 is user mode.
const MODE_MASK: u16 = 7;
const USER_MODE: u16 = 2;
/// Registers of a thread that has none to show (`PERF_SAMPLE_REGS_ABI_NONE`), as a kernel thread.
const ABI_NONE: u64 = 0;

/// What stands in a sample: `PERF_SAMPLE_…` of `linux/perf_event.h`. Only those that are read here.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fields(u64);

impl Fields {
    /// The instruction pointer.
    pub(crate) const IP: Fields = Fields(1 << 0);
    /// Process and thread.
    pub(crate) const THREAD: Fields = Fields(1 << 1);
    /// Nanoseconds of CLOCK_MONOTONIC.
    pub(crate) const TIME: Fields = Fields(1 << 2);
    /// The address concerned; of a breakpoint its own.
    pub(crate) const ADDRESS: Fields = Fields(1 << 3);
    /// The CPU.
    pub(crate) const CPU: Fields = Fields(1 << 7);
    /// The period.
    pub(crate) const PERIOD: Fields = Fields(1 << 8);
    /// A tracepoint's own data.
    pub(crate) const RAW: Fields = Fields(1 << 10);
    /// The registers of user mode.
    pub(crate) const REGISTERS: Fields = Fields(1 << 12);
    /// Which event it is of; first in the record, so that records of different events in one ring are told apart.
    pub(crate) const IDENTIFIER: Fields = Fields(1 << 16);

    /// Both.
    pub(crate) const fn and(self, other: Fields) -> Fields {
        Fields(self.0 | other.0)
    }

    /// Whether it is among them.
    pub(crate) const fn has(self, other: Fields) -> bool {
        self.0 & other.0 == other.0
    }

    pub(super) const fn bits(self) -> u64 {
        self.0
    }
}

/// A record of the kernel's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    /// Something happened.
    Sample(Sample<'a>),
    /// So many records found the ring full.
    Lost(u64),
    /// A thread was begun: of a new process, where `parent`, the process of the thread that began it, is another.
    Born {
        /// Its process.
        pid: u32,
        /// Its number.
        tid: u32,
        /// The process of who began it.
        parent: u32,
        /// Nanoseconds of CLOCK_MONOTONIC.
        time_ns: u64,
    },
    /// A thread ended.
    Ended {
        /// Its process.
        pid: u32,
        /// Its number.
        tid: u32,
        /// Nanoseconds of CLOCK_MONOTONIC.
        time_ns: u64,
    },
    /// A process executes another program, in this thread, all others having ended.
    Executed {
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
        /// Nanoseconds of CLOCK_MONOTONIC.
        time_ns: u64,
    },
}

/// What was asked for; the others are 0 or empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sample<'a> {
    /// Of the event.
    pub(crate) id: u64,
    /// Instruction pointer.
    pub(crate) ip: u64,
    /// Process, in this namespace of pids.
    pub(crate) pid: u32,
    /// Thread.
    pub(crate) tid: u32,
    /// Nanoseconds of CLOCK_MONOTONIC.
    pub(crate) time_ns: u64,
    /// Address concerned.
    pub(crate) address: u64,
    /// CPU.
    pub(crate) cpu: u32,
    /// Period.
    pub(crate) period: u64,
    /// A tracepoint's own data.
    pub(crate) raw: &'a [u8],
    /// Values of the registers asked for, ascending by the kernel's number; empty where the thread had none to show.
    pub(crate) registers: Vec<u64>,
    /// Whether it happened in user mode.
    pub(crate) user: bool,
}

/// Takes the first record off `log`: `None` where it is cut off. The inner `None` is a record of another kind.
pub(super) fn next<'a>(log: &mut &'a [u8], fields: Fields, registers: u64) -> Option<Option<Record<'a>>> {
    let kind = u32::from_ne_bytes(log.get(..4)?.try_into().ok()?);
    let misc = u16::from_ne_bytes(log.get(4..6)?.try_into().ok()?);
    let bytes = usize::from(u16::from_ne_bytes(log.get(6..8)?.try_into().ok()?));
    // A size of 0 stands in memory that was never written.
    let mut body = log.get(HEADER_BYTES..bytes)?;
    *log = &log[bytes..];
    Some(match kind {
        SAMPLE => sample(&mut body, misc, fields, registers).map(Record::Sample),
        LOST => take(&mut body).and_then(|_id| take(&mut body)).map(Record::Lost),
        FORK | EXIT => life(kind, &mut body),
        COMM if misc & EXECUTES != 0 => executed(body, fields),
        _ => None,
    })
}

fn life(kind: u32, body: &mut &[u8]) -> Option<Record<'static>> {
    let (pid, parent) = halves(take(body)?);
    let (tid, _) = halves(take(body)?);
    let time_ns = take(body)?;
    Some(if kind == FORK { Record::Born { pid, tid, parent, time_ns } } else { Record::Ended { pid, tid, time_ns } })
}

/// Its time is among what samples have too, which lies at the end in another order: thread, time, CPU, identifier.
fn executed(body: &[u8], fields: Fields) -> Option<Record<'static>> {
    let (pid, tid) = halves(take(&mut &body[..])?);
    let behind = [Fields::TIME, Fields::CPU, Fields::IDENTIFIER].into_iter().filter(|field| fields.has(*field)).count();
    let at = body.len().checked_sub(8 * behind).filter(|_| fields.has(Fields::TIME))?;
    Some(Record::Executed { pid, tid, time_ns: take(&mut &body[at..])? })
}

/// In the order in which the kernel writes them.
fn sample<'a>(body: &mut &'a [u8], misc: u16, fields: Fields, registers: u64) -> Option<Sample<'a>> {
    let mut sample = Sample { user: misc & MODE_MASK == USER_MODE, ..Sample::default() };
    if fields.has(Fields::IDENTIFIER) {
        sample.id = take(body)?;
    }
    if fields.has(Fields::IP) {
        sample.ip = take(body)?;
    }
    if fields.has(Fields::THREAD) {
        (sample.pid, sample.tid) = halves(take(body)?);
    }
    if fields.has(Fields::TIME) {
        sample.time_ns = take(body)?;
    }
    if fields.has(Fields::ADDRESS) {
        sample.address = take(body)?;
    }
    if fields.has(Fields::CPU) {
        (sample.cpu, _) = halves(take(body)?);
    }
    if fields.has(Fields::PERIOD) {
        sample.period = take(body)?;
    }
    if fields.has(Fields::RAW) {
        let bytes = u32::from_ne_bytes(body.get(..4)?.try_into().ok()?) as usize;
        sample.raw = body.get(4..4 + bytes)?;
        // Padded so that it ends at a multiple of 8 together with its length.
        *body = body.get((4 + bytes).next_multiple_of(8)..)?;
    }
    if fields.has(Fields::REGISTERS) && take(body)? != ABI_NONE {
        sample.registers = (0..registers.count_ones()).map(|_| take(body)).collect::<Option<_>>()?;
    }
    Some(sample)
}

fn take(body: &mut &[u8]) -> Option<u64> {
    let (first, rest) = body.split_first_chunk::<8>()?;
    *body = rest;
    Some(u64::from_ne_bytes(*first))
}

/// Two numbers of 32 bits that lie one behind the other.
fn halves(word: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    (u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]))
}

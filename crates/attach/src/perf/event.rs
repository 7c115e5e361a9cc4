//! One event: what it is of, on whom it is, and the switches it has.
#![allow(unsafe_code)] // two ioctls that the package lacks; naming a descriptor that it lends as a number

use super::records::Fields;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::{ioctl_write_int_bad, request_code_none};
use perf_event::{Builder, Clock, Counter};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

/// `PERF_TYPE_SOFTWARE`, `_TRACEPOINT` and `_BREAKPOINT` of `linux/perf_event.h`: the other numbers are other events.
const SOFTWARE: u32 = 1;
const TRACEPOINT: u32 = 2;
const BREAKPOINT: u32 = 5;
/// `PERF_COUNT_SW_CPU_CLOCK` and `_DUMMY`.
const CPU_CLOCK: u64 = 0;
const DUMMY: u64 = 9;
/// `HW_BREAKPOINT_W` and `_RW` of `linux/hw_breakpoint.h`. There is none that reads alone: x86 has no such register.
const WRITE: u32 = 2;
const READ_WRITE: u32 = 3;

ioctl_write_int_bad!(refresh, request_code_none!(b'$', 2));
ioctl_write_int_bad!(output, request_code_none!(b'$', 5));

/// Which accesses a hardware breakpoint stops at.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Access {
    /// Writes, and the writing half of a read-modify-write.
    Write,
    /// Either.
    ReadWrite,
}

/// What an event is of.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A timer of the thread's own CPU time; the period is in nanoseconds.
    CpuClock,
    /// Nothing: an owner for a ring that other events write to.
    Nothing,
    /// Nothing itself; a record where the thread begins another, ends, or executes another program.
    Life,
    /// A software event by its number (`PERF_COUNT_SW_…`).
    Software(u64),
    /// A tracepoint by the number that tracefs has for it.
    Tracepoint(u64),
    /// An instruction of a program or library, by its place in the file: a trap, or where it is a nop of five bytes a call.
    Instruction {
        /// The number of the kernel's `uprobe` unit.
        unit: u32,
        /// A descriptor of the file, open until the event is.
        file: RawFd,
        /// Of the instruction's first byte in the file.
        offset: u64,
    },
    /// A hardware breakpoint on data.
    Breakpoint {
        /// First address, a multiple of `bytes`.
        address: u64,
        /// 1, 2, 4 or 8.
        bytes: u64,
        /// What it stops at.
        access: Access,
    },
}

/// On whom an event is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Whom {
    /// A thread, on whatever CPU it runs.
    Thread(u32),
    /// A thread while it is on that CPU. With [`Order::inherit`] this alone can have a ring.
    ThreadOn(u32, u32),
}

/// What is asked of the kernel. Events are opened switched off.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Order {
    /// What it is of.
    pub(crate) source: Source,
    /// A record each so many; 0 counts and writes none.
    pub(crate) period: u64,
    /// What stands in each record.
    pub(crate) fields: Fields,
    /// Which of the user's registers, as bits of the kernel's numbering, where [`Fields::REGISTERS`] is among the fields.
    pub(crate) registers: u64,
    /// Whether threads and processes that it starts later are included.
    pub(crate) inherit: bool,
    /// Whether what happens in the kernel counts.
    pub(crate) kernel: bool,
}

/// An open event, switched off until [`Event::enable`] or [`Event::refresh`]; closed when dropped.
#[derive(Debug)]
pub(crate) struct Event {
    counter: Counter,
}

impl Event {
    /// Opens it. A breakpoint ends where its thread executes another program (its address would mean something else
    /// there), on kernels from 5.13 on.
    ///
    /// # Errors
    /// ESRCH: the thread has ended, an outcome. ENOSPC: its breakpoints are all in use. EACCES, EPERM: not permitted.
    /// EMFILE: no descriptor is left. The others are perf_event_open(2)'s.
    pub(crate) fn open(order: &Order, whom: Whom) -> Result<Event, Errno> {
        match Event::open_once(order, whom, true) {
            // An older kernel does not know the flag.
            Err(Errno::E2BIG | Errno::EINVAL) if is_breakpoint(order) => Event::open_once(order, whom, false),
            result => result,
        }
    }

    fn open_once(order: &Order, whom: Whom, end_on_exec: bool) -> Result<Event, Errno> {
        let mut builder = Builder::new();
        builder.exclude_kernel(!order.kernel).exclude_hv(false).clockid(Clock::MONOTONIC).enabled(false);
        builder.inherit(order.inherit).remove_on_exec(end_on_exec && is_breakpoint(order));
        let path = match order.source {
            // The file that is open, whatever its name stands for by now.
            Source::Instruction { file, .. } => format!("/proc/self/fd/{file}\0"),
            _ => String::new(),
        };
        let raw = builder.attrs_mut();
        match order.source {
            Source::CpuClock => (raw.type_, raw.config) = (SOFTWARE, CPU_CLOCK),
            Source::Nothing => (raw.type_, raw.config) = (SOFTWARE, DUMMY),
            Source::Life => {
                (raw.type_, raw.config) = (SOFTWARE, DUMMY);
                raw.set_task(1);
                raw.set_comm(1);
                raw.set_comm_exec(1);
                // Else the record of an execution has no time.
                raw.set_sample_id_all(1);
            }
            Source::Software(number) => (raw.type_, raw.config) = (SOFTWARE, number),
            Source::Tracepoint(number) => (raw.type_, raw.config) = (TRACEPOINT, number),
            Source::Instruction { unit, offset, .. } => {
                // Bit 0 would put it at the function's return.
                (raw.type_, raw.config) = (unit, 0);
                raw.__bindgen_anon_3.uprobe_path = path.as_ptr() as u64; // read in `build` below
                raw.__bindgen_anon_4.probe_offset = offset;
            }
            Source::Breakpoint { address, bytes, access } => {
                (raw.type_, raw.config) = (BREAKPOINT, 0);
                raw.bp_type = if access == Access::Write { WRITE } else { READ_WRITE };
                raw.__bindgen_anon_3.bp_addr = address;
                raw.__bindgen_anon_4.bp_len = bytes;
            }
        }
        raw.__bindgen_anon_1.sample_period = order.period;
        raw.sample_type = order.fields.bits();
        raw.sample_regs_user = if order.fields.has(Fields::REGISTERS) { order.registers } else { 0 };
        // Nobody sleeps on it: woken at its end.
        raw.set_watermark(1);
        raw.__bindgen_anon_2.wakeup_watermark = u32::MAX;
        let number = |id: u32| i32::try_from(id).map_err(|_| Errno::ESRCH);
        let builder = match whom {
            Whom::Thread(tid) => builder.observe_pid(number(tid)?).any_cpu(),
            Whom::ThreadOn(tid, cpu) => builder.observe_pid(number(tid)?).one_cpu(cpu as usize),
        };
        let counter = builder.build().map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))?;
        let event = Event { counter };
        // The package opens without the flag.
        fcntl(event.as_fd(), FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
        Ok(event)
    }

    /// The identifier that its records begin with.
    pub(crate) fn id(&self) -> u64 {
        self.counter.id()
    }

    /// Switches it on.
    pub(crate) fn enable(&mut self) -> Result<(), Errno> {
        self.counter.enable().map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))
    }

    /// Switches it off.
    pub(crate) fn disable(&mut self) -> Result<(), Errno> {
        self.counter.disable().map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))
    }

    /// Switches it on for so many records, at least one; then the kernel switches it off by itself. Once: a breakpoint that
    /// it has switched off does not come on again (Linux 6.18), and is opened anew.
    pub(crate) fn refresh(&self, records: i32) -> Result<(), Errno> {
        // SAFETY: PERF_EVENT_IOC_REFRESH takes a number and no pointer; `self` owns the descriptor for the call.
        unsafe { refresh(self.counter.as_raw_fd(), records.max(1)) }.map(drop)
    }

    /// Has its records written to the ring of `owner`, which is on the same thread or the same CPU.
    pub(crate) fn write_to(&self, owner: &Event) -> Result<(), Errno> {
        // SAFETY: PERF_EVENT_IOC_SET_OUTPUT takes a descriptor's number; both are owned for the call.
        unsafe { output(self.counter.as_raw_fd(), owner.counter.as_raw_fd()) }.map(drop)
    }

    /// How often it happened while it was on, on the thread and on those that inherited it.
    pub(crate) fn count(&mut self) -> Result<u64, Errno> {
        self.counter.read().map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: `self` owns the descriptor and is borrowed for as long as what is returned lives.
        unsafe { BorrowedFd::borrow_raw(self.counter.as_raw_fd()) }
    }
}

fn is_breakpoint(order: &Order) -> bool {
    matches!(order.source, Source::Breakpoint { .. })
}

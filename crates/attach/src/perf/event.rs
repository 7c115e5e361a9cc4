//! One event: what it is of, on whom it is, and the switches it has.
#![allow(unsafe_code)] // perf_event_open and its ioctls: the package opens without close-on-exec, and lacks two of them

use super::records::Fields;
use nix::errno::Errno;
use nix::{ioctl_read, ioctl_write_int_bad, request_code_none};
use perf_event::{Builder, Clock};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

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

/// `PERF_FLAG_FD_CLOEXEC`: at once, for programs that other threads start meanwhile would keep the event open.
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

ioctl_write_int_bad!(on, request_code_none!(b'$', 0));
ioctl_write_int_bad!(off, request_code_none!(b'$', 1));
ioctl_write_int_bad!(refresh, request_code_none!(b'$', 2));
ioctl_write_int_bad!(output, request_code_none!(b'$', 5));
ioctl_read!(identifier, b'$', 7, *mut u64);

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
    /// An instruction of a program or library, by its place in the file: a trap, or where it is a nop of five bytes a
    /// call.
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
    /// Which of the user's registers, as bits of the kernel's numbering, where [`Fields::REGISTERS`] is among the
    /// fields.
    pub(crate) registers: u64,
    /// Whether threads and processes that it starts later are included.
    pub(crate) inherit: bool,
    /// Whether what happens in the kernel counts.
    pub(crate) kernel: bool,
}

/// An open event, switched off until [`Event::enable`] or [`Event::refresh`]; closed when dropped.
#[derive(Debug)]
pub(crate) struct Event {
    fd: OwnedFd,
    id: u64,
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
        let number = |id: u32| libc::c_int::try_from(id).map_err(|_| Errno::ESRCH);
        let (thread, cpu) = match whom {
            Whom::Thread(tid) => (number(tid)?, -1),
            Whom::ThreadOn(tid, cpu) => (number(tid)?, number(cpu)?),
        };
        let path = match order.source {
            // The file that is open, whatever its name stands for by now.
            Source::Instruction { file, .. } => format!("/proc/self/fd/{file}\0"),
            _ => String::new(),
        };
        let builder = attributes(order, end_on_exec, &path);
        let attributes = std::ptr::from_ref(builder.attrs());
        let group: libc::c_int = -1;
        // SAFETY: `attributes` is the kernel's struct with its size in it, in `builder`, and `path`, which it may point
        // to, ends in 0; both live until the call has returned. The kernel makes the descriptor for this call alone.
        let fd = unsafe {
            let fd = libc::syscall(libc::SYS_perf_event_open, attributes, thread, cpu, group, CLOSE_ON_EXEC);
            OwnedFd::from_raw_fd(Errno::result(fd)? as RawFd)
        };
        let mut id = 0;
        // SAFETY: PERF_EVENT_IOC_ID writes a number of 64 bits; `fd` and `id` live for the call.
        unsafe { identifier(fd.as_raw_fd(), std::ptr::from_mut(&mut id).cast())? };
        Ok(Event { fd, id })
    }

    /// The identifier that its records begin with.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Switches it on.
    pub(crate) fn enable(&self) -> Result<(), Errno> {
        // SAFETY: PERF_EVENT_IOC_ENABLE takes a number and no pointer; `self` owns the descriptor for the call.
        unsafe { on(self.fd.as_raw_fd(), 0) }.map(drop)
    }

    /// Switches it off.
    pub(crate) fn disable(&self) -> Result<(), Errno> {
        // SAFETY: as above, of PERF_EVENT_IOC_DISABLE.
        unsafe { off(self.fd.as_raw_fd(), 0) }.map(drop)
    }

    /// Switches it on for so many records, at least one; then the kernel switches it off by itself. Once: a breakpoint
    /// that it has switched off does not come on again (Linux 6.18), and is opened anew.
    pub(crate) fn refresh(&self, records: i32) -> Result<(), Errno> {
        // SAFETY: PERF_EVENT_IOC_REFRESH takes a number and no pointer; `self` owns the descriptor for the call.
        unsafe { refresh(self.fd.as_raw_fd(), records.max(1)) }.map(drop)
    }

    /// Has its records written to the ring of `owner`, which is on the same thread or the same CPU.
    pub(crate) fn write_to(&self, owner: &Event) -> Result<(), Errno> {
        // SAFETY: PERF_EVENT_IOC_SET_OUTPUT takes a descriptor's number; both are owned for the call.
        unsafe { output(self.fd.as_raw_fd(), owner.fd.as_raw_fd()) }.map(drop)
    }

    /// How often it happened while it was on, on the thread and on those that inherited it.
    pub(crate) fn count(&self) -> Result<u64, Errno> {
        // The count comes first, whichever times stand behind it.
        let mut value = [0; 24];
        let read = nix::unistd::read(&self.fd, &mut value)?;
        let first = value.first_chunk::<8>().filter(|_| read >= 8).ok_or(Errno::EIO)?;
        Ok(u64::from_ne_bytes(*first))
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// What the kernel is told; `path` is the file of [`Source::Instruction`], as a string that ends in 0, and must live as
/// long as what is returned.
fn attributes(order: &Order, end_on_exec: bool, path: &str) -> Builder<'static> {
    let mut builder = Builder::new();
    builder.exclude_kernel(!order.kernel).exclude_hv(false).clockid(Clock::MONOTONIC).enabled(false);
    builder.inherit(order.inherit).remove_on_exec(end_on_exec && is_breakpoint(order));
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
            raw.__bindgen_anon_3.uprobe_path = path.as_ptr() as u64; // read by the call that opens it
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
    builder
}

fn is_breakpoint(order: &Order) -> bool {
    matches!(order.source, Source::Breakpoint { .. })
}

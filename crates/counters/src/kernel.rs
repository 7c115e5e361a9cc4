//! The real thing: perf_event_open(2) through the `perf-event` package.
//!
//! The members of a group are always on, and its leader alone is switched. The kernel puts a group on its counters when
//! the leader is enabled; a member that is enabled by itself later is put there only if its unit is the one whose
//! events the kernel then sorts anew, which a unit in another's company (`msr` behind a software leader) is not: it
//! would count from the next context switch on, while the group's times say that it had counted all along.
//!
//! # References
//! `kernel/events/core.c`: __perf_event_enable, ctx_resched, group_sched_in.
#![allow(unsafe_code)] // naming a descriptor that the package lends as a number; two ioctls that it does for whole groups

use crate::event::{Attr, Event};
use crate::pmu::{Group, Pmu, Refused, Totals};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use perf_event::{Builder, Counter};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Counts on the calling thread, on whatever CPU it runs.
pub(crate) struct Kernel;

impl Pmu for Kernel {
    fn open_group(&mut self, events: &[Event]) -> Result<Box<dyn Group>, Refused> {
        // The group's own placeholder is a software event, so it opens wherever perf events are allowed at all.
        let mut group = perf_event::Group::new().map_err(|error| Refused { at: 0, errno: errno(&error) })?;
        close_on_exec(&group).map_err(|errno| Refused { at: 0, errno })?;
        let mut members = Vec::with_capacity(events.len());
        for (at, event) in events.iter().enumerate() {
            // A member that fails leaves the group in a state in which perf-event panics on reading it; the whole
            // group is dropped instead.
            let member = builder(&event.attr).group(&mut group).build();
            let member = member.map_err(|error| Refused { at, errno: errno(&error) })?;
            close_on_exec(&member).map_err(|errno| Refused { at, errno })?;
            set_filter(&member, event).map_err(|errno| Refused { at, errno })?;
            members.push(member);
        }
        Ok(Box::new(OpenGroup { group, members }))
    }
}

/// The package opens without the flag, and the coordinator starts workers while it holds events.
pub(crate) fn close_on_exec(open: &impl AsRawFd) -> Result<(), Errno> {
    // SAFETY: `open` owns the descriptor and is borrowed for as long as the number is used.
    let descriptor = unsafe { BorrowedFd::borrow_raw(open.as_raw_fd()) };
    fcntl(descriptor, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).map(drop)
}

/// The package names generic events alone, so the numbers are written where it would have written its own.
pub(crate) fn builder(attr: &Attr) -> Builder<'static> {
    let mut builder = Builder::new();
    let raw = builder.attrs_mut();
    (raw.type_, raw.config) = (attr.kind, attr.config);
    raw.__bindgen_anon_3.config1 = attr.config1;
    raw.__bindgen_anon_4.config2 = attr.config2;
    // As perf has it: the hypervisor is left out with either mode. Units such as `msr` refuse an event that leaves out
    // anything.
    raw.set_exclude_hv(u64::from(attr.exclude_user || attr.exclude_kernel));
    // The leader says when.
    raw.set_disabled(0);
    builder.exclude_user(attr.exclude_user).exclude_kernel(attr.exclude_kernel);
    builder
}

fn set_filter(member: &Counter, event: &Event) -> Result<(), Errno> {
    let Some(filter) = &event.filter else { return Ok(()) };
    let text = CString::new(filter.as_str()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: PERF_EVENT_IOC_SET_FILTER reads a string that ends in 0, which `text` owns for the call; `member` owns
    // the descriptor.
    unsafe { switch::filter(member.as_raw_fd(), text.as_ptr()) }.map(drop)
}

/// Leader and members; both live as long as the group is read.
struct OpenGroup {
    group: perf_event::Group,
    members: Vec<Counter>,
}

/// The ioctls of `linux/perf_event.h`, with the argument 0: for this event and not for its group's members.
pub(crate) mod switch {
    use nix::{request_code_none, request_code_write};
    use std::ffi::c_char;
    nix::ioctl_write_int_bad!(on, request_code_none!(b'$', 0));
    nix::ioctl_write_int_bad!(off, request_code_none!(b'$', 1));
    nix::ioctl_write_int_bad!(output, request_code_none!(b'$', 5));
    nix::ioctl_write_ptr_bad!(filter, request_code_write!(b'$', 6, size_of::<*mut c_char>()), c_char);
}

impl Group for OpenGroup {
    fn enable(&mut self) -> Result<(), Errno> {
        // SAFETY: PERF_EVENT_IOC_ENABLE takes a number and no pointer; `self.group` owns the descriptor.
        unsafe { switch::on(self.group.as_raw_fd(), 0) }.map(drop)
    }

    fn disable(&mut self) -> Result<(), Errno> {
        // SAFETY: as above, of PERF_EVENT_IOC_DISABLE.
        unsafe { switch::off(self.group.as_raw_fd(), 0) }.map(drop)
    }

    fn read(&mut self) -> Result<Totals, Errno> {
        let counts = self.group.read().map_err(|error| errno(&error))?;
        Ok(Totals {
            time_enabled_ns: counts.time_enabled(),
            time_running_ns: counts.time_running(),
            values: self.members.iter().map(|member| counts[member]).collect(),
        })
    }
}

pub(crate) fn errno(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(0))
}

//! Events that write a record into memory shared with the kernel each time they happen.
//!
//! # References
//! perf_event_open(2), "MMAP layout", PERF_EVENT_IOC_SET_OUTPUT.
#![allow(unsafe_code)] // a mapping that the kernel writes; ioctls

use super::Together;
use crate::event::Event;
use crate::kernel::{self, switch};
use nix::errno::Errno;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::time::{ClockId, clock_gettime};
use perf_event::Counter;
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

const PAGE_BYTES: usize = 4096;
/// Of 80 bytes a shootdown, an interrupt and a flush: room for 26,000 in a window.
const LOG_BYTES: usize = 2 << 20;
/// With stacks of some 20 frames it is 450 bytes.
const STACKS_BYTES: usize = 8 << 20;
/// A log smaller than this is not worth having.
const LEAST_BYTES: usize = 64 << 10;
/// Frames kept of a stack. The kernel's own limit (`kernel.perf_event_max_stack`) is 127: no path to a flush is as deep
/// as half of this, but for interrupts of interrupts.
const FRAMES: u16 = 48;
/// PERF_SAMPLE_TIME, PERF_SAMPLE_RAW and PERF_SAMPLE_CALLCHAIN of `linux/perf_event.h`: others would write other
/// records.
const TIME: u64 = 1 << 2;
const CALLCHAIN: u64 = 1 << 5;
const RAW: u64 = 1 << 10;
/// CLOCK_MONOTONIC_RAW of `linux/time.h`: the one that runs by the same crystal as the counter and is never slewed.
const RAW_CLOCK: i32 = 4;
/// `data_head` in `struct perf_event_mmap_page`: how many bytes have been written.
const HEAD_AT: usize = 1024;
/// Readings of both clocks of which the closest together counts.
const TRIES: u32 = 8;

/// A log that was refused.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogRefused {
    /// Index of the event at which it was.
    pub(crate) at: usize,
    pub(crate) errno: Errno,
    /// The memory asked for, where that was refused rather than an event.
    pub(crate) bytes: Option<usize>,
}

/// Open events that share a log, which only the kernel writes.
pub(crate) struct Ring {
    counters: Vec<Counter>,
    base: NonNull<c_void>,
    mapped: NonZeroUsize,
}

impl Ring {
    /// Opens the events on the calling thread, switched off, with the kernel's stack in each record where `stacks`.
    /// `None` where there are no events.
    pub(crate) fn open(events: &[Event], stacks: bool) -> Result<Option<Ring>, LogRefused> {
        let mut counters: Vec<Counter> = Vec::with_capacity(events.len());
        for (at, event) in events.iter().enumerate() {
            let refused = |errno| LogRefused { at, errno, bytes: None };
            let mut builder = kernel::builder(&event.attr);
            let raw = builder.attrs_mut();
            raw.set_disabled(1);
            raw.__bindgen_anon_1.sample_period = 1;
            raw.sample_type = TIME | RAW | if stacks { CALLCHAIN } else { 0 };
            raw.sample_max_stack = if stacks { FRAMES } else { 0 };
            raw.set_exclude_callchain_user(1);
            raw.set_use_clockid(1);
            raw.clockid = RAW_CLOCK;
            // Nobody waits for it: woken at its end.
            raw.set_watermark(1);
            raw.__bindgen_anon_2.wakeup_watermark = u32::MAX;
            let counter = builder.build().map_err(|error| refused(kernel::errno(&error)))?;
            kernel::close_on_exec(&counter).map_err(refused)?;
            counters.push(counter);
        }
        let Some(first) = counters.first() else { return Ok(None) };
        let (base, mapped) = map(first, if stacks { STACKS_BYTES } else { LOG_BYTES })?;
        let ring = Ring { base, mapped, counters };
        let to = ring.counters[0].as_raw_fd();
        for (at, counter) in ring.counters.iter().enumerate().skip(1) {
            // SAFETY: PERF_EVENT_IOC_SET_OUTPUT takes a descriptor's number; `counters` owns both for the call.
            let redirected = unsafe { switch::output(counter.as_raw_fd(), to) };
            redirected.map_err(|errno| LogRefused { at, errno, bytes: None })?;
        }
        Ok(Some(ring))
    }

    /// Switches all events.
    pub(crate) fn switch(&mut self, on: bool) -> Result<(), Errno> {
        self.counters.iter().try_for_each(|counter| {
            // SAFETY: PERF_EVENT_IOC_ENABLE and _DISABLE take a number and no pointer; `counter` owns the descriptor.
            unsafe {
                match on {
                    true => switch::on(counter.as_raw_fd(), 0),
                    false => switch::off(counter.as_raw_fd(), 0),
                }
            }
            .map(drop)
        })
    }

    /// What has been written; to be asked while the events are off.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let room = self.mapped.get() - PAGE_BYTES;
        let base = self.base.cast::<u8>().as_ptr();
        // SAFETY: the first page of the mapping, which lives as long as `self`, holds the head at a multiple of 8,
        // which the kernel alone writes. Acquire pairs with its release store behind each record.
        let head = unsafe { (*base.add(HEAD_AT).cast::<AtomicU64>()).load(Ordering::Acquire) };
        let written = usize::try_from(head).unwrap_or(room).min(room);
        let mut copy = vec![0; written];
        // SAFETY: `written` bytes lie behind the first page, inside the mapping. The kernel has written them and writes
        // none again: nothing is ever consumed, so it stops where the log is full.
        unsafe { std::ptr::copy_nonoverlapping(base.add(PAGE_BYTES), copy.as_mut_ptr(), written) };
        copy
    }

    /// How often the events happened, those that found the log full included.
    pub(crate) fn counted(&self) -> Result<u64, Errno> {
        let mut sum = 0u64;
        for counter in &self.counters {
            let mut value = [0u8; 24];
            // SAFETY: `counter` owns the descriptor and is borrowed for as long as the number is used.
            let descriptor = unsafe { BorrowedFd::borrow_raw(counter.as_raw_fd()) };
            // The value comes first, whichever times the package asks for behind it.
            if nix::unistd::read(descriptor, &mut value)? < 8 {
                return Err(Errno::EIO);
            }
            let (first, _) = value.split_first_chunk::<8>().ok_or(Errno::EIO)?;
            sum = sum.saturating_add(u64::from_ne_bytes(*first));
        }
        Ok(sum)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `open`, to which `self` holds the only pointer.
        let _ = unsafe { munmap(self.base, self.mapped.get()) };
    }
}

/// Maps a log of so many bytes, a power of two of pages, or of the largest part of it that this process may lock.
fn map(counter: &Counter, mut bytes: usize) -> Result<(NonNull<c_void>, NonZeroUsize), LogRefused> {
    loop {
        let length = NonZeroUsize::MIN.saturating_add(bytes + PAGE_BYTES - 1);
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: `counter` owns the descriptor for the call; a new mapping at an address of the kernel's choice.
        let mapped = unsafe {
            let descriptor = BorrowedFd::borrow_raw(counter.as_raw_fd());
            mmap(None, length, protection, MapFlags::MAP_SHARED, descriptor, 0)
        };
        match mapped {
            Ok(base) => return Ok((base, length)),
            Err(Errno::EPERM | Errno::ENOMEM) if bytes > LEAST_BYTES => bytes /= 2,
            Err(errno) => return Err(LogRefused { at: 0, errno, bytes: Some(bytes) }),
        }
    }
}

/// Both clocks at one moment: of several readings the one with the least time between two of the worker's clock.
pub(super) fn together(clock: fn() -> u64) -> Option<Together> {
    let reading = |_| {
        let before = clock();
        let raw = clock_gettime(ClockId::CLOCK_MONOTONIC_RAW).ok()?;
        let apart = clock().wrapping_sub(before);
        let raw_ns = u64::try_from(raw.tv_sec()).ok()? * 1_000_000_000 + u64::try_from(raw.tv_nsec()).ok()?;
        Some((apart, Together { ticks: before + apart / 2, raw_ns }))
    };
    (0..TRIES).filter_map(reading).min_by_key(|(apart, _)| *apart).map(|(_, together)| together)
}

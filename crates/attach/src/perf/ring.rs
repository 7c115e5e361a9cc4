//! Memory into which the kernel writes records, and out of which they are read as they come.
#![allow(unsafe_code)] // a mapping that the kernel writes

use super::event::Event;
use super::records::{self, Fields, Record};
use nix::errno::Errno;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// `data_head` and `data_tail` in `struct perf_event_mmap_page`: how many bytes were written and read in all.
const HEAD_AT: usize = 1024;
const TAIL_AT: usize = 1032;

/// Records of one event, or of several that [`Event::write_to`] its owner.
#[derive(Debug)]
pub(crate) struct Ring {
    base: NonNull<c_void>,
    page_bytes: usize,
    /// Of the records alone; a power of two.
    bytes: usize,
    fields: Fields,
    registers: u64,
    copy: Vec<u8>,
}

impl Ring {
    /// Maps `pages` pages, a power of two, for the records of `owner`; fields and registers are those of its order.
    ///
    /// # Errors
    /// EPERM: this user may lock no more memory (`kernel.perf_event_mlock_kb`). EINVAL: the event is inherited and on
    /// whatever CPU. ENOMEM.
    pub(crate) fn map(owner: &Event, pages: usize, fields: Fields, registers: u64) -> Result<Ring, Errno> {
        let page_bytes = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE)?.ok_or(Errno::EINVAL)?;
        let page_bytes = usize::try_from(page_bytes).map_err(|_| Errno::EINVAL)?;
        let bytes = pages.next_power_of_two() * page_bytes;
        let length = NonZeroUsize::new(bytes + page_bytes).ok_or(Errno::EINVAL)?;
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping of an open event at an address of the kernel's choice; `drop` alone unmaps it.
        let base = unsafe { mmap(None, length, protection, MapFlags::MAP_SHARED, owner.as_fd(), 0)? };
        Ok(Ring { base, page_bytes, bytes, fields, registers, copy: Vec::new() })
    }

    /// Hands on what was written since the last time, oldest first. A record that cannot be read ends the stretch, the
    /// rest of which is counted lost as one record.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(Record<'_>)) {
        self.copy_out();
        let mut log = &self.copy[..];
        while !log.is_empty() {
            match records::next(&mut log, self.fields, self.registers) {
                Some(Some(record)) => each(record),
                Some(None) => {}
                None => {
                    each(Record::Lost(1));
                    return;
                }
            }
        }
    }

    /// Copies what was written and gives the room back to the kernel.
    fn copy_out(&mut self) {
        let head = self.position(HEAD_AT).load(Ordering::Acquire); // pairs with the kernel's barrier behind each record
        let tail = self.position(TAIL_AT).load(Ordering::Relaxed); // written by this thread alone
        let written = usize::try_from(head.wrapping_sub(tail)).unwrap_or(self.bytes).min(self.bytes);
        let start = (tail % self.bytes as u64) as usize;
        let first = written.min(self.bytes - start);
        self.copy.resize(written, 0);
        let data = self.base.cast::<u8>().as_ptr().wrapping_add(self.page_bytes);
        // SAFETY: `start + first` and `written - first` are at most `bytes`, the length of the mapping behind its first
        // page. The kernel does not write between tail and head until the tail is moved below.
        unsafe {
            std::ptr::copy_nonoverlapping(data.add(start), self.copy.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(data, self.copy.as_mut_ptr().add(first), written - first);
        }
        self.position(TAIL_AT).store(head, Ordering::Release); // pairs with the kernel's load before it writes again
    }

    fn position(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the mapping's first page, alive as long as `self`, holds both positions at multiples of 8; the kernel
        // and this process access them atomically alone.
        unsafe { &*self.base.cast::<u8>().as_ptr().add(at).cast::<AtomicU64>() }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map`, to which `self` holds the only pointer.
        let _ = unsafe { munmap(self.base, self.bytes + self.page_bytes) };
    }
}

//! Which pages of this process's memory are there: for tests.

use plan::PAGE_BYTES;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// How many of the pages at these addresses are there: bit 63 of an entry of `/proc/self/pagemap`
/// (proc_pid_pagemap(5)).
pub(crate) fn present(addresses: &Range<usize>) -> usize {
    let page = PAGE_BYTES as usize;
    let mut entries = vec![0u8; addresses.len() / page * 8];
    let pagemap = std::fs::File::open("/proc/self/pagemap").expect("procfs");
    pagemap.read_exact_at(&mut entries, (addresses.start / page * 8) as u64).expect("an entry for every page");
    entries.chunks_exact(8).filter(|entry| entry[7] & 0x80 != 0).count()
}

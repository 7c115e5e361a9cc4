//! The processes that are watched, each held by a pidfd that was opened before its maps were read: what is read and opened
//! belongs to that process and to none that got its number later.

use record::SegmentMapping;
use std::os::fd::OwnedFd;

/// One process that maps the segment.
#[derive(Debug)]
pub struct Target {
    /// Its number here.
    pub pid: u32,
    /// Becomes readable when it ends.
    pub pidfd: OwnedFd,
    /// Where the segment lies in it, ascending by address.
    pub mappings: Vec<SegmentMapping>,
    /// Bits of its addresses: 32 or 64.
    pub address_bits: u32,
    /// Its threads when it was found, ascending.
    pub threads: Vec<u32>,
}

impl Target {
    /// Offset in the segment of an address in that process; `None` outside of its mappings.
    pub fn offset(&self, address: u64) -> Option<u64> {
        let holds = |one: &&SegmentMapping| (one.address..one.address + one.bytes).contains(&address);
        self.mappings.iter().find(holds).map(|one| address - one.address + one.offset)
    }

    /// The addresses at which that process has an offset of the segment; none where it does not map it.
    pub fn addresses(&self, offset: u64) -> impl Iterator<Item = u64> {
        let holds = move |one: &&SegmentMapping| (one.offset..one.offset + one.bytes).contains(&offset);
        self.mappings.iter().filter(holds).map(move |one| offset - one.offset + one.address)
    }
}

/// What is watched: the segment and those who map it.
#[derive(Debug)]
pub struct Targets {
    /// The segment.
    pub segment: record::AttachedSegment,
    /// Ascending by pid.
    pub processes: Vec<Target>,
}

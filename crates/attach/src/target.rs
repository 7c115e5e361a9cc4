//! The processes that are watched, each held by a pidfd that was opened before its maps were read: what is read and opened
//! belongs to that process and to none that got its number later.

use crate::pidfd;
use crate::segment::{self, Key};
use host::{Mapping, Mappings, Root};
use record::SegmentMapping;
use std::io;
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

    /// The same process once more, for a step that runs beside others.
    ///
    /// # Errors
    /// Where no file descriptor is left.
    pub fn try_clone(&self) -> io::Result<Target> {
        let (pid, address_bits) = (self.pid, self.address_bits);
        let pidfd = self.pidfd.try_clone()?;
        Ok(Target { pid, pidfd, address_bits, mappings: self.mappings.clone(), threads: self.threads.clone() })
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

/// What became of looking at a process.
pub(crate) enum Looked {
    /// It maps the segment.
    Maps(Box<Target>, Mappings),
    /// It does not.
    Elsewhere,
    /// There is no such process, or it has ended.
    Gone,
    /// This process may not look.
    Closed,
}

/// Opens process `pid`, then reads where it maps the segment of `key`, then looks whether it still lives: so what was read
/// is that process's.
pub(crate) fn look(root: &Root, pid: u32, key: Key) -> Looked {
    match pidfd::open(pid) {
        Ok(pidfd) => look_through(root, pid, pidfd, key),
        Err(_) => Looked::Gone,
    }
}

fn look_through(root: &Root, pid: u32, pidfd: OwnedFd, key: Key) -> Looked {
    let looked = match host::mappings(root, pid) {
        Ok(seen) => {
            let (mappings, address_bits) = (of_segment(&seen, key), seen.address_bits().unwrap_or(u64::BITS));
            if mappings.is_empty() {
                return Looked::Elsewhere;
            }
            let threads = host::thread_numbers(root, pid);
            Looked::Maps(Box::new(Target { pid, pidfd, mappings, address_bits, threads }), seen)
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Looked::Closed,
        Err(_) => return Looked::Gone,
    };
    match &looked {
        Looked::Maps(target, _) if pidfd::has_ended(&target.pidfd) => Looked::Gone,
        _ => looked,
    }
}

/// Where a process has the segment.
pub(crate) fn of_segment(seen: &Mappings, key: Key) -> Vec<SegmentMapping> {
    seen.shared().filter(|mapping| segment::key(mapping) == key).map(mapping).collect()
}

pub(crate) fn mapping(of: &Mapping) -> SegmentMapping {
    SegmentMapping { address: of.address, bytes: of.bytes, offset: of.offset, writable: of.writable }
}

#[cfg(test)]
mod tests {
    use super::{Looked, Target, look, look_through};
    use crate::pidfd;
    use host::Root;
    use record::SegmentMapping;

    /// A segment mapped twice, the second time from its second page on.
    fn target() -> Target {
        let of = |address, offset| SegmentMapping { address, bytes: 0x2000, offset, writable: true };
        let pid = std::process::id();
        let pidfd = pidfd::open(pid).expect("this process");
        Target {
            pid,
            pidfd,
            mappings: vec![of(0x10_0000, 0), of(0x20_0000, 0x1000)],
            address_bits: 64,
            threads: vec![pid],
        }
    }

    #[test]
    fn an_offset_has_an_address_in_each_mapping_that_holds_it() {
        let target = target();
        assert_eq!((target.offset(0x10_0040), target.offset(0x20_0040)), (Some(0x40), Some(0x1040)));
        assert_eq!((target.offset(0x10_2000), target.offset(0xf_ffff)), (None, None));
        assert_eq!(target.addresses(0x1040).collect::<Vec<_>>(), [0x10_1040, 0x20_0040]);
        assert_eq!(target.addresses(0x2fff).collect::<Vec<_>>(), [0x20_1fff]);
        assert_eq!(target.addresses(0x3000).count(), 0);
    }

    #[test]
    fn a_number_that_another_process_got_meanwhile_is_not_taken_for_the_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut first = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().expect("cat");
        let (pid, pidfd) = (first.id(), pidfd::open(first.id()).expect("it lives"));
        let process = folder.path().join(format!("proc/{pid}"));
        std::fs::create_dir_all(&process).expect("a folder");
        std::fs::write(process.join("maps"), "1000-2000 rw-s 00000000 00:1b 42 /dev/shm/ring\n").expect("a file");
        let (root, key) = (Root::at(folder.path()), ((0, 0x1b), 42));
        assert!(matches!(look(&root, pid, key), Looked::Maps(..)), "as long as it lives");
        drop(first.stdin.take());
        first.wait().expect("its end");
        // The number is free now; what its folder says is of whoever has it.
        assert!(matches!(look_through(&root, pid, pidfd, key), Looked::Gone));
    }

    #[test]
    fn a_process_that_is_not_there_or_maps_something_else_is_no_target() {
        let nowhere = ((0xfff, 0xff), 1);
        assert!(matches!(look(&Root::system(), u32::MAX, nowhere), Looked::Gone));
        assert!(matches!(look(&Root::system(), std::process::id(), nowhere), Looked::Elsewhere));
    }
}

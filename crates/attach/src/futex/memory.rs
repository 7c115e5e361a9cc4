//! Reading the memory of the processes that are watched, without stopping them.
//!
//! # References
//! proc_pid_mem(5); ptrace(2), "Ptrace access mode checking".

use crate::Targets;
use crate::target::has_ended;
use host::Root;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The memories of all processes that could be opened. Each stays that process's own: what executes another program or ends
/// has no more to read.
#[derive(Debug)]
pub(super) struct Memory {
    files: BTreeMap<u32, File>,
    /// Those that were refused, by process.
    pub(super) refused: BTreeMap<u32, io::Error>,
}

impl Memory {
    /// Opens them. A process that has ended has none, and no refusal either.
    pub(super) fn open(root: &Root, targets: &Targets) -> Memory {
        let (mut files, mut refused) = (BTreeMap::new(), BTreeMap::new());
        for target in &targets.processes {
            match File::open(root.path(&format!("proc/{}/mem", target.pid))) {
                // Asked behind the opening: while it has not ended, its number is its own.
                Ok(file) if !has_ended(target) => drop(files.insert(target.pid, file)),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    refused.insert(target.pid, error);
                }
                Ok(_) | Err(_) => {}
            }
        }
        Memory { files, refused }
    }

    /// Reads as much as there is from `address` on, at most `bytes`; empty where nothing can be read.
    pub(super) fn read(&self, pid: u32, address: u64, bytes: usize) -> Vec<u8> {
        let mut read = vec![0; bytes];
        let length = self.files.get(&pid).and_then(|file| file.read_at(&mut read, address).ok());
        read.truncate(length.unwrap_or(0));
        read
    }

    /// Reads the segment from `offset` on, by the first process in which that can be done, and with the bits of its
    /// addresses.
    pub(super) fn read_segment(&self, targets: &Targets, offset: u64, bytes: usize) -> Option<(Vec<u8>, u32)> {
        targets.processes.iter().find_map(|target| {
            let address = target.addresses(offset).next()?;
            let read = self.read(target.pid, address, bytes);
            (!read.is_empty()).then_some((read, target.address_bits))
        })
    }
}

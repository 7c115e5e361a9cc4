//! Memory of another process, read a page at a time: its code, its stack, its pointers.

use crate::maps::{self, Mapping};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

const PAGE_BYTES: usize = 4096;
/// Pages kept: 16 MiB a process. Walks of a few hundred instructions need tens.
const PAGES_MAX: usize = 4096;

/// A process's memory as it was when a page of it was first read here: good for code, and for pointers that stay for
/// longer than a loop's pass.
#[derive(Debug)]
pub(crate) struct Memory {
    /// `/proc/PID/mem`; `None` where it may not be read.
    live: Option<File>,
    pid: u32,
    mappings: Vec<Mapping>,
    files: HashMap<String, Option<File>>,
    pages: HashMap<u64, Option<Box<[u8; PAGE_BYTES]>>>,
}

impl Memory {
    /// Of the process of that number, which its pidfd holds.
    pub(crate) fn of(pid: u32) -> Memory {
        let live = File::open(format!("/proc/{pid}/mem")).ok();
        Memory { live, pid, mappings: maps::of(pid), files: HashMap::new(), pages: HashMap::new() }
    }

    /// Where in it which files lie.
    pub(crate) fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// Forgets what was read, code apart from data alike.
    pub(crate) fn forget(&mut self) {
        self.pages.clear();
    }

    /// Fills `into` from `address` on as far as the memory is there; how many bytes.
    pub(crate) fn read(&mut self, address: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            let Some(at) = address.checked_add(done as u64) else { break };
            let within = (at % PAGE_BYTES as u64) as usize;
            let Some(page) = self.page(at - within as u64) else { break };
            let count = (into.len() - done).min(PAGE_BYTES - within);
            into[done..done + count].copy_from_slice(&page[within..within + count]);
            done += count;
        }
        done
    }

    /// A number of that many bytes, at most 8.
    pub(crate) fn number(&mut self, address: u64, bytes: usize) -> Option<u64> {
        let mut word = [0; 8];
        let wanted = word.get_mut(..bytes)?;
        (self.read(address, wanted) == bytes).then(|| u64::from_le_bytes(word))
    }

    /// What stands at the address now, whatever was read before.
    pub(crate) fn now(&self, address: u64, into: &mut [u8]) -> bool {
        self.live.as_ref().is_some_and(|live| live.read_exact_at(into, address).is_ok())
    }

    fn page(&mut self, address: u64) -> Option<&[u8; PAGE_BYTES]> {
        if !self.pages.contains_key(&address) {
            if self.pages.len() >= PAGES_MAX {
                return None;
            }
            let read = self.fetch(address);
            self.pages.insert(address, read);
        }
        self.pages.get(&address)?.as_deref()
    }

    fn fetch(&mut self, address: u64) -> Option<Box<[u8; PAGE_BYTES]>> {
        let mut page = Box::new([0; PAGE_BYTES]);
        if self.now(address, &mut page[..]) {
            return Some(page);
        }
        // Code is also in its file, which may be readable where the process is not.
        let mapping = self.mappings.iter().find(|one| one.executable && one.holds(address))?;
        let (path, offset) = (mapping.path.clone()?, mapping.offset + (address - mapping.start));
        let pid = self.pid;
        let open = || File::open(format!("/proc/{pid}/root{path}")).or_else(|_| File::open(&path)).ok();
        let file = self.files.entry(path.clone()).or_insert_with(open).as_ref()?;
        let read = file.read_at(&mut page[..], offset).ok()?;
        (read > 0).then_some(page)
    }
}

#[cfg(test)]
mod tests {
    use super::Memory;

    #[test]
    fn own_memory_is_read_as_it_is_and_what_is_not_there_is_not() {
        let words: Vec<u64> = (0..2_000).collect();
        let at = words.as_ptr() as u64;
        let mut memory = Memory::of(std::process::id());
        let mut bytes = vec![0; 16_000];
        assert_eq!(memory.read(at, &mut bytes), 16_000, "across pages");
        assert_eq!(&bytes[8 * 1_999..], 1_999u64.to_ne_bytes());
        assert_eq!((memory.number(at + 8 * 7, 8), memory.number(at + 8 * 300, 4)), (Some(7), Some(300)));
        assert_eq!((memory.number(0, 8), memory.number(u64::MAX - 3, 8), memory.number(at, 9)), (None, None, None));
    }
}

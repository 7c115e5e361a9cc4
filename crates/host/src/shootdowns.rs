//! Interrupts by which other CPUs had one CPU forget translations: one figure of `/proc/interrupts`, read often and
//! without allocating.

use crate::root::Root;
use plan::CpuId;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Holds the longest row with room to spare: one of 4096 CPUs has 11 bytes for each.
const BUFFER_BYTES: usize = 128 * 1024;

/// The row's label. Architectures that interrupt for it call it so; others have no such row.
const ROW: &[u8] = b"TLB";

/// `/proc/interrupts`, open for one CPU's figure.
///
/// Reading has the kernel write out every row up to that of the shootdowns, which comes late: 60 µs on a machine of two
/// CPUs, a millisecond or more on one of hundreds.
///
/// # References
/// proc_interrupts(5); `arch/x86/kernel/irq.c` (arch_show_interrupts), `arch/x86/mm/tlb.c` (flush_tlb_func) in the
/// Linux sources: the kernel counts on the CPU that is interrupted, and only what another CPU asked for.
pub struct Shootdowns {
    file: File,
    cpu: CpuId,
    buffer: Box<[u8]>,
}

/// Why shootdown interrupts are not known.
#[derive(Debug, thiserror::Error)]
pub enum ShootdownsError {
    /// There is no such file, or it may not be read.
    #[error("{path} cannot be read: {error}", path = .path.display())]
    Closed {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file has no row of them, or not for this CPU.
    #[error("{path} has no row of TLB shootdowns with a column of CPU {cpu}", path = .path.display())]
    NoRow {
        /// The file.
        path: PathBuf,
        /// The CPU.
        cpu: u32,
    },
}

impl Shootdowns {
    /// Opens the file for `cpu`, and reserves what reading takes.
    ///
    /// # Errors
    /// [`ShootdownsError`]: it cannot be read, or tells nothing of the CPU.
    pub fn open(root: &Root, cpu: CpuId) -> Result<Shootdowns, ShootdownsError> {
        let path = root.path("proc/interrupts");
        let closed = |error| ShootdownsError::Closed { path: path.clone(), error };
        let file = File::open(&path).map_err(closed)?;
        // Written, so that no page is touched first at a window's edge.
        let mut opened = Shootdowns { file, cpu, buffer: vec![1; BUFFER_BYTES].into_boxed_slice() };
        match opened.read().map_err(closed)? {
            Some(_) => Ok(opened),
            None => Err(ShootdownsError::NoRow { path, cpu: cpu.0 }),
        }
    }

    /// Interrupts since boot; `None` where the row, or the CPU's column of it, is gone. Allocates nothing.
    ///
    /// # Errors
    /// Those of pread(2).
    pub fn read(&mut self) -> io::Result<Option<u64>> {
        let Shootdowns { file, cpu, buffer } = self;
        let (mut column, mut offset, mut held) = (None, 0, 0);
        loop {
            let more = file.read_at(&mut buffer[held..], offset)?;
            offset += more as u64;
            held += more;
            let mut begin = 0;
            while let Some(length) = buffer[begin..held].iter().position(|byte| *byte == b'\n') {
                let line = &buffer[begin..begin + length];
                match column {
                    None => column = Some(column_of(line, *cpu)),
                    Some(column) => {
                        if let Some(counts) = counts_of(line) {
                            return Ok(column.and_then(|column| count(counts, column)));
                        }
                    }
                }
                begin += length + 1;
            }
            buffer.copy_within(begin..held, 0);
            held -= begin;
            // At the end of the file, or in a row that no table has.
            if more == 0 || held == buffer.len() {
                return Ok(None);
            }
        }
    }
}

/// Which column the head gives a CPU: those that are offline have none.
fn column_of(head: &[u8], cpu: CpuId) -> Option<usize> {
    let is_of_cpu = |word: &[u8]| word.strip_prefix(b"CPU").and_then(number) == Some(u64::from(cpu.0));
    words(head).position(is_of_cpu)
}

/// What follows the label, if it is the row's.
fn counts_of(line: &[u8]) -> Option<&[u8]> {
    line.trim_ascii_start().strip_prefix(ROW)?.strip_prefix(b":")
}

/// The number in that column; the row ends in words.
fn count(counts: &[u8], column: usize) -> Option<u64> {
    words(counts).nth(column).and_then(number)
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b' ').filter(|word| !word.is_empty())
}

fn number(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Shootdowns, ShootdownsError};
    use crate::fixture::Fixture;
    use crate::root::Root;
    use plan::CpuId;

    fn opened(text: &str, cpu: u32) -> Result<Shootdowns, ShootdownsError> {
        Shootdowns::open(&Fixture::new().file("proc/interrupts", text).root(), CpuId(cpu))
    }

    fn read(text: &str, cpu: u32) -> Option<u64> {
        opened(text, cpu).ok().and_then(|mut opened| opened.read().unwrap())
    }

    #[test]
    fn the_figure_is_the_cpu_s_own_and_offline_cpus_have_no_column() {
        let text = "           CPU0       CPU2       CPU10      \n 24:  1  2  3  PCI-MSI  TLB: 9 9 9\n\
                    TLB:          5         70        800  TLB shootdowns\nERR:          0\n";
        assert_eq!([0, 2, 10].map(|cpu| read(text, cpu)), [Some(5), Some(70), Some(800)]);
        assert!(matches!(opened(text, 1), Err(ShootdownsError::NoRow { cpu: 1, .. })));
    }

    #[test]
    fn a_table_longer_than_the_buffer_is_read_through() {
        let row = format!(" 24: {} 7  device\n", " ".repeat(200_000));
        let rows = format!(" 25: {:>10} {:>10}  device\n", 1, 2).repeat(20_000);
        assert_eq!(read(&format!("CPU0 CPU1\n{rows}TLB: 3 4  TLB shootdowns\n"), 1), Some(4));
        assert_eq!(read(&format!("CPU0 CPU1\n{row}TLB: 3 4  TLB shootdowns\n"), 1), None, "no table has such a row");
    }

    #[test]
    fn what_tells_nothing_says_which_file() {
        for text in ["", "CPU0 CPU1\n", "CPU0\nIPI0: 1  Rescheduling\n", "CPU0\nTLB: x\n", "CPU0\nTLB: 3 4"] {
            let error = opened(text, 0).err().unwrap_or_else(|| panic!("{text:?}"));
            assert!(error.to_string().contains("proc/interrupts has no row of TLB"), "{error}");
        }
        let error = Shootdowns::open(&Fixture::new().root(), CpuId(0)).err().expect("no such file");
        assert!(matches!(error, ShootdownsError::Closed { .. }), "{error}");
    }

    #[test]
    fn the_running_kernel_s_figure_never_falls() {
        let Ok(mut here) = Shootdowns::open(&Root::system(), CpuId(0)) else {
            return testing::skip("/proc/interrupts has no row of TLB shootdowns");
        };
        let first = here.read().unwrap().expect("a figure");
        assert!(here.read().unwrap().expect("a figure") >= first);
    }
}

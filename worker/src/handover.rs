//! What coordinator and worker hand each other: arguments, file descriptors, the Program and the report.
#![allow(unsafe_code)] // adopting descriptors that the coordinator placed by number

use crate::failure::Failure;
use counters::Orders;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use plan::{Program, WorkerProgram};
use record::Trace;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

/// First argument of a worker's command line.
pub const WORKER_ARGUMENT: &str = "__worker";
/// Descriptor of the sealed memfd that holds the encoded Program.
pub const PROGRAM_FD: RawFd = 3;
/// Descriptor of the memfd that takes the report.
pub const REPORT_FD: RawFd = 4;
/// Write end of the pipe on which each worker of a process says, with one byte, that it has attached, or come to a
/// closed gate.
pub const READY_FD: RawFd = 5;
/// Read end of the pipe whose write end lives as long as the coordinator.
pub const LIFE_FD: RawFd = 6;

/// Descriptor of the file that holds the shared regions of small pages ([`Program::shared_file`]), where there are any.
pub const REGIONS_FD: RawFd = 7;
/// The same of those of huge pages.
pub const HUGE_REGIONS_FD: RawFd = 8;

/// A worker process's arguments, after [`WORKER_ARGUMENT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// The segment's name.
    pub segment: String,
    /// The process's number in the Program ([`WorkerProgram::process`]): its workers are this process's.
    pub process: u32,
    /// Slots in the segment.
    pub slots: u32,
    /// The coordinator's process.
    pub parent: i32,
}

impl Arguments {
    /// As a command line.
    pub fn to_strings(&self) -> [String; 5] {
        let Arguments { segment, process, slots, parent } = self;
        [WORKER_ARGUMENT.into(), segment.clone(), process.to_string(), slots.to_string(), parent.to_string()]
    }

    pub(crate) fn parse(arguments: &[String]) -> Option<Arguments> {
        let [segment, process, slots, parent] = arguments else { return None };
        Some(Arguments {
            segment: segment.clone(),
            process: process.parse().ok()?,
            slots: slots.parse().ok()?,
            parent: parent.parse().ok()?,
        })
    }
}

/// What a worker process leaves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Report {
    /// All its workers ran: a trace of each, in order.
    Traces(Vec<Trace>),
    /// One could not.
    Failed {
        /// Its index; `None` where the process failed before any of its workers began.
        worker: Option<u32>,
        /// Why.
        failure: Failure,
    },
}

impl Report {
    pub(crate) fn of_failed(worker: &WorkerProgram, failure: Failure) -> Report {
        Report::Failed { worker: Some(worker.index.0), failure }
    }

    /// Reads a finished process's report; `None` where it left none (it was killed).
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn read(file: &mut File) -> io::Result<Option<Report>> {
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok(postcard::from_bytes(&bytes).ok())
    }
}

/// What all workers of a repetition are told: each finds its own part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Brief {
    pub(crate) program: Program,
    pub(crate) orders: Vec<Orders>,
}

/// The coordinator's side: a Program with what is to be counted, encoded, and its sealed memfd.
#[derive(Debug)]
pub struct Handover {
    /// Both, as postcard writes them.
    pub encoded: Vec<u8>,
    /// The memfd, sealed against every change.
    pub memfd: OwnedFd,
}

impl Handover {
    /// Encodes and seals a Program and what its workers count, by kind of core.
    ///
    /// # Errors
    /// Where the kernel gives no memfd.
    pub fn new(program: &Program, orders: &[Orders]) -> io::Result<Handover> {
        let brief = Brief { program: program.clone(), orders: orders.to_vec() };
        let encoded = postcard::to_stdvec(&brief).map_err(io::Error::other)?;
        let memfd = memfd_create("contention-lab-program", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?;
        let mut file = File::from(memfd);
        file.write_all(&encoded)?;
        let memfd = OwnedFd::from(file);
        let seals = SealFlag::F_SEAL_SEAL | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_WRITE;
        fcntl(&memfd, FcntlArg::F_ADD_SEALS(seals))?;
        Ok(Handover { encoded, memfd })
    }
}

/// A brief as received: decoded, and the bytes whose hash the segment's header holds.
pub(crate) struct Encoded {
    pub(crate) brief: Brief,
    pub(crate) bytes: Vec<u8>,
}

/// Takes over one of the descriptors that the coordinator placed.
fn adopt(fd: RawFd) -> File {
    // SAFETY: the coordinator placed this descriptor by number at spawn, and each is adopted once, by one function
    // here.
    File::from(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Takes over [`REGIONS_FD`]. Once.
pub(crate) fn adopt_regions() -> OwnedFd {
    adopt(REGIONS_FD).into()
}

/// Takes over [`HUGE_REGIONS_FD`]. Once.
pub(crate) fn adopt_huge_regions() -> OwnedFd {
    adopt(HUGE_REGIONS_FD).into()
}

pub(crate) fn read_brief() -> Result<Encoded, Failure> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Failure::new(format!("the program could not be read: {error}"), "start workers through `coordinator run` alone")
    };
    let file = adopt(PROGRAM_FD);
    let length = file.metadata().map_err(|e| unreadable(&e))?.len();
    let mut bytes = vec![0; length as usize];
    // By offset: all workers share one open file, and with it one position.
    file.read_exact_at(&mut bytes, 0).map_err(|e| unreadable(&e))?;
    let brief = postcard::from_bytes(&bytes).map_err(|e| unreadable(&e))?;
    Ok(Encoded { brief, bytes })
}

/// The pipe on which a worker says that it is where the coordinator waits for all.
pub(crate) struct ReadyPipe(File);

impl ReadyPipe {
    /// Takes over the descriptor. Once.
    pub(crate) fn adopt() -> ReadyPipe {
        ReadyPipe(adopt(READY_FD))
    }

    /// Says so, with one byte. Each thread of a process for itself.
    pub(crate) fn say(&self) -> Result<(), Failure> {
        (&self.0).write_all(&[1]).map_err(|e| Failure::new(format!("the coordinator is gone: {e}"), "run again"))
    }
}

/// Where a process leaves its report: one, the first that one of its threads comes with.
pub(crate) struct Reporter(Mutex<File>);

impl Reporter {
    /// Takes over the descriptor. Once.
    pub(crate) fn adopt() -> Reporter {
        Reporter(Mutex::new(adopt(REPORT_FD)))
    }

    /// Leaves it.
    pub(crate) fn write(self, report: &Report) -> io::Result<()> {
        write_report(&mut self.0.into_inner().unwrap_or_else(PoisonError::into_inner), report)
    }

    /// Leaves it and ends the process with all its threads. What they hold stays held, or is the kernel's to give back:
    /// the repetition is over. From whichever thread; another that comes with its own meanwhile waits for the end.
    pub(crate) fn end_process(&self, report: &Report) -> ! {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // If it cannot be left, the process ends without one, which the coordinator names.
        let _ = write_report(&mut file, report);
        std::process::exit(1)
    }
}

fn write_report(file: &mut File, report: &Report) -> io::Result<()> {
    file.write_all(&postcard::to_stdvec(report).map_err(io::Error::other)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_survive_the_command_line() {
        let arguments = Arguments { segment: "contention-lab-0".into(), process: 3, slots: 4, parent: 77 };
        assert_eq!(Arguments::parse(&arguments.to_strings()[1..]), Some(arguments));
        assert_eq!(Arguments::parse(&["x".into(), "-1".into(), "2".into(), "3".into()]), None);
        assert_eq!(Arguments::parse(&[]), None);
    }

    #[test]
    fn a_handed_over_program_cannot_be_changed() {
        let program = Program { seed: 5, ..Program::of([]) };
        let handover = Handover::new(&program, &[]).unwrap();
        assert_eq!(postcard::from_bytes::<Brief>(&handover.encoded).unwrap().program, program);
        let mut file = File::from(handover.memfd);
        assert_eq!(file.write(&[0]).unwrap_err().raw_os_error(), Some(libc::EPERM));
        assert_eq!(file.set_len(0).unwrap_err().raw_os_error(), Some(libc::EPERM));
    }
}

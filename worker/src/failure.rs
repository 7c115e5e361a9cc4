//! Why a worker could not do its part, in words that the coordinator shows with the worker's name.

use crate::compile::CompileError;
use serde::{Deserialize, Serialize};
use shm_layout::AttachError;
use shm_layout::lock::LockError;

/// What went wrong in a worker, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What it was doing and what happened, with the errno where there is one.
    pub what: String,
    /// What to do next.
    pub cure: String,
    /// Whether it only left because another failed: then the other is the one to name.
    pub aborted: bool,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>, cure: impl Into<String>) -> Failure {
        Failure { what: what.into(), cure: cure.into(), aborted: false }
    }

    pub(crate) fn aborted() -> Failure {
        Failure { aborted: true, ..Failure::new("left because the repetition was given up", "see the first failure") }
    }

    pub(crate) fn no_such_process(number: u32) -> Failure {
        Failure::bug(format!("the program has no process {number}"))
    }

    pub(crate) fn no_such_worker(index: u32) -> Failure {
        Failure::bug(format!("the program has no worker {index}"))
    }

    pub(crate) fn thread(error: &std::io::Error) -> Failure {
        Failure::new(
            format!("its thread could not be started: {error}"),
            "ask for fewer `workers`, or see `ulimit -u`, the cgroup's `pids.max` and `free -m`",
        )
    }

    pub(crate) fn attach(error: AttachError) -> Failure {
        Failure::bug(format!("attaching failed: {error}"))
    }

    pub(crate) fn compile(error: CompileError) -> Failure {
        Failure::new(format!("compiling the loop failed: {error}"), "see the message: it names what the system denied")
    }

    pub(crate) fn lock(name: &str, error: &LockError) -> Failure {
        Failure::bug(format!("lock `{name}`: {error}"))
    }

    pub(crate) fn system(call: &str, errno: nix::errno::Errno) -> Failure {
        Failure::new(format!("{call} failed: {errno}"), "run again; if it stays, `strace -f` shows the call")
    }

    /// Something that only a fault of the lab, or memory written by a stranger, can cause.
    fn bug(what: String) -> Failure {
        Failure::new(what, "run again; if it stays, report it with the scenario and this message")
    }
}

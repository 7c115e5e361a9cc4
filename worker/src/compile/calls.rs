//! The functions that a loop calls where a step, or a lock, is none of its own instructions: their addresses, and their
//! names.

use super::{Hooks, LockSites, cpu};
use plan::{OpKind, WorkerProgram};
use shm_layout::lock::{Calls as LibraryCalls, FastPath, Function, fast_path};

/// Addresses of the functions that the loop calls.
pub(super) struct Calls {
    pub(super) lock: usize,
    pub(super) unlock: usize,
    pub(super) released: usize,
    pub(super) handoff: usize,
    pub(super) sample: usize,
    pub(super) spin: usize,
    pub(super) tick: usize,
    pub(super) yield_now: usize,
    pub(super) sleep: usize,
    pub(super) memory: usize,
    pub(super) die: usize,
    pub(super) pause: usize,
    pub(super) flush: usize,
    /// Functions of the C library that acquire and release, by their names.
    library: Vec<(&'static str, usize)>,
}

impl Calls {
    /// The hooks, the steps that only the CPU knows, and what the program's locks call.
    pub(super) fn new(hooks: &Hooks, program: &WorkerProgram, sites: &LockSites) -> Calls {
        Calls {
            lock: hooks.lock as usize,
            unlock: hooks.unlock as usize,
            released: hooks.released as usize,
            handoff: hooks.handoff as usize,
            sample: hooks.sample as usize,
            spin: hooks.spin as usize,
            tick: hooks.tick as usize,
            yield_now: hooks.yield_now as usize,
            sleep: hooks.sleep as usize,
            memory: hooks.memory as usize,
            die: hooks.die as usize,
            pause: cpu::pause as extern "C" fn() as usize,
            flush: cpu::flush as unsafe extern "C" fn(*const u8) as usize,
            library: library_calls(program, sites),
        }
    }

    /// The addresses with the names under which `docs/steps.md` and listings know them.
    pub(super) fn named(&self) -> Vec<(&'static str, usize)> {
        let own = [
            ("lock", self.lock),
            ("unlock", self.unlock),
            ("released", self.released),
            ("handoff", self.handoff),
            ("sample", self.sample),
            ("spin", self.spin),
            ("tick", self.tick),
            ("yield", self.yield_now),
            ("sleep", self.sleep),
            ("memory", self.memory),
            ("die", self.die),
            ("pause", self.pause),
            ("flush", self.flush),
        ];
        own.into_iter().chain(self.library.iter().copied()).collect()
    }
}

/// The functions of the library that a worker's loop calls, each once.
fn library_calls(program: &WorkerProgram, sites: &LockSites) -> Vec<(&'static str, usize)> {
    let mut called: Vec<(&'static str, usize)> = Vec::new();
    for op in &program.ops {
        let OpKind::Lock { lock, .. } = op.kind else { continue };
        let FastPath::Calls { exclusive, shared } = fast_path(sites.sites[lock as usize].kind) else { continue };
        for LibraryCalls { try_acquire, acquire, release } in std::iter::once(exclusive).chain(shared) {
            for Function { name, call } in [try_acquire, acquire, release] {
                if !called.iter().any(|(known, _)| *known == name) {
                    called.push((name, call as usize));
                }
            }
        }
    }
    called
}

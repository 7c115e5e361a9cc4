//! A worker at a gate: it says that it has come, and sleeps until the coordinator opens. Where nobody is held, a gate
//! is one load of a word.

use crate::failure::Failure;
use crate::handover::ReadyPipe;
use crate::lifeline;
use plan::Program;
use shm_layout::{Gate, Phase, Segment, WorkerState};
use std::time::Duration;

/// Between two looks at the gate. A hundredth of a second is soon for someone who has just pressed a key, and the few
/// microseconds that a look takes are then no share of what a tool counts meanwhile.
const LOOK: Duration = Duration::from_millis(10);

/// What a worker needs to stop at gates.
pub(crate) struct Gatekeeper<'r> {
    pub(crate) program: &'r Program,
    pub(crate) segment: &'r Segment,
    pub(crate) index: u32,
    pub(crate) ready: &'r ReadyPipe,
}

impl Gatekeeper<'_> {
    /// Goes through `gate`, waiting while it is closed. Meanwhile no timer runs: whoever holds a worker may take hours,
    /// and if the coordinator dies, its pipe and the death signal still end this process.
    ///
    /// # Errors
    /// [`Failure`] where the repetition was given up meanwhile, or the coordinator is gone.
    pub(crate) fn pass(&mut self, gate: Gate) -> Result<(), Failure> {
        let control = self.segment.control();
        if !control.is_closed(gate) {
            return Ok(());
        }
        lifeline::cancel_deadline();
        self.segment.slot(self.index).set_state(WorkerState::Held);
        self.ready.say()?;
        while control.is_closed(gate) {
            if control.phase() == Phase::Aborted {
                return Err(Failure::aborted());
            }
            std::thread::sleep(LOOK);
        }
        lifeline::set_deadline(self.program);
        Ok(())
    }
}

//! From a role's steps to one worker's operations on offsets.

use super::elements::{Elements, elements};
use super::memory::Memory;
use super::{BindError, Seat, refuse_step};
use crate::program::{AccessKind, Address, Op, OpKind};
use crate::region::MemoryStep;
use crate::scenario::{Case, Width};
use crate::step::{Action, Step, Target};

/// Most operations of a pass. A pass is straight code: beyond this, instruction fetch would be what is measured, and
/// compiling it would take seconds.
const MAX_OPS: usize = 65_536;

/// The worker's pass, in order, on the given copy of the memory.
pub(super) fn of_worker(case: &Case, memory: &Memory, seat: Seat, copy: u64) -> Result<Vec<Op>, BindError> {
    let resolver = Resolver { case, memory, seat, copy };
    let mut ops = Vec::new();
    for (index, step) in case.roles[seat.role].steps.iter().enumerate() {
        let kinds = resolver.kinds(step)?;
        if ops.len() + kinds.len() > MAX_OPS {
            let why = format!("makes the pass longer than {MAX_OPS} operations");
            return Err(refuse_step(&case.roles[seat.role], step, &why, "use smaller arrays with `[all]`"));
        }
        ops.extend(kinds.into_iter().map(|kind| Op { every: step.every, step: index as u32, kind }));
    }
    Ok(ops)
}

/// Index in the Program of a region of the case, on the given copy of the memory.
pub(super) fn region(case: &Case, index: u32, copy: u64) -> u32 {
    copy as u32 * case.regions.len() as u32 + index
}

struct Resolver<'a> {
    case: &'a Case,
    memory: &'a Memory,
    seat: Seat,
    copy: u64,
}

impl Resolver<'_> {
    /// The operations of one step: several for `[all]`, else one.
    fn kinds(&self, step: &Step) -> Result<Vec<OpKind>, BindError> {
        Ok(match &step.action {
            Action::Load(target) => self.accesses(step, target, AccessKind::Load)?,
            Action::Store(target) => self.accesses(step, target, AccessKind::Store)?,
            Action::Bump(target) => self.accesses(step, target, AccessKind::Bump)?,
            Action::Add(target) => self.accesses(step, target, AccessKind::Add)?,
            Action::Swap(target) => self.accesses(step, target, AccessKind::Swap)?,
            Action::Cas(target) => self.accesses(step, target, AccessKind::Cas)?,
            Action::Flush(target) => self.each(step, target, |at| OpKind::Flush { at })?,
            Action::Post(target) => self.word(step, target, |width, at| OpKind::Post { width, at })?,
            Action::Wait(target) => self.word(step, target, |width, at| OpKind::Wait { width, at })?,
            Action::Lock { lock, shared, timeout } => {
                let lock = self.memory.lock_index(*lock, self.copy);
                vec![OpKind::Lock { lock, shared: *shared, timeout: *timeout }]
            }
            Action::Unlock { lock, shared } => {
                vec![OpKind::Unlock { lock: self.memory.lock_index(*lock, self.copy), shared: *shared }]
            }
            Action::Die => vec![OpKind::Die],
            Action::Work(nanos) => vec![OpKind::Work(*nanos)],
            Action::Sleep(nanos) => vec![OpKind::Sleep(*nanos)],
            Action::Memory(step) => {
                vec![OpKind::Memory(MemoryStep { region: region(self.case, step.region, self.copy), ..*step })]
            }
            Action::Pause => vec![OpKind::Pause],
            Action::Fence => vec![OpKind::Fence],
            Action::Yield => vec![OpKind::Yield],
        })
    }

    fn accesses(&self, step: &Step, target: &Target, kind: AccessKind) -> Result<Vec<OpKind>, BindError> {
        let width = self.width(target);
        self.each(step, target, |at| OpKind::Access { kind, width, at })
    }

    fn each(&self, step: &Step, target: &Target, op: impl Fn(Address) -> OpKind) -> Result<Vec<OpKind>, BindError> {
        let reached = elements(self.case, self.seat, step, target)?;
        let offsets = reached.reachable().map(|element| self.memory.offset(target.field, element, self.copy));
        Ok(match reached {
            Elements::Any(_) => vec![op(Address::Any(offsets.collect()))],
            Elements::One(_) | Elements::All(_) => offsets.map(|at| op(Address::Fixed(at))).collect(),
        })
    }

    /// The operation of a step that remembers what it saw, and so must always meet the same word.
    fn word(&self, step: &Step, target: &Target, op: impl Fn(Width, u64) -> OpKind) -> Result<Vec<OpKind>, BindError> {
        let Elements::One(element) = elements(self.case, self.seat, step, target)? else {
            let why = "stands for several elements, but a post or wait must always meet the same word";
            let cure = "name the element: `[me]`, `[next]` or an index";
            return Err(refuse_step(&self.case.roles[self.seat.role], step, why, cure));
        };
        Ok(vec![op(self.width(target), self.memory.offset(target.field, element, self.copy))])
    }

    fn width(&self, target: &Target) -> Width {
        self.case.fields[target.field].width
    }
}

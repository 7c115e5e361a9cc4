//! Whether a pass gives back what it takes, in each way in which it can end: each lock taken once and released as it
//! was taken, none held at the pass's end, nothing lost where a wait times out or a reader has to read again.

#[cfg(test)]
mod tests;

use super::{BindError, refuse_step};
use crate::lock::{Lock, LockKind};
use crate::scenario::{Arm, Role};
use crate::step::{Action, Step};

pub(super) fn check(arm: &Arm) -> Result<(), BindError> {
    arm.case.roles.iter().try_for_each(|role| Pass { arm, role, held: Vec::new() }.check())
}

/// A lock between its acquisition and its release.
struct Held<'a> {
    lock: usize,
    shared: bool,
    timed: bool,
    /// The step that took it.
    step: &'a Step,
}

impl Held<'_> {
    fn release(&self) -> &'static str {
        if self.shared { "runlock" } else { "unlock" }
    }
}

/// A role's pass, walked from its first step.
struct Pass<'a> {
    arm: &'a Arm,
    role: &'a Role,
    /// In the order in which they were taken.
    held: Vec<Held<'a>>,
}

impl<'a> Pass<'a> {
    fn check(mut self) -> Result<(), BindError> {
        for step in &self.role.steps {
            self.in_every_pass(step)?;
            self.repeatable(step)?;
            match step.action {
                Action::Lock { lock, shared, timeout } => {
                    let timed = timeout.is_some();
                    self.take(Held { lock, shared, timed, step })?;
                }
                Action::Unlock { lock, shared } => self.release(lock, shared, step)?,
                _ => {}
            }
        }
        self.end()
    }

    fn lock(&self, lock: usize) -> &'a Lock {
        &self.arm.case.locks[lock]
    }

    fn refuse<T>(&self, step: &Step, why: &str, cure: impl Into<String>) -> Result<T, BindError> {
        Err(refuse_step(self.role, step, why, cure))
    }

    fn in_every_pass(&self, step: &Step) -> Result<(), BindError> {
        if step.every == 1 || !matches!(step.action, Action::Lock { .. } | Action::Unlock { .. }) {
            return Ok(());
        }
        let why = "would run in some passes only, but what it does must hold in each";
        self.refuse(step, why, "lock and unlock in every pass; put `every` before the steps between them")
    }

    fn take(&mut self, taken: Held<'a>) -> Result<(), BindError> {
        let Lock { name, kind, .. } = self.lock(taken.lock);
        if let Some(held) = self.held.iter().find(|held| held.lock == taken.lock) {
            let why = format!("takes `{name}`, which this pass holds already");
            return self.refuse(taken.step, &why, format!("put `{} {name}` before it", held.release()));
        }
        if taken.timed && !kind.times_out() {
            let why = format!(
                "cannot time out: `{name}` is of kind `{}` in arm `{}`, whose waiters cannot leave",
                kind.name(),
                self.arm.name
            );
            let able: Vec<String> =
                LockKind::ALL.iter().filter(|kind| kind.times_out()).map(|kind| format!("`{}`", kind.name())).collect();
            return self.refuse(
                taken.step,
                &why,
                format!("leave `timeout` out, or use a kind that can: {}", able.join(", ")),
            );
        }
        self.held.push(taken);
        Ok(())
    }

    fn release(&mut self, lock: usize, shared: bool, step: &Step) -> Result<(), BindError> {
        let name = &self.lock(lock).name;
        let Some(place) = self.held.iter().position(|held| held.lock == lock) else {
            let take = if shared { "rlock" } else { "lock" };
            let why = format!("releases `{name}`, which this pass does not hold");
            return self.refuse(step, &why, format!("put `{take} {name}` before it, or remove it"));
        };
        let (held, inner) = (&self.held[place], &self.held[place + 1..]);
        if held.shared != shared {
            let (as_taken, as_released) = if shared { ("owner", "reader") } else { ("reader", "owner") };
            let why =
                format!("releases `{name}` as its {as_released}, but `{}` took it as its {as_taken}", held.step.text);
            return self.refuse(step, &why, format!("write `{} {name}`", held.release()));
        }
        if let (true, Some(kept)) = (held.timed, inner.first()) {
            let kept_name = &self.lock(kept.lock).name;
            let why = format!(
                "leaves `{kept_name}` held, but where `{}` times out, `{}` is skipped with all up to here",
                held.step.text, kept.step.text
            );
            return self.refuse(step, &why, format!("put `{} {kept_name}` before it", kept.release()));
        }
        if let Some(timed) = inner.iter().find(|inner| inner.timed) {
            let (timed_name, text) = (&self.lock(timed.lock).name, &timed.step.text);
            let why = format!("would be skipped where `{text}` times out, and `{name}` would stay held");
            let cure = format!("put it behind `{} {timed_name}`, or before `{text}`", timed.release());
            return self.refuse(step, &why, cure);
        }
        self.held.remove(place);
        Ok(())
    }

    /// A reader of a sequence lock reads again where a writer came in between, so what it does must bear repeating.
    fn repeatable(&self, step: &Step) -> Result<(), BindError> {
        let reads_again = |held: &&Held<'_>| held.shared && self.lock(held.lock).kind == LockKind::Seqlock;
        let Some(reader) = self.held.iter().find(reads_again) else { return Ok(()) };
        let why = match &step.action {
            Action::Unlock { lock, .. } if *lock == reader.lock => return Ok(()),
            Action::Lock { lock, .. } if *lock == reader.lock => return Ok(()),
            Action::Lock { .. } | Action::Unlock { .. } => "takes or releases a lock",
            Action::Wait(_) => "waits for a change",
            Action::Memory(_) => "works on a region",
            action if action.writes() => "writes",
            _ => return Ok(()),
        };
        let name = &self.lock(reader.lock).name;
        let why = format!(
            "{why} between `{}` and `runlock {name}`; `{name}` is of kind `seqlock` in arm `{}`, whose readers repeat \
             what stands there when a writer came in between",
            reader.step.text, self.arm.name
        );
        self.refuse(step, &why, format!("put it behind `runlock {name}`, take `lock {name}`, or use `pthread-rwlock`"))
    }

    /// A pass that ends the process gives nothing back, but a wait that timed out would go on behind its release.
    fn end(self) -> Result<(), BindError> {
        let dies = self.role.steps.last().is_some_and(|step| step.action == Action::Die && step.every == 1);
        let Some(held) = self.held.iter().find(|held| held.timed || !dies) else { return Ok(()) };
        let (name, release) = (&self.lock(held.lock).name, held.release());
        if held.timed {
            let why = format!("has no `{release} {name}` behind it: where it times out, the pass goes on behind that");
            return self.refuse(held.step, &why, format!("add `{release} {name}` to the loop"));
        }
        let why = format!("takes `{name}`, and the pass ends without releasing it");
        self.refuse(held.step, &why, format!("add `{release} {name}` to the loop"))
    }
}

//! The second gate: what made the starter slow is gone. Read off the layout, the locks and the loops, so that it says
//! the same on every machine.

use crate::places::{Touch, shown, touches, who};
use crate::{ApartRule, Exercise, LockRule};
use plan::HOT_SHARE;
use plan::{Arm, CACHE_LINE_BYTES, OpKind, Program, WorkerProgram};
use record::GateCheck;

/// What the exercise's rules say of a student's arm, bound to any machine.
pub fn mechanism(exercise: &Exercise, arm: &Arm, program: &Program) -> Vec<GateCheck> {
    let touches = touches(program);
    let mut checks: Vec<GateCheck> = exercise
        .apart
        .iter()
        .map(|rule| {
            GateCheck::of(
                format!("who uses {} has its lines alone", listed(&rule.fields)),
                apart(program, rule, &touches),
            )
        })
        .collect();
    if let Some(most) = exercise.bytes_max {
        let bytes = program.layout.bytes;
        let seen = format!("the layout takes {bytes} bytes, and may take {most}");
        checks.push(GateCheck::of("no more room than needed", if bytes <= most { Ok(seen) } else { Err(seen) }));
    }
    for rule in &exercise.locks {
        checks.extend(lock(rule, arm, program));
    }
    for role in &exercise.keeps_memory {
        checks.push(GateCheck::of(format!("`{role}` keeps its memory"), keeps_memory(program, role)));
    }
    checks
}

/// Whether a touch is made often enough to matter: less than one access in twenty passes adds little to what a line
/// costs, and who sums shards now and then has to touch them all.
fn often(touch: &Touch) -> bool {
    1.0 / f64::from(touch.every) >= HOT_SHARE
}

fn lines(touch: &Touch) -> std::ops::RangeInclusive<u64> {
    let last = touch.placed.offset + touch.placed.bytes.max(1) - 1;
    touch.placed.offset / CACHE_LINE_BYTES..=last / CACHE_LINE_BYTES
}

fn apart(program: &Program, rule: &ApartRule, touches: &[Touch]) -> Result<String, String> {
    let counts = |t: &&Touch| often(t) && (rule.roles.is_empty() || rule.roles.contains(&t.worker.role_name));
    let all: Vec<&Touch> = touches.iter().filter(counts).collect();
    for own in all.iter().filter(|touch| rule.fields.contains(&touch.placed.field)) {
        let meets = |other: &&&Touch| {
            let shares = lines(own).any(|line| lines(other).contains(&line));
            other.worker.index != own.worker.index && shares && (other.kind.writes() || own.kind.writes())
        };
        if let Some(other) = all.iter().find(meets) {
            let line = lines(own).find(|line| lines(other).contains(line)).unwrap_or_default();
            let verb = |touch: &Touch| if touch.kind.writes() { "writes" } else { "reads" };
            return Err(format!(
                "line {line} holds {} (bytes {}), which {} {}, and {} (bytes {}), which {} {}",
                shown(program, own.placed),
                bytes(own),
                who(own.worker),
                verb(own),
                shown(program, other.placed),
                bytes(other),
                who(other.worker),
                verb(other),
            ));
        }
    }
    if all.iter().any(|touch| rule.fields.contains(&touch.placed.field)) {
        return Ok("no worker writes a line of theirs that another uses".to_owned());
    }
    Err("nobody uses them often".to_owned())
}

fn bytes(touch: &Touch) -> String {
    format!("{}–{}", touch.placed.offset, touch.placed.offset + touch.placed.bytes - 1)
}

fn lock(rule: &LockRule, arm: &Arm, program: &Program) -> Vec<GateCheck> {
    let name = &rule.lock;
    let Some(index) = program.locks.iter().position(|lock| lock.name == *name) else {
        let gone = Err("there is no such lock any more".to_owned());
        return vec![GateCheck::of(format!("lock `{name}` is there"), gone)];
    };
    let kind = program.locks[index].kind;
    let mut checks: Vec<GateCheck> = rule
        .is
        .iter()
        .map(|behaviour| {
            let seen = match behaviour.of(kind) {
                true => Ok(format!("`{}` does", kind.name())),
                false => Err(format!("`{}` does not", kind.name())),
            };
            GateCheck::of(format!("lock `{name}` {}", behaviour.words()), seen)
        })
        .collect();
    if let Some(most) = rule.held_max_ns {
        let longest =
            program.workers.iter().map(|worker| (held_ns(worker, index as u32), worker)).max_by_key(|(ns, _)| *ns);
        let (ns, worker) = longest.map_or((0, String::new()), |(ns, worker)| (ns, who(worker)));
        let used = arm.case.roles.iter().any(|role| role.steps.iter().any(|step| takes(&step.action, &arm.case, name)));
        let seen = format!("{worker} computes or sleeps for up to {ns} ns while it holds it; {most} ns are allowed");
        let seen = match used {
            false => Err("nobody takes it any more".to_owned()),
            true if ns <= most => Ok(seen),
            true => Err(seen),
        };
        checks.push(GateCheck::of(format!("lock `{name}` is held for no longer than needed"), seen));
    }
    checks
}

fn takes(action: &plan::Action, case: &plan::Case, name: &str) -> bool {
    matches!(action, plan::Action::Lock { lock, .. } if case.locks[*lock].name == name)
}

/// The longest that one pass computes or sleeps while it holds the lock, whatever is made in one pass of many included.
fn held_ns(worker: &WorkerProgram, index: u32) -> u64 {
    let (mut held, mut longest, mut now) = (false, 0, 0u64);
    for op in &worker.ops {
        match op.kind {
            OpKind::Lock { lock, .. } if lock == index => (held, now) = (true, 0),
            OpKind::Unlock { lock, .. } if lock == index => held = false,
            OpKind::Work(length) | OpKind::Sleep(length) if held => now = now.saturating_add(length.0),
            OpKind::Memory(step) if held => now = now.saturating_add(step.pause.0.saturating_mul(step.chunks())),
            _ => {}
        }
        longest = longest.max(now);
    }
    longest
}

fn keeps_memory(program: &Program, role: &str) -> Result<String, String> {
    for worker in program.workers.iter().filter(|worker| worker.role_name == role) {
        if let Some((op, _)) = worker.memory_steps().find(|(_, step)| step.verb.gives_back()) {
            let step = worker.steps.get(worker.ops[op].step as usize).map_or("", String::as_str);
            return Err(format!("`{step}` takes pages or rights away, and every CPU that may know them is told"));
        }
    }
    Ok("no step takes pages or rights away".to_owned())
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

//! Whether a file is still the exercise: all that the student may not change is as in the starter, and as much work is
//! done.

use crate::places::touches;
use crate::{Exercise, Part};
use plan::{Action, Arm, Field, MemoryVerb, Program, Role};
use std::collections::BTreeMap;

/// What differs that may not, a sentence each. `starter` and `yours` are arms with their Programs on one machine.
pub(crate) fn differences(exercise: &Exercise, starter: (&Arm, &Program), yours: (&Arm, &Program)) -> Vec<String> {
    let mut found = Vec::new();
    let (before, now) = (&starter.0.case, &yours.0.case);
    let names = |roles: &[Role]| roles.iter().map(|role| role.name.clone()).collect::<Vec<_>>();
    if names(&before.roles) != names(&now.roles) {
        found.push(format!("the roles are {} in the starter", listed(&names(&before.roles))));
        return found;
    }
    if before.oversubscribe != now.oversubscribe {
        found.push("`oversubscribe` is not as in the starter".to_owned());
    }
    if before.regions != now.regions {
        found.push("the regions are not as in the starter".to_owned());
    }
    for (before, now) in before.roles.iter().zip(&now.roles) {
        role(exercise, before, now, &mut found);
    }
    fields(exercise, &before.fields, &now.fields, &mut found);
    if !exercise.may_change.contains(&Part::Locks) {
        let kinds = |case: &plan::Case| case.locks.iter().map(|l| (l.name.clone(), l.kind)).collect::<BTreeMap<_, _>>();
        if kinds(before) != kinds(now) {
            found.push("the locks, or their kinds, are not as in the starter".to_owned());
        }
    }
    if !may_place(exercise) && before.placement != now.placement {
        found.push("the placement is not as in the starter".to_owned());
    }
    less_touched(starter.1, yours.1, &mut found);
    found
}

fn may_place(exercise: &Exercise) -> bool {
    exercise.may_change.contains(&Part::Placement)
}

fn role(exercise: &Exercise, before: &Role, now: &Role, found: &mut Vec<String>) {
    let name = &before.name;
    let bare = |role: &Role| Role { steps: Vec::new(), ..role.clone() };
    if bare(before) != bare(now) {
        found.push(format!("role `{name}` has other workers, CPUs, threads or times than in the starter"));
    }
    if !exercise.may_change.contains(&Part::Loop(name.clone())) {
        let steps = |role: &Role| -> Vec<String> {
            role.steps.iter().map(|step| step.text.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
        };
        if steps(before) != steps(now) {
            found.push(format!("the loop of `{name}` is not as in the starter"));
        }
        return;
    }
    let less = |what: &str, before: f64, now: f64| {
        (now < before * (1.0 - 1e-9)).then(|| format!("a pass of `{name}` {what} {now:.1}, in the starter {before:.1}"))
    };
    let more = |what: &str, before: f64, now: f64| {
        (now > before * (1.0 + 1e-9)).then(|| format!("a pass of `{name}` {what} {now:.1}, in the starter {before:.1}"))
    };
    let of = |measure: fn(&Action) -> f64| (per_pass(before, measure), per_pass(now, measure));
    let (work, sleep, used, pause) = (of(work_ns), of(sleep_ns), of(used_bytes), of(pause_ns));
    found.extend(less("computes for fewer nanoseconds:", work.0, work.1));
    found.extend(less("uses fewer bytes of its regions:", used.0, used.1));
    found.extend(more("sleeps for more nanoseconds:", sleep.0, sleep.1));
    found.extend(more("pauses for more nanoseconds:", pause.0, pause.1));
    if before.dies() != now.dies() {
        found.push(format!("`{name}` ends its process in one of the two files only"));
    }
}

/// A measure of the role's steps, each by how many passes it is made in.
fn per_pass(role: &Role, measure: fn(&Action) -> f64) -> f64 {
    role.steps.iter().map(|step| measure(&step.action) / f64::from(step.every)).sum()
}

fn work_ns(action: &Action) -> f64 {
    if let Action::Work(length) = action { length.0 as f64 } else { 0.0 }
}

fn sleep_ns(action: &Action) -> f64 {
    if let Action::Sleep(length) = action { length.0 as f64 } else { 0.0 }
}

fn used_bytes(action: &Action) -> f64 {
    match action {
        Action::Memory(step) => match step.verb {
            MemoryVerb::Touch | MemoryVerb::Reuse | MemoryVerb::Map | MemoryVerb::Free => step.bytes as f64,
            _ => 0.0,
        },
        _ => 0.0,
    }
}

fn pause_ns(action: &Action) -> f64 {
    if let Action::Memory(step) = action { step.pause.0 as f64 * step.chunks() as f64 } else { 0.0 }
}

fn fields(exercise: &Exercise, before: &[Field], now: &[Field], found: &mut Vec<String>) {
    let (may_place, may_field) = (may_place(exercise), exercise.may_change.contains(&Part::Fields));
    for field in before {
        match now.iter().find(|other| other.name == field.name) {
            None if may_field => {}
            None => found.push(format!("field `{}` is gone", field.name)),
            Some(other) if other.width != field.width => {
                found.push(format!("field `{}` is of another type", field.name))
            }
            Some(other) if other.count != field.count && !may_field => {
                found.push(format!("field `{}` has another number of elements", field.name));
            }
            Some(_) => {}
        }
    }
    let names = |fields: &[Field]| fields.iter().map(|field| (field.name.clone(), field.at)).collect::<Vec<_>>();
    if !may_place && !may_field && names(before) != names(now) {
        found.push("the fields, their order or their places are not as in the starter".to_owned());
    }
}

/// Who reads or writes a field in the starter does so as often. (A write that is lost is another matter: counts.)
fn less_touched(starter: &Program, yours: &Program, found: &mut Vec<String>) {
    let (before, now) = (rates(starter), rates(yours));
    for ((role, field, writes), rate) in before {
        let other = now.get(&(role.clone(), field.clone(), writes)).copied().unwrap_or(0.0);
        if other < rate * (1.0 - 1e-9) {
            let verb = if writes { "writes" } else { "reads" };
            let sentence =
                format!("a pass of `{role}` {verb} `{field}` {other:.4} times, in the starter {rate:.4} times");
            if !found.contains(&sentence) {
                found.push(sentence);
            }
        }
    }
}

/// Reads and writes a pass of each field, of the role's worker that makes fewest; locks apart, which are the student's.
fn rates(program: &Program) -> BTreeMap<(String, String, bool), f64> {
    let mut by_worker: BTreeMap<(u32, String, String, bool), f64> = BTreeMap::new();
    for touch in touches(program).iter().filter(|touch| !touch.placed.lock) {
        let worker = touch.worker;
        let key = (worker.index.0, worker.role_name.clone(), touch.placed.field.clone(), touch.kind.writes());
        *by_worker.entry(key).or_default() += touch.per_pass();
    }
    let mut least: BTreeMap<(String, String, bool), f64> = BTreeMap::new();
    for ((_, role, field, writes), rate) in by_worker {
        least.entry((role, field, writes)).and_modify(|known| *known = known.min(rate)).or_insert(rate);
    }
    least
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

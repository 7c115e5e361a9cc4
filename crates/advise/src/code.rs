//! Changes of the program that take a line's movements away where no layout can: what several workers write to one word.

use crate::candidate::held_in;
use crate::cost::Rates;
use plan::{Action, Case, Count, Element, Role, Step, Target, Usage};

/// How many updates a batch stands for, and of how many stores one is taken to change something: a power of two that is
/// large enough to show what is to be had, as published fixes choose (docs/advise.md). What it is in a program, only its
/// author knows.
const BATCH: u32 = 64;

/// Most steps of one loop that the schema allows (`scenario::schema::ITEMS_MAX`); a longer one could not be written down.
const MOST_STEPS: usize = 256;

/// A changed program.
pub(crate) struct Variation {
    pub(crate) name: String,
    /// What it does, in a phrase.
    pub(crate) what: String,
    /// When it is the same to those who use the fields.
    pub(crate) when: String,
    pub(crate) case: Case,
    /// Paths and TOML values in which it differs.
    pub(crate) set: Vec<(String, String)>,
}

/// Every change that applies to some field, each to all fields to which it does.
pub(crate) fn variations(case: &Case, usage: &Usage, rates: &Rates) -> Vec<Variation> {
    let contended: Vec<usize> =
        (0..case.fields.len()).filter(|&field| is_contended(case, usage, rates, field)).collect();
    let sharded: Vec<usize> = contended.iter().copied().filter(|&field| can_shard(case, usage, rates, field)).collect();
    let batched: Vec<usize> = contended.iter().copied().filter(|&field| touches(case, field, counts_up)).collect();
    let checked: Vec<usize> = contended.iter().copied().filter(|&field| touches(case, field, overwrites)).collect();
    let made = [
        (!sharded.is_empty()).then(|| shard(case, &sharded)),
        (!batched.is_empty()).then(|| batch(case, &batched)),
        (!checked.is_empty()).then(|| check_first(case, &checked)),
    ];
    let fits = |variation: &Variation| variation.case.roles.iter().all(|role| role.steps.len() <= MOST_STEPS);
    made.into_iter().flatten().filter(fits).collect()
}

/// Whether a field's own line would be lost often, were it alone on it; and nobody waits for it, which a change would turn
/// into another protocol.
fn is_contended(case: &Case, usage: &Usage, rates: &Rates, field: usize) -> bool {
    let name = &case.fields[field].name;
    let items = usage.items.iter().enumerate().filter(|(_, item)| !item.lock && item.name == *name);
    let lost: f64 = items.map(|(item, _)| rates.line(&[item])).sum();
    let waits = |step: &Step| matches!(step.action, Action::Wait(_) | Action::Post(_)) && is_of(step, field);
    lost > crate::cost::NEGLIGIBLE && !case.roles.iter().flat_map(|role| &role.steps).any(waits)
}

fn is_of(step: &Step, field: usize) -> bool {
    step.action.target().is_some_and(|target| target.field == field)
}

/// Whether some step of that kind reaches the field outside of every lock.
fn touches(case: &Case, field: usize, kind: fn(&Action) -> bool) -> bool {
    case.roles.iter().any(|role| steps_in_the_open(role).any(|step| is_of(step, field) && kind(&step.action)))
}

fn steps_in_the_open(role: &Role) -> impl Iterator<Item = &Step> {
    let held = held_in(&role.steps);
    role.steps.iter().zip(held).filter(|(_, held)| held.is_empty()).map(|(step, _)| step)
}

fn counts_up(action: &Action) -> bool {
    matches!(action, Action::Add(_) | Action::Bump(_))
}

fn overwrites(action: &Action) -> bool {
    matches!(action, Action::Store(_) | Action::Swap(_))
}

/// A single counter that several workers count up and the others only read.
fn can_shard(case: &Case, usage: &Usage, rates: &Rates, field: usize) -> bool {
    let simple = |step: &Step| counts_up(&step.action) || matches!(step.action, Action::Load(_));
    let all = case.roles.iter().flat_map(|role| &role.steps).filter(|step| is_of(step, field));
    let item = usage.items.iter().position(|item| !item.lock && item.name == case.fields[field].name);
    case.fields[field].count == Count::One
        && all.clone().all(simple)
        && touches(case, field, counts_up)
        && item.is_some_and(|item| rates.writers(item).len() > 1)
}

fn listed(case: &Case, fields: &[usize]) -> String {
    let names: Vec<String> = fields.iter().map(|&field| format!("`{}`", case.fields[field].name)).collect();
    names.join(", ")
}

/// A slot for each worker; who reads sums them up.
fn shard(case: &Case, fields: &[usize]) -> Variation {
    let mut changed = case.clone();
    for &field in fields {
        changed.fields[field].count = Count::PerWorker;
    }
    let set = rewrite(&mut changed, |step| {
        let Some(target) = step.action.target().filter(|target| fields.contains(&target.field)) else {
            return vec![step.clone()];
        };
        let name = &case.fields[target.field].name;
        let to = |element| Target { field: target.field, element };
        let (action, text) = match &step.action {
            Action::Add(_) => (Action::Add(to(Element::Me)), format!("add {name}[me]")),
            Action::Bump(_) => (Action::Bump(to(Element::Me)), format!("bump {name}[me]")),
            _ => (Action::Load(to(Element::All)), format!("load {name}[all]")),
        };
        vec![Step { action, text: spelled(step.every, &text), ..step.clone() }]
    });
    let each = fields.iter().map(|&field| (format!("field.{}.each", case.fields[field].name), "\"worker\"".to_owned()));
    Variation {
        name: "sharded".to_owned(),
        what: format!("a slot of {} for each worker; who reads it sums them up", listed(case, fields)),
        when: "nobody needs the value that an update returns, and the sum may be of slots read one after the other"
            .to_owned(),
        set: each.chain(set).collect(),
        case: changed,
    }
}

/// Counted aside, and written once in so many passes.
fn batch(case: &Case, fields: &[usize]) -> Variation {
    let mut changed = case.clone();
    let set = rewrite_in_the_open(&mut changed, |step| {
        let Some(target) = step.action.target().filter(|t| fields.contains(&t.field) && counts_up(&step.action)) else {
            return vec![step.clone()];
        };
        let verb = if matches!(step.action, Action::Add(_)) { "add" } else { "bump" };
        let every = step.every.saturating_mul(BATCH).min(1_000_000);
        let text = spelled(every, &format!("{verb} {}", written(case, target)));
        vec![Step { every, text, ..step.clone() }]
    });
    Variation {
        name: "batched".to_owned(),
        what: format!("{} written once in {BATCH} passes, counted aside meanwhile", listed(case, fields)),
        when: format!(
            "whoever reads it may be up to {BATCH} passes of each worker late, and what an update returns may stand for a \
             whole batch"
        ),
        set,
        case: changed,
    }
}

/// Read first, and written only where that changes something.
fn check_first(case: &Case, fields: &[usize]) -> Variation {
    let mut changed = case.clone();
    let set = rewrite_in_the_open(&mut changed, |step| {
        let Some(target) = step.action.target().filter(|t| fields.contains(&t.field) && overwrites(&step.action))
        else {
            return vec![step.clone()];
        };
        let verb = if matches!(step.action, Action::Swap(_)) { "swap" } else { "store" };
        let name = written(case, target);
        let look = Step {
            every: step.every,
            action: Action::Load(target.clone()),
            text: spelled(step.every, &format!("load {name}")),
        };
        let every = step.every.saturating_mul(BATCH).min(1_000_000);
        vec![look, Step { every, text: spelled(every, &format!("{verb} {name}")), ..step.clone() }]
    });
    Variation {
        name: "check-first".to_owned(),
        what: format!("{} read first, and written only where that changes it", listed(case, fields)),
        when: format!("no more than one store in {BATCH} writes another value than what is there"),
        set,
        case: changed,
    }
}

/// A target as steps spell it.
fn written(case: &Case, target: &Target) -> String {
    let name = &case.fields[target.field].name;
    match target.element {
        Element::Only => name.clone(),
        Element::Me => format!("{name}[me]"),
        Element::Next => format!("{name}[next]"),
        Element::Any => format!("{name}[any]"),
        Element::All => format!("{name}[all]"),
        Element::At(index) => format!("{name}[{index}]"),
    }
}

fn spelled(every: u32, step: &str) -> String {
    if every == 1 { step.to_owned() } else { format!("every {every} {step}") }
}

/// Puts other steps in the place of each; gives the loops that have changed.
fn rewrite(case: &mut Case, change: impl Fn(&Step) -> Vec<Step>) -> Vec<(String, String)> {
    rewrite_where(case, change, |_| true)
}

/// The same outside of every lock.
fn rewrite_in_the_open(case: &mut Case, change: impl Fn(&Step) -> Vec<Step>) -> Vec<(String, String)> {
    rewrite_where(case, change, |held_nothing| held_nothing)
}

fn rewrite_where(
    case: &mut Case,
    change: impl Fn(&Step) -> Vec<Step>,
    wanted: impl Fn(bool) -> bool,
) -> Vec<(String, String)> {
    let mut set = Vec::new();
    for role in &mut case.roles {
        let held = held_in(&role.steps);
        let steps: Vec<Step> = role
            .steps
            .iter()
            .zip(held)
            .flat_map(|(step, held)| if wanted(held.is_empty()) { change(step) } else { vec![step.clone()] })
            .collect();
        if steps != role.steps {
            let texts: Vec<String> = steps.iter().map(|step| format!("{:?}", step.text)).collect();
            set.push((format!("role.{}.loop", role.name), format!("[{}]", texts.join(", "))));
            role.steps = steps;
        }
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::tests::arm_of;

    fn made(text: &str) -> Vec<Variation> {
        let case = arm_of(text).case;
        let usage = plan::usage(&case).unwrap();
        variations(&case, &usage, &Rates::of(&usage))
    }

    const COUNTER: &str = r#"
[field.total]
type = "u64"
[[role]]
name = "counter"
workers = 2
loop = ["every 2 add total", "work 10ns"]
[[role]]
name = "reader"
loop = ["load total", "sleep 1ms"]
"#;

    #[test]
    fn a_shared_counter_can_be_sharded_and_batched() {
        let made = made(COUNTER);
        let names: Vec<&str> = made.iter().map(|variation| variation.name.as_str()).collect();
        assert_eq!(names, ["sharded", "batched"]);
        let pair = |path: &str, value: &str| (path.to_owned(), value.to_owned());
        assert_eq!(
            made[0].set,
            [
                pair("field.total.each", "\"worker\""),
                pair("role.counter.loop", r#"["every 2 add total[me]", "work 10ns"]"#),
                pair("role.reader.loop", r#"["load total[all]", "sleep 1ms"]"#)
            ]
        );
        assert_eq!(made[1].set, [pair("role.counter.loop", r#"["every 128 add total", "work 10ns"]"#)]);
    }

    #[test]
    fn what_is_written_is_what_is_run() {
        for variation in made(COUNTER) {
            let sets: String = variation.set.iter().map(|(path, value)| format!("{path:?} = {value}\n")).collect();
            let text = format!("{COUNTER}[[variant]]\nname = \"x\"\n[variant.set]\n{sets}");
            let read = arm_of(&text).case;
            assert_eq!(
                (&read.roles, &read.fields),
                (&variation.case.roles, &variation.case.fields),
                "{}",
                variation.name
            );
        }
    }

    #[test]
    fn a_flag_can_be_looked_at_first() {
        let made = made(
            "[field.flag]\ntype = \"u32\"\n[[role]]\nname = \"a\"\nloop = [\"store flag\"]\n[[role]]\nname = \"b\"\nloop = [\"load flag\"]",
        );
        assert_eq!(made.len(), 1);
        assert_eq!(made[0].set[0].1, r#"["load flag", "every 64 store flag"]"#);
    }

    #[test]
    fn what_is_guarded_waited_for_or_nobodys_but_one_workers_is_left_alone() {
        let guarded = "[field.n]\ntype = \"u64\"\n[lock.m]\nkind = \"tas\"\n[[role]]\nname = \"a\"\nworkers = 2\nloop = [\"lock m\", \"bump n\", \"unlock m\"]";
        let own = "[field.n]\ntype = \"u64\"\neach = \"worker\"\n[[role]]\nname = \"a\"\nworkers = 2\nloop = [\"bump n[me]\"]";
        let waited = "[field.n]\ntype = \"u64\"\n[[role]]\nname = \"a\"\nloop = [\"add n\"]\n[[role]]\nname = \"b\"\nloop = [\"wait n\"]";
        for text in [guarded, own, waited] {
            assert_eq!(made(text).len(), 0, "{text}");
        }
    }
}

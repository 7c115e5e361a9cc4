//! Changes of the program that take a line's movements away where no layout can: what several workers write to one word.

use crate::cost::Rates;
use crate::held::held_in;
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
    let lost: Vec<usize> = (0..case.fields.len()).filter(|&field| is_lost(case, usage, rates, field)).collect();
    let contended: Vec<usize> = lost.iter().copied().filter(|&field| !is_awaited(case, field)).collect();
    let sharded: Vec<usize> = contended.iter().copied().filter(|&field| can_shard(case, usage, rates, field)).collect();
    let batched: Vec<usize> = contended.iter().copied().filter(|&field| touches(case, field, counts_up)).collect();
    let checked: Vec<usize> = contended.iter().copied().filter(|&field| touches(case, field, overwrites)).collect();
    let made = [
        (!sharded.is_empty()).then(|| shard(case, &sharded)),
        (!batched.is_empty()).then(|| batch(case, &batched)),
        (!checked.is_empty()).then(|| check_first(case, &checked)),
        Some(remember(case, &lost)).filter(|variation| !variation.set.is_empty()),
        Some(lock_once(case, &contended_locks(usage, rates))).filter(|variation| !variation.set.is_empty()),
    ];
    let fits = |variation: &Variation| variation.case.roles.iter().all(|role| role.steps.len() <= MOST_STEPS);
    made.into_iter().flatten().filter(fits).collect()
}

/// Whether a field's own line would be lost often, were it alone on it.
fn is_lost(case: &Case, usage: &Usage, rates: &Rates, field: usize) -> bool {
    let name = &case.fields[field].name;
    let items = usage.items.iter().enumerate().filter(|(_, item)| !item.lock && item.name == *name);
    items.map(|(item, _)| rates.line(&[item])).sum::<f64>() > crate::cost::NEGLIGIBLE
}

/// Whether somebody waits for it: then writing it less often would be another protocol.
fn is_awaited(case: &Case, field: usize) -> bool {
    let waits = |step: &Step| matches!(step.action, Action::Wait(_) | Action::Post(_)) && is_of(step, field);
    case.roles.iter().flat_map(|role| &role.steps).any(waits)
}

/// Locks that change hands often.
fn contended_locks(usage: &Usage, rates: &Rates) -> Vec<String> {
    let locks = usage.items.iter().enumerate().filter(|(_, item)| item.lock);
    let lost = locks.filter(|(item, _)| rates.line(&[*item]) > crate::cost::NEGLIGIBLE);
    lost.map(|(_, item)| item.name.clone()).collect()
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

/// In how many passes a value is read that a role remembers meanwhile: as often as it waits for it, where it does so in some
/// passes alone. `None` where it waits in every pass, and so needs it as it is.
fn remembered_for(role: &Role, field: usize) -> Option<u32> {
    let waits = role.steps.iter().filter(|step| matches!(step.action, Action::Wait(_)) && is_of(step, field));
    let least = waits.map(|step| step.every).min().unwrap_or(BATCH);
    (least > 1).then_some(least)
}

/// What others write is read seldom, and remembered in between: a copy of a queue's other position, say.
fn remember(case: &Case, fields: &[usize]) -> Variation {
    let mut changed = case.clone();
    let mut touched: Vec<usize> = Vec::new();
    let mut set = Vec::new();
    for index in 0..case.roles.len() {
        let role = &case.roles[index];
        let held = held_in(&role.steps);
        let seldom = |(step, held): (&Step, std::collections::BTreeSet<usize>)| {
            let target = step.action.target().filter(|target| fields.contains(&target.field) && held.is_empty());
            let target = target.filter(|_| matches!(step.action, Action::Load(_)));
            let Some((target, passes)) = target.and_then(|target| Some((target, remembered_for(role, target.field)?)))
            else {
                return (step.clone(), None);
            };
            let every = step.every.saturating_mul(passes).min(1_000_000);
            let text = spelled(every, &format!("load {}", written(case, target)));
            (Step { every, text, ..step.clone() }, Some(target.field))
        };
        let (steps, which): (Vec<Step>, Vec<Option<usize>>) = role.steps.iter().zip(held).map(seldom).unzip();
        touched.extend(which.into_iter().flatten());
        set.extend(replace(&mut changed.roles[index], steps));
    }
    touched.sort_unstable();
    touched.dedup();
    Variation {
        name: "remembered".to_owned(),
        what: format!(
            "{} read once in {BATCH} passes, or as often as it is waited for, and remembered in between",
            listed(case, &touched)
        ),
        when:
            "what was read may be as old as that: a position that only grows, and is read again when the old one does \
               not do"
                .to_owned(),
        set,
        case: changed,
    }
}

/// Of several times that a pass takes a lock alone, the last; what was done under it before is done then.
fn lock_once(case: &Case, names: &[String]) -> Variation {
    let mut changed = case.clone();
    let mut merged: Vec<&str> = Vec::new();
    let mut set = Vec::new();
    for (lock, name) in case.locks.iter().map(|lock| &lock.name).enumerate().filter(|(_, name)| names.contains(name)) {
        for role in &mut changed.roles {
            if let Some(steps) = merged_sections(&role.steps, lock) {
                role.steps = steps;
                merged.push(name);
            }
        }
    }
    for (role, before) in changed.roles.iter_mut().zip(&case.roles) {
        let steps = std::mem::replace(&mut role.steps, before.steps.clone());
        set.extend(replace(role, steps));
    }
    merged.dedup();
    let names: Vec<String> = merged.iter().map(|name| format!("`{name}`")).collect();
    Variation {
        name: "lock-once".to_owned(),
        what: format!("{} taken once a pass, for all that was done under it", names.join(", ")),
        when: "what is done under the lock may be done later, or by another for all who wait (group commit, combining)"
            .to_owned(),
        set,
        case: changed,
    }
}

/// The loop with its outermost sections of that lock, where it is taken alone and without giving up, made one at the place of
/// the last. `None` where there are not two.
fn merged_sections(steps: &[Step], lock: usize) -> Option<Vec<Step>> {
    let takes =
        |step: &Step| matches!(step.action, Action::Lock { lock: l, shared: false, timeout: None } if l == lock);
    let releases = |step: &Step| matches!(step.action, Action::Unlock { lock: l, shared: false } if l == lock);
    let held = held_in(steps);
    let starts: Vec<usize> = (0..steps.len()).filter(|&at| takes(&steps[at]) && held[at].len() == 1).collect();
    let end = |start: usize| (start..steps.len()).find(|&at| releases(&steps[at]));
    let sections: Vec<(usize, usize)> = starts.iter().filter_map(|&start| Some((start, end(start)?))).collect();
    let (&(last, last_end), earlier) = sections.split_last().filter(|(_, earlier)| !earlier.is_empty())?;
    let inside = |at: usize| earlier.iter().any(|&(start, end)| (start..=end).contains(&at));
    let mut made: Vec<Step> = (0..=last).filter(|&at| !inside(at)).map(|at| steps[at].clone()).collect();
    for &(start, end) in earlier {
        made.extend_from_slice(&steps[start + 1..end]);
    }
    made.extend_from_slice(&steps[last + 1..=last_end]);
    made.extend_from_slice(&steps[last_end + 1..]);
    Some(made)
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
        set.extend(replace(role, steps));
    }
    set
}

/// Gives the role another loop, and that as an override; nothing where it is the same.
fn replace(role: &mut Role, steps: Vec<Step>) -> Option<(String, String)> {
    if steps == role.steps {
        return None;
    }
    let texts: Vec<String> = steps.iter().map(|step| format!("{:?}", step.text)).collect();
    role.steps = steps;
    Some((format!("role.{}.loop", role.name), format!("[{}]", texts.join(", "))))
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
        assert_eq!(names, ["sharded", "batched", "remembered"]);
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
        assert_eq!(made.len(), 2);
        assert_eq!(made[0].set[0].1, r#"["load flag", "every 64 store flag"]"#);
        assert_eq!((made[1].name.as_str(), made[1].set.len()), ("remembered", 1));
        assert_eq!(made[1].set[0], ("role.b.loop".to_owned(), r#"["every 64 load flag"]"#.to_owned()));
    }

    /// As long as its own wait lets it be old; what a pass waits for is needed as it is.
    #[test]
    fn another_s_position_is_remembered_until_it_is_waited_for() {
        let queue = "[field.head]\ntype = \"u64\"\n[field.tail]\ntype = \"u64\"\n\
                     [[role]]\nname = \"p\"\nloop = [\"load head\", \"post tail\", \"every 16 wait head\"]\n\
                     [[role]]\nname = \"c\"\nloop = [\"load tail\", \"wait tail\", \"post head\"]";
        let made = made(queue);
        let [only] = &made[..] else { panic!("{} variations", made.len()) };
        assert_eq!(only.name, "remembered");
        let loops = r#"["every 16 load head", "post tail", "every 16 wait head"]"#;
        assert_eq!(only.set, [("role.p.loop".to_owned(), loops.to_owned())]);
    }

    #[test]
    fn a_lock_that_a_pass_takes_twice_can_be_taken_once() {
        let twice = "[field.a]\ntype = \"u64\"\n[field.b]\ntype = \"u64\"\n[lock.m]\nkind = \"tas\"\n\
                     [[role]]\nname = \"r\"\nworkers = 2\nloop = [\"lock m\", \"bump a\", \"unlock m\", \"work 5ns\", \
                     \"lock m\", \"bump b\", \"unlock m\", \"pause\"]";
        let made = made(twice);
        let [only] = &made[..] else { panic!("{} variations", made.len()) };
        assert_eq!(only.name, "lock-once");
        let loops = r#"["work 5ns", "lock m", "bump a", "bump b", "unlock m", "pause"]"#;
        assert_eq!(only.set, [("role.r.loop".to_owned(), loops.to_owned())]);
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

//! No rule fired: says what was looked at, so that "nothing found" is no empty phrase.

use super::held::Guards;
use super::{cost, evidence, lines};
use crate::view::View;
use crate::words::{count, list, percent};
use plan::{LINE_PAIR_BYTES, Program};
use record::{ArmState, ArmSummary, Diagnosis, Evidence, Kind, Severity};
use std::collections::BTreeSet;

pub(super) fn explain(view: &View, arms: &[ArmSummary]) -> Diagnosis {
    let unresolved = names(arms, ArmState::Unresolved);
    let measured = names(arms, ArmState::Measured);
    let (text, cure) = match measured.is_empty() {
        true => (cannot_tell(&unresolved), "Run again with more `--repetitions`, or on a quieter machine."),
        false => (looked_at(view, &measured, &unresolved), "Nothing to change for the sake of sharing."),
    };
    Diagnosis {
        kind: "none".to_owned(),
        severity: Severity::None,
        text,
        arms: measured,
        fields: Vec::new(),
        roles: Vec::new(),
        evidence: looked_at_in_figures(view),
        cure: cure.to_owned(),
        expected_gain: None,
    }
}

fn names(arms: &[ArmSummary], state: ArmState) -> Vec<String> {
    let variants = arms.iter().filter(|a| a.kind == Kind::Variant && a.state == state);
    variants.map(|a| a.name.clone()).collect()
}

fn cannot_tell(unresolved: &[String]) -> String {
    match unresolved.is_empty() {
        true => "This run cannot tell: no variant could be placed on this host.".to_owned(),
        false => format!("This run cannot tell: {} kept too few repetitions for a figure.", list(unresolved)),
    }
}

fn looked_at(view: &View, measured: &[String], unresolved: &[String]) -> String {
    let programs: Vec<(&str, &Program)> = view.variants().map(|(a, p)| (a.arm.name.as_str(), p)).collect();
    let sharing: Vec<&str> =
        programs.iter().filter(|(_, p)| !lines::falsely_shared(p).is_empty()).map(|p| p.0).collect();
    let (mut handed, mut guarded) = (BTreeSet::new(), BTreeSet::new());
    programs.iter().for_each(|(_, program)| sort_shared_fields(program, &mut handed, &mut guarded));
    let locks: BTreeSet<&str> = programs.iter().flat_map(|(_, p)| &p.locks).map(|l| l.name.as_str()).collect();
    let least = percent(cost::threshold(view) - 1.0);
    let mut text = format!("No harm from sharing was measured in {}", list(measured));
    text += &match sharing.is_empty() {
        true => ": where one worker writes, no other has data of its own in the same cache line".to_owned(),
        false => format!(
            ": lines of {} hold different workers' data, but no arm of this run in which they are apart is faster by \
             more than {least}",
            list(&sharing)
        ),
    };
    if !handed.is_empty() {
        text += &format!(
            "; what workers hand each other ({}) is shared by design, and nothing in this run that shares less is \
             faster by more than {least}",
            list(&Vec::from_iter(handed))
        );
    }
    if !guarded.is_empty() {
        text +=
            &format!("; what is touched under a lock alone ({}) moves with that lock", list(&Vec::from_iter(guarded)));
    }
    if !locks.is_empty() {
        text += &format!(
            "; at the locks ({}) neither a long hold, nor a queue behind slow handoffs, nor an uneven share, nor a cost of \
             taking turns stands out: their waits are told by their own figures",
            list(&Vec::from_iter(locks))
        );
    }
    if !unresolved.is_empty() {
        text += &format!("; {} kept too few repetitions to be compared", list(unresolved));
    }
    text + "."
}

/// Fields that workers share, apart by whether a lock protects them.
fn sort_shared_fields<'p>(program: &'p Program, handed: &mut BTreeSet<&'p str>, guarded: &mut BTreeSet<&'p str>) {
    let guards = Guards::of(program);
    for element in lines::data(program).filter(|e| lines::truly_shared(e)) {
        let fields = if guards.lock_of(element.offset).is_some() { &mut *guarded } else { &mut *handed };
        fields.insert(&element.field);
    }
}

fn looked_at_in_figures(view: &View) -> Vec<Evidence> {
    let mut all = vec![evidence::resolution(view)];
    for (arm, program) in view.variants() {
        let name = &arm.arm.name;
        let lines = lines::falsely_shared(program).len();
        let pairs = lines::conflicts(program, LINE_PAIR_BYTES).len();
        let shared = lines::data(program).filter(|e| lines::truly_shared(e)).count();
        let looked = [
            (format!("lines of `{name}` that hold data of different workers"), lines, "lines"),
            (
                format!(
                    "conflicts within 128 bytes in `{name}`, {} of data",
                    count(lines::data(program).count(), "element")
                ),
                pairs,
                "pairs",
            ),
            (format!("elements of `{name}` that one worker writes and another uses"), shared, "elements"),
        ];
        all.extend(looked.map(|(name, n, unit)| Evidence::new(name, Some(n as f64), unit, "layout")));
    }
    all
}

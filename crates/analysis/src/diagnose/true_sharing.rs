//! True sharing: one worker writes data that another touches, and the handing over of the line is what costs. Not where
//! one lock is held at every touch: such data moves with its lock.

use super::held::Guards;
use super::{Cost, Sick, Words, cost, lines, names, report};
use crate::view::View;
use crate::words::figure;
use plan::Action;
use plan::{BoundArm, Placed, Program, Role};
use record::Diagnosis;
use std::collections::BTreeMap;

pub(super) fn find(view: &View) -> Option<(f64, Diagnosis)> {
    let mut found = Vec::new();
    for (arm, program) in view.variants() {
        let mut fields: BTreeMap<&str, Vec<&Placed>> = BTreeMap::new();
        let guards = Guards::of(program);
        let at_will = |e: &&Placed| lines::truly_shared(e) && guards.lock_of(e.offset).is_none();
        for element in lines::data(program).filter(at_will) {
            fields.entry(&element.field).or_default().push(element);
        }
        for elements in fields.into_values() {
            let roles = lines::roles(program, &elements);
            if let Some(cost) = cost::worst(roles.iter().map(|role| field_cost(view, arm, &elements, role))) {
                found.push(Sick { arm, program, elements, cost });
            }
        }
    }
    report(view, found, words)
}

/// What a role pays for the shared elements of a field as against variants in which it does the same to data that fewer
/// write; as against `unshared` where there is no such variant.
fn field_cost(view: &View, arm: &BoundArm, elements: &[&Placed], role: &str) -> Option<Cost> {
    let several_write = elements.iter().any(|e| e.writers.len() > 1);
    let still_shared = |e: &Placed| if several_write { e.writers.len() > 1 } else { lines::truly_shared(e) };
    let cures = |(other, program): &(&BoundArm, &Program)| {
        let touched = |e: &&Placed| lines::roles(program, &[*e]).iter().any(|r| r == role);
        other.arm.name != arm.arm.name
            && same_verbs(arm, other, role)
            && !lines::data(program).filter(touched).any(still_shared)
    };
    let sharded: Vec<_> = view.variants().filter(cures).collect();
    cost::against_cured_or_unshared(view, arm, role, &sharded)
}

/// Whether a role has as many workers in both arms and does the same kinds of step in the same order, to whatever
/// data: then a pass is the same work.
fn same_verbs(a: &BoundArm, b: &BoundArm, role: &str) -> bool {
    let of = |arm: &BoundArm| -> Option<(u32, Vec<_>)> {
        let role: &Role = arm.arm.case.roles.iter().find(|r| r.name == role)?;
        Some((role.workers, role.steps.iter().map(|s| (s.every, std::mem::discriminant(&s.action))).collect()))
    };
    of(a).is_some() && of(a) == of(b)
}

fn words(sick: &Sick) -> Words {
    let Sick { arm, elements, cost, .. } = sick;
    let writers = elements.iter().map(|e| e.writers.len()).max().unwrap_or(0);
    let how = if writers > 1 { "written by several workers" } else { "written by one worker and used by another" };
    let (are, line) = if elements.len() > 1 { ("are", "their lines move") } else { ("is", "its line moves") };
    let locks = arm.arm.case.roles.iter().flat_map(|r| &r.steps).any(|s| matches!(s.action, Action::Lock { .. }));
    let lock = if locks { ", waiting for the lock included" } else { "" };
    let cured = match &cost.gain {
        Some(gain) => format!(" as `{}` does", gain.arm),
        None => String::new(),
    };
    Words {
        kind: "true_sharing",
        text: format!(
            "In `{}`, {} {are} {how}, so {line} between their CPUs: a pass of `{}` takes {} times as long as in \
             `{}`{lock}.",
            arm.arm.name,
            names(sick),
            cost.role,
            figure(cost.ratio.median),
            cost.against
        ),
        cure: format!(
            "No placement helps, since it is the same data: share less often{cured}. Keep one copy a worker, each on a \
             line of its own, and add them up when read; or batch updates."
        ),
    }
}

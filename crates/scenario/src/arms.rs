//! From variants and sweep points to arms: values are put into the document first, then one reading serves all.

use crate::context::Context;
use crate::document::Table;
use crate::expand::{Expansion, Variant};
use crate::outline::Outline;
use crate::paths::{Applied, Assignment};
use crate::refusal::Problem;
use crate::{case, measure};
use plan::{Action, Arm, ArmKind, Case, Step, Strategy};

/// Every variant at every point of the sweep, variants in file order, points in the order of their lists, the last list
/// varying fastest. Where the scenario has problems already, the first arm alone is read, for what it adds to them.
pub(crate) fn build(context: &mut Context, root: &Table, outline: &Outline, expansion: &Expansion) -> Vec<Arm> {
    let mut arms = Vec::new();
    for variant in &expansion.variants {
        for point in points(expansion) {
            let sound = context.problems.is_empty();
            arms.push(arm(context, root, outline, variant, &point, &expansion.flags));
            if !sound {
                return arms;
            }
        }
    }
    unused_offsets(context, root, &arms);
    unused_regions(context, root, &arms);
    arms
}

/// The sweep's points: one value of each list. Without a sweep there is one, empty.
fn points(expansion: &Expansion) -> Vec<Vec<&Assignment>> {
    let mut points = vec![Vec::new()];
    for axis in &expansion.sweep {
        points = points
            .iter()
            .flat_map(|point| axis.values.iter().map(move |value| [point.as_slice(), &[value]].concat()))
            .collect();
    }
    points
}

fn arm(
    context: &mut Context,
    root: &Table,
    outline: &Outline,
    variant: &Variant,
    point: &[&Assignment],
    flags: &[Assignment],
) -> Arm {
    let mut root = root.clone();
    let mut applied = Applied {
        placement: variant.placement.clone().or_else(|| root.get("placement").cloned()),
        ..Applied::default()
    };
    for assignment in variant.set.iter().chain(point.iter().copied()).chain(flags) {
        applied.apply(&mut root, assignment);
    }
    let (window, warm_up) = measure::times(context, &root);
    let case = case::read(context, &root, outline, &applied, window);
    let sweep: Vec<(String, String)> =
        point.iter().map(|value| (value.written.clone(), value.node.compact())).collect();
    let shown: Vec<String> = sweep.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let name = if shown.is_empty() { variant.name.clone() } else { format!("{}@{}", variant.name, shown.join(",")) };
    Arm { name, kind: ArmKind::Variant, variant: variant.name.clone(), sweep, window, warm_up, case }
}

/// A region is mapped where a role names it: one that no role of any arm names does nothing.
/// (A field or lock that no step names may hold a place in a declared layout.)
fn unused_regions(context: &mut Context, root: &Table, arms: &[Arm]) {
    let cases = || arms.iter().map(|arm| &arm.case);
    for (entry, _) in root.named("region") {
        let named =
            cases().any(|case| case.regions.iter().zip(0..).any(|(r, i)| r.name == entry.key && names(case, i)));
        if !named {
            context.refuse(
                Problem::at(&entry.key_place, format!("region `{}` is never used", entry.key))
                    .label("no role names it, so no process would map it")
                    .cure(format!("give a role the step \"touch {}\", or leave the region out", entry.key)),
            );
        }
    }
}

fn names(case: &Case, region: u32) -> bool {
    let uses = |step: &Step| matches!(&step.action, Action::Memory(memory) if memory.region == region);
    case.roles.iter().any(|role| role.populate.contains(&region) || role.steps.iter().any(uses))
}

/// `at` says where a field lies under `declared`; without that rule in any arm it would say nothing.
fn unused_offsets(context: &mut Context, root: &Table, arms: &[Arm]) {
    if arms.iter().any(|arm| arm.case.placement.strategy == Strategy::Declared) {
        return;
    }
    for (entry, table) in root.named("field").chain(root.named("lock")) {
        if let Some(at) = table.get("at") {
            context.refuse(
                Problem::at(&at.place, format!("`at` of `{}` is never used", entry.key))
                    .label("only placement \"declared\" looks at it")
                    .cure("give a variant placement = \"declared\", or leave `at` out"),
            );
        }
    }
}

//! What a diagnosis rests on, figure by figure, and what could not be had.

use super::{Sick, cost, counts, lines};
use crate::figures::ns_per_op;
use crate::view::View;
use plan::CACHE_LINE_BYTES;
use record::Evidence;

/// Elements whose place is given one by one; a sentence's worth.
const MOST_ELEMENTS: usize = 8;

pub(super) fn of(view: &View, sick: &Sick) -> Vec<Evidence> {
    let (sick_arm, other, role) = (&sick.arm.arm.name, &sick.cost.against, &sick.cost.role);
    let mut all = vec![
        figure(view, sick_arm, role),
        figure(view, other, role),
        measured(format!("`{role}` in `{sick_arm}` over `{other}`"), sick.cost.ratio.median, "times"),
        measured(format!("`{role}` in `{sick_arm}` over `{other}`, low end"), sick.cost.ratio.low, "times"),
        measured("what the ratio had to exceed".to_owned(), cost::threshold(view), "times"),
    ];
    let names = lines::element_names(sick.program, &sick.elements);
    for (element, name) in sick.elements.iter().zip(names).take(MOST_ELEMENTS) {
        let line = element.offset / CACHE_LINE_BYTES;
        all.push(Evidence::new(
            format!("offset of `{name}` (line {line})"),
            Some(element.offset as f64),
            "bytes",
            "layout",
        ));
    }
    all.push(resolution(view));
    all.push(transfer(view, sick_arm));
    all.extend(counts::rows(view, sick));
    all
}

fn measured(name: String, value: f64, unit: &str) -> Evidence {
    Evidence::new(name, Some(value), unit, "measured")
}

fn figure(view: &View, arm: &str, role: &str) -> Evidence {
    let name = format!("ns_per_op of `{role}` in `{arm}`");
    let median = crate::stats::median_of(view.series(arm, role, ns_per_op).into_values());
    let source = if median.is_some() { "measured" } else { "missing: no repetition counted" };
    Evidence::new(name, median, "ns", source)
}

/// The smallest effect that the run could have seen.
pub(super) fn resolution(view: &View) -> Evidence {
    let source = match view.resolution {
        Some(_) => "measured",
        None => "missing: the control arm has too few repetitions in the headline regime",
    };
    Evidence::new(
        "smallest effect the control arm could tell".to_owned(),
        view.resolution.map(|share| share * 100.0),
        "%",
        source,
    )
}

/// How far apart the workers' CPUs were.
pub(super) fn transfer(view: &View, arm: &str) -> Evidence {
    let regime = view.regimes.by_arm.get(arm).map(|number| &view.regimes.list[*number as usize]);
    let transfer_ns = regime.and_then(|r| r.transfer_ns);
    let source = if transfer_ns.is_some() { "measured" } else { "missing: no two workers run on different CPUs" };
    Evidence::new("one-way transfer of a line between the workers' CPUs".to_owned(), transfer_ns, "ns", source)
}

//! How far the figures can be trusted: distance of the CPUs, smallest visible effect, time that was lost.

use crate::report::figures::{Figure, NONE, percent, plain, plural};
use crate::report::page::Page;
use crate::report::table::{Cell, Column, Grid, Notes, Row};
use crate::report::terminal::workers::spread;
use record::{ArmState, Kind, Regime, Run};
use std::collections::{BTreeMap, BTreeSet};

/// Regime and resolution, other regimes, lost time, spoiled repetitions.
pub(super) fn write(page: &mut Page, run: &Run) {
    page.heading("How far to trust this");
    page.prose(&format!("{}; {}.", regime(run), resolution(run)));
    if run.method.headline_regime.as_ref().is_some_and(|regime| regime.contended_ns.is_some()) {
        page.prose(
            "Contended pass: two CPUs counting up words of one line. Repetitions in which it, the line transfer and the \
             speed of the cores agree are one regime; figures are made within one.",
        );
    }
    if let Some(control) = &run.method.control {
        page.prose(&format!(
            "The control, the same arm twice, read {}: 1 would be no difference.",
            Figure::new(control).line()
        ));
    }
    for sentence in [spread(run), lost(run), spoiled(run), watching(run), extended(run)].into_iter().flatten() {
        page.prose(&sentence);
    }
    other_regimes(page, run);
}

fn regime(run: &Run) -> String {
    let ran: u64 = run.arms.iter().map(|arm| arm.repetitions.all()).sum();
    match &run.method.headline_regime {
        Some(Regime { transfer_ns: Some(ns), contended_ns, repetitions, .. }) => {
            let contended = contended_ns.map_or(String::new(), |ns| format!(", contended pass {} ns", plain(ns)));
            let all = plural(ran, "repetition");
            format!("Line transfer {} ns one way{contended}; {repetitions} of {all}", plain(*ns))
        }
        Some(Regime { transfer_ns: None, repetitions, .. }) => {
            format!("No line moves between CPUs here, {repetitions} of {} of one core speed", plural(ran, "repetition"))
        }
        None => format!("No regime: {} do not agree on one line-transfer time", plural(ran, "repetition")),
    }
}

fn resolution(run: &Run) -> String {
    match run.method.resolution {
        Some(share) => format!("smallest effect this run could have seen: {}", percent(share)),
        None => "the control arm resolved nothing, so small effects cannot be told from noise".to_owned(),
    }
}

fn lost(run: &Run) -> Option<String> {
    let ran: Vec<_> = run.arms.iter().filter(|arm| arm.state != ArmState::NotApplicable).collect();
    if ran.is_empty() {
        return None;
    }
    let shares: Vec<String> = ran
        .iter()
        .map(|arm| match arm.mask.as_str() {
            "none" => format!("{} not masked (workers share a CPU)", arm.name),
            _ => format!("{} {}", arm.name, percent(arm.lost_share)),
        })
        .collect();
    Some(format!("Lost co-running time, left out of the figures: {}.", shares.join(", ")))
}

/// Which repetitions do not count, and why, by arm.
fn spoiled(run: &Run) -> Option<String> {
    let mut repetitions: BTreeMap<&str, BTreeSet<(u32, String)>> = BTreeMap::new();
    for seen in run.observations.iter().filter(|seen| !seen.spoiled.is_empty()) {
        let why = seen.spoiled.join(", ").replace('_', " ");
        repetitions.entry(&seen.arm).or_default().insert((seen.block, why));
    }
    let arms: Vec<String> = repetitions
        .iter()
        .map(|(arm, spoiled)| {
            let reasons: BTreeSet<&str> = spoiled.iter().map(|(_, why)| why.as_str()).collect();
            format!("{} of {arm} ({})", spoiled.len(), reasons.into_iter().collect::<Vec<_>>().join("; "))
        })
        .collect();
    (!arms.is_empty()).then(|| format!("Spoiled repetitions, reported but not counted: {}.", arms.join(", ")))
}

fn watching(run: &Run) -> Option<String> {
    let logged = run.observations.iter().any(|one| one.kernel.as_ref().is_some_and(|kernel| !kernel.events.is_empty()));
    let log = match logged {
        true => " The kernel's log of interrupts is not in that: it lengthens each by what docs/counters.md says.",
        false => "",
    };
    run.method.watching_cost.map(|share| format!("Watching took {} of the window.{log}", percent(share)))
}

fn extended(run: &Run) -> Option<String> {
    let blocks = plural(run.method.blocks.into(), "block");
    run.method.extended.then(|| format!("The run was extended to {blocks} because noise hid the answer."))
}

fn other_regimes(page: &mut Page, run: &Run) {
    let mut rows = Vec::new();
    for arm in run.arms.iter().filter(|arm| matches!(arm.kind, Kind::Variant | Kind::Unshared | Kind::Solo)) {
        for (index, other) in arm.other_regimes.iter().enumerate() {
            rows.push(Row {
                block: Some(arm.name.clone()),
                section: None,
                cells: vec![
                    if index == 0 { Cell::text(&arm.name) } else { Cell::empty() },
                    Cell::text(other.transfer_ns.map_or_else(|| NONE.to_owned(), plain)),
                    Cell::text(other.contended_ns.map_or_else(|| NONE.to_owned(), plain)),
                    Cell::interval(&other.ns_per_op),
                    Cell::text(other.repetitions.to_string()),
                ],
            });
        }
    }
    if rows.is_empty() {
        return;
    }
    page.heading("Other regimes, not mixed into the figures above");
    let columns = vec![
        Column::words("variant"),
        Column::figures("transfer, ns", "line transfer\none way, ns"),
        Column::figures("contended, ns", "contended\npass, ns"),
        Column::figures("ns/op", "ns/op\n(interval)"),
        Column::figures("repetitions", "repetitions"),
    ];
    page.grid(&Grid { columns, rows }, &Notes::default());
}

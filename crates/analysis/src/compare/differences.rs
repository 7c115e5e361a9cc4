//! What is not the same on both sides of a pair, besides what was measured.

use crate::compare::Sides;
use crate::compare::between::{cores, lines_moved};
use crate::words::figure;
use record::{ArmSummary, Asks, Difference, Run};
use std::collections::BTreeSet;

/// A clock that moved by less than this between two runs is not worth a line; the intervals allow for it all the same.
const WORTH_SAYING: f64 = 1.01;

/// Everything that differs, what matters most to the ratios first.
pub(super) fn between(sides: &Sides, matched: &[(&ArmSummary, &ArmSummary)]) -> Vec<Difference> {
    let mut all = machines(sides);
    all.extend(states(sides));
    all.extend(programs(sides));
    for (base, run) in matched {
        all.extend(differ(&format!("layout of {}", run.name), Some(layout(base)), Some(layout(run)), None));
        all.extend(differ(&format!("CPUs of {}", run.name), Some(cpus(base)), Some(cpus(run)), None));
    }
    all.extend(of(sides, "seed", None, |run| Some(run.seed.to_string())));
    all
}

fn of(sides: &Sides, what: &str, matters: Option<&str>, text: impl Fn(&Run) -> Option<String>) -> Option<Difference> {
    differ(what, text(sides.base), text(sides.run), matters)
}

fn differ(what: &str, base: Option<String>, run: Option<String>, matters: Option<&str>) -> Option<Difference> {
    (base != run).then(|| Difference { what: what.to_owned(), base, run, matters: matters.map(str::to_owned) })
}

fn machines(sides: &Sides) -> Vec<Difference> {
    let confounded = match sides.asks {
        Asks::Hosts => None,
        _ => Some("two machines and a change at once: the ratios do not tell which of them it was"),
    };
    let machine = Some("another machine for what is measured here, although its name is the same");
    let named = of(sides, "host", confounded, |run| Some(run.host.hostname.clone()));
    let renamed = if named.is_some() { None } else { machine };
    let rows = [
        of(sides, "CPU model", renamed, |run| Some(run.host.cpu_model.clone())),
        of(sides, "CPUs", renamed, |run| Some(run.host.cpus.to_string())),
        of(sides, "hypervisor", renamed, |run| run.host.hypervisor.clone()),
        of(sides, "last-level caches", renamed, |run| Some(run.host.llc_groups.to_string())),
        of(sides, "NUMA nodes", renamed, |run| Some(run.host.nodes.to_string())),
        of(sides, "sockets", renamed, |run| Some(run.host.sockets.to_string())),
        of(sides, "bytes of a cache line", renamed, |run| Some(run.host.line_bytes.to_string())),
        of(sides, "kernel", None, |run| Some(run.host.kernel.clone())),
    ];
    named.into_iter().chain(rows.into_iter().flatten()).collect()
}

/// The machines' states during the runs, as the probes of their headline regimes saw them.
fn states(sides: &Sides) -> Vec<Difference> {
    let (Some(base), Some(run)) = (&sides.base.method.headline_regime, &sides.run.method.headline_regime) else {
        return of(sides, "headline regime", Some("a run without one has no figures to compare"), |run| {
            run.method.headline_regime.as_ref().map(|regime| format!("number {}", regime.number))
        })
        .into_iter()
        .collect();
    };
    let ns = |value: Option<f64>| value.map(|ns| format!("{} ns", figure(ns)));
    let unlike = |moved: bool| {
        moved.then_some("not alike: what workers pay for a line that they share on both sides cannot be compared")
    };
    let (transfer, contended) = lines_moved(base, run);
    let mut all = Vec::new();
    if transfer || contended {
        all.extend(differ("one way of a line", ns(base.transfer_ns), ns(run.transfer_ns), unlike(transfer)));
        all.extend(differ("a contended pass", ns(base.contended_ns), ns(run.contended_ns), unlike(contended)));
    }
    if cores(base, run).into_iter().any(|factor| factor.max(1.0 / factor) > WORTH_SAYING) {
        let allowed = (sides.asks == Asks::Change).then_some("the intervals have room for it");
        let pass = |regime: &record::Regime| match regime.costs.bump_ns {
            Some(bump) => ("a bump of a word of one's own", ns(Some(bump))),
            None => ("the fixed loop that times the cores", ns(Some(regime.core_loop_ns))),
        };
        let ((what, base), (_, run)) = (pass(base), pass(run));
        all.extend(differ(what, base, run, allowed));
    }
    all
}

fn programs(sides: &Sides) -> Vec<Difference> {
    let tool = Some("the lab itself may measure otherwise");
    let short = |text: &str, digits: usize| text.chars().take(digits).collect::<String>();
    let rows = [
        of(sides, "lab's version", tool, |run| Some(run.tool.version.clone())),
        of(sides, "lab's commit", tool, |run| run.tool.commit.as_deref().map(|commit| short(commit, 12))),
        of(sides, "scenario's title", None, |run| Some(run.scenario.title.clone())),
        of(sides, "scenario's text (SHA-256)", None, |run| Some(short(&run.scenario.sha256, 12))),
        of(sides, "length of a slice", tool, |run| Some(format!("{} µs", run.method.slice_us))),
        of(sides, "method of the intervals", tool, |run| Some(run.method.interval.clone())),
    ];
    rows.into_iter().flatten().collect()
}

/// Elements shown of a layout: more say nothing at a glance.
const ELEMENTS_SHOWN: usize = 6;

fn layout(arm: &ArmSummary) -> String {
    let several = |field: &str| arm.layout.iter().filter(|row| row.field == field).count() > 1;
    let shown = arm.layout.iter().take(ELEMENTS_SHOWN).map(|row| match several(&row.field) {
        true => format!("{}[{}] at {}", row.field, row.element, row.offset),
        false => format!("{} at {}", row.field, row.offset),
    });
    let more = match arm.layout.len().saturating_sub(ELEMENTS_SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{} bytes: {}{more}", arm.bytes, shown.collect::<Vec<_>>().join(", "))
}

fn cpus(arm: &ArmSummary) -> String {
    let cpus: BTreeSet<u32> = arm.workers.iter().map(|worker| worker.cpu).collect();
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

//! The map of distances: how long a line takes between two CPUs.

use crate::limits::{CPUS, left_out};
use crate::table::{Table, scrolled};
use figures::plain;
use maud::{Markup, html};
use record::{Run, Topology};
use std::collections::{BTreeMap, BTreeSet};

/// Shades of the map, from near to far.
const SHADES: usize = 5;

/// One way between two CPUs, ns: the middle of its readings.
type Pairs = BTreeMap<(u32, u32), f64>;

pub(crate) fn section(run: &Run, topology: Option<&Topology>) -> Markup {
    let measured = topology.filter(|topology| !topology.latency_ns.is_empty());
    let pairs: Pairs = match measured {
        Some(topology) => topology.latency_ns.iter().map(|pair| ((pair.from, pair.to), pair.median)).collect(),
        None => probed(run),
    };
    let how = html! {
        code { "coordinator topology --measure --json > topology.json" } " measures every pair, and "
        code { "coordinator report RUN --topology topology.json" } " draws it here."
    };
    html! {
        @if pairs.is_empty() {
            p { "This run probed no pair of CPUs by itself. " (how) }
        } @else {
            (map(&pairs, measured.is_some()))
            @if let Some(topology) = measured { (by_distance(topology)) }
            @else if run.host.cpus > 2 {
                p { "These are the pairs that the run itself probed, two workers at a time. " (how) }
            }
        }
        (regimes(run))
    }
}

/// What the run's own probes say of pairs: of arms in which two workers ran on two CPUs, since with more the probe is
/// the slowest pair's, whichever that was.
fn probed(run: &Run) -> Pairs {
    let mut readings: BTreeMap<(u32, u32), Vec<f64>> = BTreeMap::new();
    for arm in &run.arms {
        let cpus: BTreeSet<u32> = arm.workers.iter().map(|worker| worker.cpu).collect();
        let ([first, second], 2) = (&cpus.into_iter().collect::<Vec<_>>()[..], arm.workers.len()) else { continue };
        let own = run.observations.iter().filter(|seen| seen.arm == arm.name);
        let both = own.flat_map(|seen| [seen.transfer_before_ns, seen.transfer_after_ns]);
        readings.entry((*first, *second)).or_default().extend(both.flatten());
    }
    let middle = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied()
    };
    readings.into_iter().filter_map(|(pair, all)| Some((pair, middle(all)?))).collect()
}

fn map(pairs: &Pairs, all: bool) -> Markup {
    let cpus: BTreeSet<u32> = pairs.keys().flat_map(|(from, to)| [*from, *to]).collect();
    let shown: Vec<u32> = cpus.iter().copied().take(CPUS).collect();
    let shades = Shades::of(pairs.values().copied());
    let source = if all { "as topology measured it" } else { "as this run probed it before and after its repetitions" };
    let caption = format!("One way of a cache line between two CPUs, ns: the median, {source}");
    html! {
        p { strong { (finding(pairs)) } }
        (scrolled(&caption, html! {
            table .heat {
                caption { (caption) }
                thead { tr { th scope="col" { "CPU" } @for cpu in &shown { th .n scope="col" { (cpu) } } } }
                tbody { @for from in &shown { tr {
                    th scope="row" { (from) }
                    @for to in &shown { (cell(pairs, &shades, *from, *to)) }
                } } }
            }
        }))
        p .legend { "Darker and warmer is farther; the figure in each cell says how far." }
        (left_out(cpus.len(), shown.len(), "CPUs"))
    }
}

fn cell(pairs: &Pairs, shades: &Shades, from: u32, to: u32) -> Markup {
    if from == to {
        return html! { td { "·" } };
    }
    match pairs.get(&(from.min(to), from.max(to))) {
        Some(ns) => html! { td class=(format!("h{}", shades.shade(*ns))) { (plain(*ns)) } },
        None => html! { td { "?" } },
    }
}

/// Shades over the logarithm of the distance.
struct Shades {
    near: f64,
    far: f64,
}

impl Shades {
    fn of(values: impl Iterator<Item = f64>) -> Shades {
        let (near, far) = values.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), ns| (low.min(ns), high.max(ns)));
        Shades { near, far }
    }

    fn shade(&self, ns: f64) -> usize {
        // Distances that differ by less than a fifth are not worth two shades.
        if self.far < 1.2 * self.near || self.near <= 0.0 {
            return 0;
        }
        let share = (ns / self.near).ln() / (self.far / self.near).ln();
        ((share * SHADES as f64) as usize).min(SHADES - 1)
    }
}

fn finding(pairs: &Pairs) -> String {
    let by = |a: &(&(u32, u32), &f64), b: &(&(u32, u32), &f64)| a.1.total_cmp(b.1);
    let (Some((near, least)), Some((far, most))) = (pairs.iter().min_by(by), pairs.iter().max_by(by)) else {
        return String::new();
    };
    match pairs.len() {
        1 => format!("A line takes {} ns one way between CPUs {} and {}.", plain(*least), near.0, near.1),
        _ => format!(
            "A line takes from {} ns (CPUs {} and {}) to {} ns (CPUs {} and {}) one way.",
            plain(*least),
            near.0,
            near.1,
            plain(*most),
            far.0,
            far.1
        ),
    }
}

fn by_distance(topology: &Topology) -> Table {
    let heads = ["distance", "pairs", "one way, ns", "contended pass, ns", "fetch, ns", "tenure, ns"];
    let mut table = Table::new("By what the two CPUs share: medians", 1, &heads);
    let figure = |of: Option<f64>| of.map_or_else(crate::table::none, |ns| html! { (plain(ns)) });
    for row in &topology.distances {
        table.row(vec![
            html! { (row.distance) },
            html! { (row.pairs) },
            figure(Some(row.transfer_ns)),
            figure(row.contended_ns),
            figure(row.fetch_ns),
            figure(row.tenure_ns),
        ]);
    }
    table
}

/// A hypervisor moves CPUs: the regimes in which the run found them.
fn regimes(run: &Run) -> Markup {
    let mut table = Table::new(
        "Regimes: states of the machine that this run met",
        1,
        &["regime", "one way, ns", "contended pass, ns", "core loop, ns", "repetitions"],
    );
    let figure = |of: Option<f64>| of.map_or_else(crate::table::none, |ns| html! { (plain(ns)) });
    let headline = run.method.headline_regime.as_ref().map(|regime| regime.number);
    for regime in &run.method.regimes {
        table.row(vec![
            html! { (regime.number) @if headline == Some(regime.number) { " (the figures' own)" } },
            figure(regime.transfer_ns),
            figure(regime.contended_ns),
            html! { (plain(regime.core_loop_ns)) },
            html! { (regime.repetitions) },
        ]);
    }
    html! { @if !table.is_empty() { (table) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_is_light_far_is_dark_and_alike_is_alike() {
        let shades = Shades::of([20.0, 25.0, 130.0].into_iter());
        assert_eq!([20.0, 25.0, 130.0].map(|ns| shades.shade(ns)), [0, 0, 4]);
        let alike = Shades::of([100.0, 110.0].into_iter());
        assert_eq!([100.0, 110.0].map(|ns| alike.shade(ns)), [0, 0]);
    }

    #[test]
    fn a_pair_is_found_from_both_sides_and_an_unmeasured_one_is_no_zero() {
        let pairs = Pairs::from([((0, 1), 31.0), ((0, 2), 190.0)]);
        let shown = map(&pairs, true).into_string();
        assert_eq!((shown.matches(">31</td>").count(), shown.matches(">190</td>").count()), (2, 2), "{shown}");
        assert_eq!(shown.matches("<td>?</td>").count(), 2, "{shown}");
        assert!(shown.contains("from 31 ns (CPUs 0 and 1) to 190 ns (CPUs 0 and 2)"), "{shown}");
    }
}

//! Throughput of each variant, how it scales with workers, and each worker's share.

use crate::axis::Axis;
use crate::chart::{At, Chart, Mark};
use crate::limits::{ROWS, SERIES, left_out};
use crate::names::{Arm, Arms, clipped};
use crate::shares;
use crate::table::{Table, details, figure, interval, none};
use figures::{Figure, plain};
use maud::{Markup, html};
use record::{Interval, Run};
use std::collections::BTreeMap;

pub(crate) fn section(run: &Run, arms: &Arms<'_>) -> Markup {
    let mut rated: Vec<(Arm<'_>, Interval)> =
        arms.measured().into_iter().filter_map(|arm| Some((arm, arm.summary.ops_per_second?))).collect();
    if rated.is_empty() {
        return html! { p { "No variant has a rate: " (why(arms)) "." } };
    }
    rated.sort_by(|(_, a), (_, b)| b.median.total_cmp(&a.median));
    html! { (bars(&rated)) (scaling(run, &rated)) (who_gets_it(&rated)) }
}

fn why(arms: &Arms<'_>) -> String {
    arms.all().first().map_or_else(|| "there is none".to_owned(), Arm::reason)
}

fn millions(of: &Interval) -> Interval {
    Interval { median: of.median / 1e6, low: of.low / 1e6, high: of.high / 1e6 }
}

/// A bar a variant, the fastest first.
fn bars(rated: &[(Arm<'_>, Interval)]) -> Markup {
    let shown = &rated[..rated.len().min(ROWS)];
    let names: Vec<String> = shown.iter().map(|(arm, _)| arm.in_chart()).collect();
    let most = shown.iter().map(|(_, rate)| millions(rate).high).fold(0.0, f64::max);
    let mut chart = Chart::of_rows(Axis::from_zero("million passes a second, all workers of the role", most), &names);
    let mut table = Table::new("Million passes a second", 1, &["variant", "M/s (interval)", "Jain's index"]);
    for (row, (arm, rate)) in shown.iter().enumerate() {
        let (y, rate) = (-(row as f64), millions(rate));
        chart.marks.push(Mark::Bar(0, (0.0, y + 0.3), (rate.median, y - 0.3)));
        chart.marks.push(Mark::Span(1, (rate.low, y), (rate.high, y)));
        let role = arm.summary.roles.iter().find(|role| role.role == arm.summary.headline_role);
        let jain = role.and_then(|role| role.fairness_jain);
        table.row(vec![
            arm.label(),
            interval(&rate),
            jain.map_or_else(none, |index| html! { (format!("{index:.2}")) }),
        ]);
    }
    let (first, most) = &rated[0];
    let beside = rated[1..].iter().filter(|(_, rate)| rate.high >= most.low).count();
    let finding = html! {
        (first.summary.name) " does most: " (Figure::new(&millions(most)).value) " million passes a second"
        @if beside > 0 { ", not told from " (beside) @if beside == 1 { " other" } @else { " others" } }
    };
    html! { (figure("rates", finding, chart.svg("rates"), table)) (left_out(rated.len(), shown.len(), "variants")) }
}

/// A curve of a variant: what is swept beside the workers belongs to its name.
type Curves<'a> = BTreeMap<String, Vec<(u32, &'a Arm<'a>, Interval)>>;

/// Throughput over the number of workers, where that was swept.
fn scaling(run: &Run, rated: &[(Arm<'_>, Interval)]) -> Markup {
    let curves = curves(rated);
    let swept = |points: &[(u32, &Arm<'_>, Interval)]| points.len() > 1;
    let curves: Vec<_> = curves.iter().filter(|(_, points)| swept(points)).collect();
    if curves.is_empty() {
        return html! { p .left {
            "No scaling curve: the number of workers was not swept (" code { "[sweep] workers = [1, 2, 4]" } "). "
            code { (format!("coordinator model {} --workers 1..64", run.scenario.path)) } " computes one, modelled."
        } };
    }
    let shown = &curves[..curves.len().min(SERIES)];
    let all = || shown.iter().flat_map(|(_, points)| points.iter());
    let most_workers = all().map(|(workers, ..)| *workers).max().unwrap_or(1);
    let most = all().map(|(_, _, rate)| millions(rate).high).fold(0.0, f64::max);
    let mut x = Axis::from_zero("workers", f64::from(most_workers));
    x.ticks.retain(|(at, _)| at.fract() == 0.0);
    // Names stand behind the curves' ends.
    x.to *= 1.3;
    let mut chart = Chart { x, y: Axis::from_zero("million passes a second", most), height: 260, marks: Vec::new() };
    let mut table = Table::new("Million passes a second by workers", 1, &["variant", "workers", "M/s (interval)"]);
    for (series, (name, points)) in shown.iter().enumerate() {
        let line: Vec<At> = points.iter().map(|(n, _, rate)| (f64::from(*n), rate.median / 1e6)).collect();
        let end = line.last().copied().unwrap_or_default();
        chart.marks.extend(line.iter().map(|at| Mark::Dot(series, *at)));
        chart.marks.push(Mark::Line(series, line));
        chart.marks.push(Mark::Text(series, end, clipped(name, 13)));
        for (workers, _, rate) in points.iter() {
            table.row(vec![html! { (name) }, html! { (workers) }, interval(&millions(rate))]);
        }
    }
    let finding = html! { "With more workers: " (growth(shown[0].0, shown[0].1)) };
    html! { (figure("scaling", finding, chart.svg("scaling"), table)) (left_out(curves.len(), shown.len(), "curves")) }
}

fn growth(name: &str, points: &[(u32, &Arm<'_>, Interval)]) -> String {
    let (Some((from, _, first)), Some((to, _, last))) = (points.first(), points.last()) else { return String::new() };
    format!("{name} does {} times as much with {to} as with {from}", plain(last.median / first.median))
}

fn curves<'a>(rated: &'a [(Arm<'a>, Interval)]) -> Curves<'a> {
    let mut curves = Curves::new();
    for (arm, rate) in rated {
        let sweep = &arm.summary.sweep;
        let is_workers = |key: &str| key == "workers" || key.ends_with(".workers");
        let Some(workers) = sweep.iter().find(|(key, _)| is_workers(key)).and_then(|(_, n)| n.parse().ok()) else {
            continue;
        };
        let rest = sweep.iter().filter(|(key, _)| !is_workers(key)).map(|(key, value)| format!(" {key}={value}"));
        curves
            .entry(format!("{}{}", arm.summary.variant, rest.collect::<String>()))
            .or_default()
            .push((workers, arm, *rate));
    }
    curves.values_mut().for_each(|points| points.sort_by_key(|(workers, ..)| *workers));
    curves
}

/// Each worker's share of what the headline role's do together.
fn who_gets_it(rated: &[(Arm<'_>, Interval)]) -> Markup {
    let shared: Vec<_> = rated.iter().filter_map(|(arm, _)| Some((arm, shares::of(arm.summary)?))).collect();
    if shared.is_empty() {
        return html! { p .left { "One worker in the headline role: there is nothing to share." } };
    }
    let shown = &shared[..shared.len().min(ROWS)];
    let uneven = shared.iter().max_by(|(_, a), (_, b)| spread(a).total_cmp(&spread(b)));
    let mut table =
        Table::new("Each worker's share of its role's passes", 3, &["variant", "shares, by worker", "in words"]);
    for (arm, shares) in shown {
        table.row(vec![arm.label(), shares::bar(shares), html! { (shares::in_words(shares)) }]);
    }
    html! {
        h3 { "Who gets it" }
        @if let Some((arm, shares)) = uneven {
            p { "Least even in " (arm.summary.name) ": " (shares::in_words(shares)) "." }
        }
        @if shown.len() > 4 { (details("Every variant's shares", table)) } @else { (table) }
        (left_out(shared.len(), shown.len(), "variants"))
    }
}

/// The largest share over the smallest.
fn spread(shares: &[(u32, f64)]) -> f64 {
    let all = || shares.iter().map(|(_, share)| *share);
    all().fold(0.0, f64::max) / all().fold(f64::INFINITY, f64::min)
}

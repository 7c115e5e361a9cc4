//! Percentiles of everything that was timed one by one, arms overlaid, on HdrHistogram's scale.

use crate::axis::Axis;
use crate::chart::{At, Chart, Mark};
use crate::limits::{CHARTS, ROWS, SERIES, left_out};
use crate::names::{Arm, Arms};
use crate::table::{Table, figure};
use figures::count;
use maud::{Markup, html};
use record::{LockSummary, Percentiles, RoleSummary};

/// Times of one kind, of each arm that has them.
struct Kind<'a> {
    /// What was timed: `waits for lock m`.
    what: String,
    of: Vec<(Arm<'a>, Percentiles)>,
}

/// What is timed: the noun, and where in a summary it stands.
type Timed<Of> = (&'static str, fn(&Of) -> Option<Percentiles>);

/// What a role times.
const OF_ROLES: [Timed<RoleSummary>; 6] = [
    ("passes of ROLE, from when each was due", |role| role.latency_ns),
    ("passes of ROLE, from when each began", |role| role.service_ns),
    ("the same of ROLE, corrected for coordinated omission", |role| role.service_corrected_ns),
    ("batches of touches of ROLE", |role| role.batch_ns),
    ("the same batches of ROLE, corrected for coordinated omission", |role| role.batch_corrected_ns),
    ("batches of touches of ROLE before the last role began", |role| role.batch_before_ns),
];

/// What is timed at a lock.
const OF_LOCKS: [Timed<LockSummary>; 2] =
    [("waits for LOCK that found it taken", |lock| lock.wait_ns), ("holds of LOCK, sampled", |lock| lock.hold_ns)];

pub(crate) fn section(arms: &Arms<'_>) -> Markup {
    let measured = arms.measured();
    let kinds = kinds(&measured);
    if measured.is_empty() {
        return html! { p { "No variant has figures, so none has times." } };
    }
    if kinds.is_empty() {
        return html! { p {
            "No pass, wait or batch was timed one by one. A role's " code { "latency = true" } " times its passes; \
             waits for locks and batches of touches are always timed where there are any."
        } };
    }
    let (shown, rest) = kinds.split_at(kinds.len().min(CHARTS));
    html! {
        p .legend {
            "Each point of a curve: so many of them took at most so long. Every nine to the right has as much room as \
             the one before, so the rarest stalls show. Points are those that " code { "run.json" } " keeps (50, 90, \
             99, 99.9 % and the longest), joined by lines; " code { "latency.hlog" } " has them all."
        }
        @for (index, kind) in shown.iter().enumerate() { (overlaid(index, kind)) }
        @for kind in rest.iter().take(CHARTS) { (values(kind)) }
        (left_out(rest.len(), CHARTS.min(rest.len()), "kinds of times"))
    }
}

fn kinds<'a>(arms: &[Arm<'a>]) -> Vec<Kind<'a>> {
    let mut kinds: Vec<Kind<'a>> = Vec::new();
    let mut add = |what: String, arm: Arm<'a>, times: Percentiles| match kinds.iter_mut().find(|kind| kind.what == what)
    {
        Some(kind) => kind.of.push((arm, times)),
        None => kinds.push(Kind { what, of: vec![(arm, times)] }),
    };
    for (name, of) in OF_ROLES {
        for arm in arms {
            let timed = arm.summary.roles.iter().filter_map(|role| Some((role, of(role)?)));
            timed.for_each(|(role, times)| add(name.replace("ROLE", &role.role), *arm, times));
        }
    }
    for (name, of) in OF_LOCKS {
        for arm in arms {
            let timed = arm.summary.locks.iter().filter_map(|lock| Some((lock, of(lock)?)));
            timed.for_each(|(lock, times)| add(name.replace("LOCK", &lock.lock), *arm, times));
        }
    }
    kinds.retain(|kind| kind.of.iter().any(|(_, times)| times.count > 0));
    kinds
}

/// The curves of one kind over each other, and their table.
fn overlaid(index: usize, kind: &Kind<'_>) -> Markup {
    let shown = &kind.of[..kind.of.len().min(SERIES)];
    let curves: Vec<Vec<At>> = shown.iter().map(|(_, times)| curve(times)).collect();
    let most = curves.iter().flatten().map(|(x, _)| *x).fold(1.0, f64::max);
    let mut x = Axis::nines(most);
    // Letters stand behind the curves' ends.
    x.to += 0.5;
    let y = Axis::logarithmic("ns", curves.iter().flatten().map(|(_, ns)| *ns));
    let mut chart = Chart { x, y, height: 280, marks: Vec::new() };
    let letters: Vec<String> = shown.iter().map(|(arm, _)| arm.letter()).collect();
    for (series, curve) in curves.iter().enumerate() {
        chart.marks.push(Mark::Line(series, curve.clone()));
    }
    chart.marks.extend(labels(&chart, &curves, &letters));
    let id = format!("times-{index}");
    html! {
        (figure(&id, finding(kind), chart.svg(&id), values(kind)))
        (left_out(kind.of.len(), shown.len(), "variants' curves"))
    }
}

/// The curves' letters at their ends. Ends that lie too close for two letters have one label, in the colour of the
/// first.
fn labels(chart: &Chart, curves: &[Vec<At>], letters: &[String]) -> Vec<Mark> {
    const LETTER: (f64, f64) = (0.06, 0.07);
    let place = |(x, y): At| (chart.x.part(x), chart.y.part(y));
    let mut labels: Vec<(usize, At, String)> = Vec::new();
    for (series, (curve, letter)) in curves.iter().zip(letters).enumerate() {
        let Some(end) = curve.last() else { continue };
        let (x, y) = place(*end);
        let near = |(_, other, _): &&mut (usize, At, String)| {
            let (at, high) = place(*other);
            (at - x).abs() < LETTER.0 && (high - y).abs() < LETTER.1
        };
        match labels.iter_mut().find(near) {
            Some((_, _, text)) => text.push_str(&format!(" {letter}")),
            None => labels.push((series, *end, letter.clone())),
        }
    }
    labels.into_iter().map(|(series, end, text)| Mark::Text(series, end, text)).collect()
}

/// Which arm has the longest tail.
fn finding(kind: &Kind<'_>) -> Markup {
    let tail = |(_, times): &&(Arm<'_>, Percentiles)| times.p999;
    let longest = kind.of.iter().max_by_key(tail);
    let what = crate::answer::capital(&kind.what);
    html! {
        (what) ": "
        @if let Some((arm, times)) = longest {
            "half of them within " (count(times.p50)) " ns and one in a thousand over " (count(times.p999)) " ns in "
            (arm.summary.name)
            @if kind.of.len() > 1 { ", where the tail is longest" }
        }
    }
}

/// Points of a curve: 1 / (1 - quantile), and nanoseconds. No quantile finer than the number of times that were taken.
fn curve(times: &Percentiles) -> Vec<At> {
    let count = times.count.max(1) as f64;
    let known = [(2.0, times.p50), (10.0, times.p90), (100.0, times.p99), (1000.0, times.p999)];
    let kept = known.into_iter().filter(|(nines, _)| *nines <= count);
    kept.chain([(count, times.max)]).map(|(nines, ns)| (nines, ns.max(1) as f64)).collect()
}

fn values(kind: &Kind<'_>) -> Markup {
    let heads = ["variant", "times", "min", "mean", "50 %", "90 %", "99 %", "99.9 %", "max"];
    let mut table = Table::new(format!("{}, ns", crate::answer::capital(&kind.what)), 1, &heads);
    for (arm, times) in kind.of.iter().take(ROWS) {
        let Percentiles { count: all, min, mean, p50, p90, p99, p999, max } = *times;
        let mut row = vec![arm.label()];
        row.extend([all, min, mean.round() as u64, p50, p90, p99, p999, max].map(|figure| html! { (count(figure)) }));
        table.row(row);
    }
    html! { (table) (left_out(kind.of.len(), ROWS, "variants")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_that_lie_on_each_other_have_one_label() {
        let (x, y) = (Axis::nines(1000.0), Axis::logarithmic("ns", [10.0, 10_000.0]));
        let chart = Chart { x, y, height: 280, marks: Vec::new() };
        let curves = [vec![(1000.0, 5000.0)], vec![(100.0, 20.0)], vec![(1000.0, 5100.0)]];
        let labels = labels(&chart, &curves, &["A".into(), "B".into(), "C".into()]);
        let text =
            |mark: &Mark| if let Mark::Text(series, _, text) = mark { (*series, text.clone()) } else { panic!() };
        assert_eq!(labels.iter().map(text).collect::<Vec<_>>(), [(0, "A C".into()), (1, "B".into())]);
    }

    #[test]
    fn a_curve_claims_no_quantile_finer_than_its_count() {
        let times = Percentiles { count: 50, min: 1, mean: 2.0, p50: 2, p90: 9, p99: 30, p999: 30, max: 31 };
        assert_eq!(curve(&times), [(2.0, 2.0), (10.0, 9.0), (50.0, 31.0)]);
    }
}

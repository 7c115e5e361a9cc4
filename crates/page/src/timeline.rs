//! One repetition's window: how long batches of touches took, and when somebody gave memory back.

use crate::axis::Axis;
use crate::chart::{At, Chart, Mark};
use crate::limits::{CHARTS, POINTS, SERIES, left_out};
use crate::names::{Arm, Arms};
use crate::table::{Table, details, figure};
use figures::{count, plain};
use maud::{Markup, html};
use record::{Timeline, TimelineBucket, WorkerTimeline};

/// Points of a drawn curve at most: more than a drawing this wide can show.
const DRAWN: usize = 240;
/// Arms that are shown without being opened.
const OPEN: usize = 3;

pub(crate) fn section(arms: &Arms<'_>) -> Markup {
    let mut timed: Vec<(Arm<'_>, &Timeline)> =
        arms.all().iter().filter_map(|arm| Some((*arm, arm.summary.timeline.as_ref()?))).collect();
    if timed.is_empty() {
        return html! { p {
            "No loop of this scenario has steps on regions (" code { "touch" } ", " code { "punch" } ", "
            code { "unmap" } ", …), which are what a timeline is kept of."
        } };
    }
    // The arm in which somebody stalls longest says most.
    timed.sort_by(|(_, a), (_, b)| longest(b).total_cmp(&longest(a)));
    let shown = &timed[..timed.len().min(CHARTS)];
    html! {
        p .legend {
            "The first repetition that counts of each variant; " code { "timeline.csv" } " has all. A curve: the \
             longest batch of touches in each stretch of the window. Strokes at the foot: calls that gave memory back, \
             the culprits'."
        }
        @for (index, (arm, timeline)) in shown.iter().enumerate() {
            @if index < OPEN { (one(*arm, timeline)) }
            @else { details { summary { (arm.label()) } (one(*arm, timeline)) } }
        }
        (left_out(timed.len(), shown.len(), "variants"))
    }
}

fn longest(timeline: &Timeline) -> f64 {
    timeline.workers.iter().flat_map(|worker| &worker.buckets).map(|bucket| bucket.max_ns).fold(0.0, f64::max)
}

fn one(arm: Arm<'_>, timeline: &Timeline) -> Markup {
    let touching: Vec<&WorkerTimeline> = timeline.workers.iter().filter(|worker| !worker.buckets.is_empty()).collect();
    let calling: Vec<&WorkerTimeline> = timeline.workers.iter().filter(|worker| !worker.calls.is_empty()).collect();
    let id = format!("window-{}", arm.index);
    let shown = &touching[..touching.len().min(SERIES / 2)];
    let mut x = Axis::from_zero("milliseconds into the window", last(timeline) / 1e6);
    x.to *= 1.08;
    let y = Axis::logarithmic("longest batch of touches, ns", shown.iter().flat_map(|w| &w.buckets).map(|b| b.max_ns));
    let mut chart = Chart { x, y, height: 240, marks: Vec::new() };
    for (series, worker) in shown.iter().enumerate() {
        let curve = merged(&worker.buckets, DRAWN).iter().map(|b| (b.start_ns / 1e6, b.max_ns)).collect::<Vec<At>>();
        chart.marks.extend(curve.last().map(|end| Mark::Text(series, *end, worker.worker.to_string())));
        chart.marks.push(Mark::Line(series, curve));
    }
    for (index, worker) in calling.iter().take(SERIES / 2).enumerate() {
        let series = SERIES / 2 + index;
        let high = 10 + 6 * index as u32;
        chart.marks.extend(worker.calls.iter().map(|call| Mark::Instant(series, call.start_ns / 1e6, high)));
    }
    let values = details("The same as a table", table(arm, &touching, &calling));
    let finding = html! { (arm.label()) ": " (finding(&touching, &calling)) };
    html! {
        (figure(&id, finding, chart.svg(&id), html! { (culprits(&calling)) (values) }))
        (left_out(touching.len(), shown.len(), "workers' curves"))
        (left_out(calling.len(), SERIES / 2, "workers' calls"))
    }
}

fn last(timeline: &Timeline) -> f64 {
    let buckets = timeline.workers.iter().flat_map(|w| &w.buckets).map(|b| b.start_ns + timeline.bucket_ns);
    let calls = timeline.workers.iter().flat_map(|w| &w.calls).map(|call| call.end_ns);
    buckets.chain(calls).fold(0.0, f64::max)
}

/// The longest batch before anybody gave memory back, and from then on.
fn finding(touching: &[&WorkerTimeline], calling: &[&WorkerTimeline]) -> String {
    let most = |from: f64, to: f64| {
        let inside = |bucket: &&TimelineBucket| (from..to).contains(&bucket.start_ns);
        touching.iter().flat_map(|w| &w.buckets).filter(inside).map(|b| b.max_ns).fold(0.0, f64::max)
    };
    let whole = most(0.0, f64::INFINITY);
    if whole == 0.0 {
        return "no batch of touches was timed".to_owned();
    }
    let first = calling.iter().flat_map(|w| &w.calls).map(|call| call.start_ns).fold(f64::INFINITY, f64::min);
    if !first.is_finite() {
        return format!("nobody gives memory back; the longest batch takes {} ns", plain(whole));
    }
    let (before, after) = (most(0.0, first), most(first, f64::INFINITY));
    match before > 0.0 {
        true => format!(
            "the longest batch takes {} ns before the first call that gives memory back, and {} ns from then on",
            plain(before),
            plain(after)
        ),
        false => format!("memory is given back from the begin on; the longest batch takes {} ns", plain(after)),
    }
}

/// Who gave memory back, how often, by which steps.
fn culprits(calling: &[&WorkerTimeline]) -> Markup {
    let steps = |worker: &WorkerTimeline| {
        let mut steps: Vec<&str> = worker.calls.iter().map(|call| call.step.as_str()).collect();
        steps.sort_unstable();
        steps.dedup();
        steps.join(", ")
    };
    html! { @if !calling.is_empty() {
        p { "Calls that gave memory back:" }
        ul { @for worker in calling {
            li {
                "worker " (worker.worker) " (" (worker.role) "), " code { (steps(worker)) } ": "
                (count(worker.calls.len() as u64 + worker.calls_left_out)) " calls"
                @if worker.calls_left_out > 0 { ", the first " (worker.calls.len()) " of which are marked" }
            }
        } }
    } @else { p { "No call of this repetition gave memory back." } } }
}

fn table(arm: Arm<'_>, touching: &[&WorkerTimeline], calling: &[&WorkerTimeline]) -> Markup {
    let caption = format!("{}: batches of touches, ns, and calls, through the window", arm.summary.name);
    let mut table = Table::new(caption, 1, &["from, ms", "worker", "batches", "median", "longest", "calls begun"]);
    let rows = POINTS / touching.len().clamp(1, 4);
    for worker in touching.iter().take(4) {
        let buckets = merged(&worker.buckets, rows);
        for (index, bucket) in buckets.iter().enumerate() {
            let end = buckets.get(index + 1).map_or(f64::INFINITY, |next| next.start_ns);
            let inside = |start: f64| (bucket.start_ns..end).contains(&start);
            let calls = calling.iter().flat_map(|w| &w.calls).filter(|call| inside(call.start_ns)).count();
            table.row(vec![
                html! { (plain(bucket.start_ns / 1e6)) },
                html! { (worker.worker) },
                html! { (count(bucket.count)) },
                html! { (plain(bucket.p50_ns)) },
                html! { (plain(bucket.max_ns)) },
                html! { (calls) },
            ]);
        }
    }
    html! { (table) (left_out(touching.len(), touching.len().min(4), "workers")) }
}

/// At most `most` buckets: neighbours together, with the longest of each and the median of their medians.
fn merged(buckets: &[TimelineBucket], most: usize) -> Vec<TimelineBucket> {
    let size = buckets.len().div_ceil(most.max(1)).max(1);
    let one = |chunk: &[TimelineBucket]| {
        let mut medians: Vec<f64> = chunk.iter().map(|bucket| bucket.p50_ns).collect();
        medians.sort_by(f64::total_cmp);
        TimelineBucket {
            start_ns: chunk[0].start_ns,
            count: chunk.iter().map(|bucket| bucket.count).fold(0, u64::saturating_add),
            min_ns: chunk.iter().map(|bucket| bucket.min_ns).fold(f64::INFINITY, f64::min),
            p50_ns: medians[medians.len() / 2],
            p99_ns: chunk.iter().map(|bucket| bucket.p99_ns).fold(0.0, f64::max),
            max_ns: chunk.iter().map(|bucket| bucket.max_ns).fold(0.0, f64::max),
        }
    };
    buckets.chunks(size).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::TimelineSpan;

    fn bucket(ms: f64, max_ns: f64) -> TimelineBucket {
        TimelineBucket { start_ns: ms * 1e6, count: 3, min_ns: 1.0, p50_ns: 2.0, p99_ns: max_ns, max_ns }
    }

    #[test]
    fn no_stall_is_lost_where_buckets_are_merged() {
        let buckets: Vec<TimelineBucket> =
            (0..1000).map(|n| bucket(f64::from(n), if n == 777 { 9e4 } else { 10.0 })).collect();
        let few = merged(&buckets, 7);
        assert!(few.len() <= 7, "{}", few.len());
        assert_eq!(
            (few.iter().map(|b| b.max_ns).fold(0.0, f64::max), few.iter().map(|b| b.count).sum::<u64>()),
            (9e4, 3000)
        );
        assert!(merged(&[], 7).is_empty());
    }

    #[test]
    fn the_finding_tells_before_from_after() {
        let victim = WorkerTimeline { buckets: vec![bucket(0.0, 400.0), bucket(50.0, 9000.0)], ..Default::default() };
        let call = TimelineSpan { step: "punch seg".into(), start_ns: 4e7, end_ns: 4.1e7 };
        let culprit = WorkerTimeline { calls: vec![call], ..Default::default() };
        let said = finding(&[&victim], &[&culprit]);
        assert_eq!(
            said,
            "the longest batch takes 400 ns before the first call that gives memory back, and 9000 ns from then on"
        );
        assert!(finding(&[&victim], &[]).starts_with("nobody gives memory back"));
    }
}

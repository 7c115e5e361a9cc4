//! The fastest answer: the verdict in a sentence, the forest plot, and the hottest line of each variant.

use crate::axis::Axis;
use crate::chart::{Chart, Mark};
use crate::limits::{ROWS, left_out};
use crate::lines;
use crate::names::{Arm, Arms};
use crate::table::{Notes, Table, details, figure, interval, prose};
use figures::{Figure, beside_prediction, percent, plain};
use maud::{Markup, html};
use record::{Diagnosis, Interval, Run, Severity};

/// Variants of the table beside the forest plot, which has those without a figure too.
const TABLED: usize = 2 * ROWS;

/// Sentences on lines that are seen without asking.
const SENTENCES: usize = 6;

pub(crate) fn section(run: &Run, arms: &Arms<'_>) -> Markup {
    html! {
        @if let Some(first) = run.diagnosis.first() { (verdict(first, arms)) }
        p { (prose(&compared(run, arms))) }
        (predictions(run))
        (forest(run, arms))
        (left_out(arms.all().len(), TABLED, "variants"))
        (hottest(arms))
    }
}

fn verdict(diagnosis: &Diagnosis, arms: &Arms<'_>) -> Markup {
    let severity = severity(diagnosis.severity);
    let kind = name(diagnosis, arms);
    html! {
        p class=(format!("verdict {severity}")) {
            strong { (kind) ": " } (prose(&diagnosis.text))
            @if !diagnosis.cure.is_empty() { " " strong { "Cure: " } (prose(&diagnosis.cure)) }
        }
    }
}

/// What whoever ran it had predicted, beside what was seen.
fn predictions(run: &Run) -> Markup {
    html! {
        @if !run.predictions.is_empty() {
            h3 { "What was predicted" }
            ul {
                @for one in run.predictions.iter().take(ROWS) {
                    li {
                        code { (one.text) } ": predicted " strong { (plain(one.predicted)) } ", "
                        (prose(&beside_prediction(one)))
                    }
                }
            }
            (left_out(run.predictions.len(), ROWS, "predictions"))
        }
    }
}

/// What a diagnosis is called: its kind and severity, or what it means that there is none.
pub(crate) fn name(diagnosis: &Diagnosis, arms: &Arms<'_>) -> String {
    match diagnosis.kind.as_str() {
        "none" if arms.measured().is_empty() => "No answer".to_owned(),
        "none" => "Nothing found".to_owned(),
        kind => format!("{} ({})", capital(&figures::in_words(kind)), severity(diagnosis.severity)),
    }
}

/// How much a diagnosis costs, in a word.
pub(crate) fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::None => "nothing to cure",
        Severity::Low => "low",
        Severity::Medium => "medium",
        Severity::High => "high",
    }
}

/// `text` with a capital.
pub(crate) fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// Which variant is fastest, and how far the slowest is from it; or why that cannot be said.
fn compared(run: &Run, arms: &Arms<'_>) -> String {
    let ratios = rated(arms);
    let line = |interval: &Interval| Figure::new(interval).line();
    let (Some((best, _)), Some((worst, most))) = (ratios.first(), ratios.last()) else {
        return match (arms.measured().first(), arms.all().first()) {
            (Some(only), _) => match &only.summary.ns_per_op {
                Some(ns) => format!(
                    "A pass of `{}` takes {} ns; there is nothing to compare it with.",
                    only.summary.name,
                    line(ns)
                ),
                None => format!("`{}` has no figure.", only.summary.name),
            },
            (None, Some(arm)) => format!("This run has no figure: `{}` is {}.", arm.summary.name, arm.reason()),
            (None, None) => "This run has no variant.".to_owned(),
        };
    };
    if ratios.len() == 1 {
        return format!(
            "`{}` alone has a figure in the run's regime: there is nothing to compare it with.",
            best.summary.name
        );
    }
    let resolution = run.method.resolution.unwrap_or(0.0);
    let seen = match run.method.resolution {
        Some(resolution) => format!(" This run could have told an effect of {}.", percent(resolution)),
        None => String::new(),
    };
    if arms.all().iter().any(|arm| !arm.summary.sweep.is_empty()) {
        return at_points(most, &worst.summary.name, resolution) + &seen;
    }
    if most.low <= 1.0 + resolution {
        return format!("No variant is told from the fastest, `{}`.{seen}", best.summary.name);
    }
    let equals = ratios[1..].iter().filter(|(_, ratio)| ratio.low <= 1.0 + resolution);
    let equals: Vec<String> = equals.map(|(arm, _)| format!("`{}`", arm.summary.name)).collect();
    let tie = match equals.len() {
        0 => String::new(),
        1..=3 => format!(", not told from {}", equals.join(" and ")),
        n => format!(", not told from {n} others"),
    };
    let (best, worst, all) = (&best.summary.name, &worst.summary.name, ratios.len());
    format!("`{best}` is the fastest of {all}{tie}; a pass of `{worst}` takes {} times as long.{seen}", line(most))
}

/// With a sweep, a variant is compared with the fastest at its own point.
fn at_points(most: &Interval, worst: &str, resolution: f64) -> String {
    match most.low <= 1.0 + resolution {
        true => "At no point of the sweep is a variant told from the fastest there.".to_owned(),
        false => {
            let most = Figure::new(most).line();
            format!(
                "The largest difference at one point of the sweep: `{worst}` takes {most} times as long as the best."
            )
        }
    }
}

/// Variants that have a ratio, the fastest first.
fn rated<'a>(arms: &Arms<'a>) -> Vec<(Arm<'a>, Interval)> {
    let mut rated: Vec<(Arm<'_>, Interval)> =
        arms.measured().into_iter().filter_map(|arm| Some((arm, arm.summary.ratio_to_best?))).collect();
    rated.sort_by(|(_, a), (_, b)| a.median.total_cmp(&b.median));
    rated
}

fn forest(run: &Run, arms: &Arms<'_>) -> Markup {
    let rated = rated(arms);
    let values = values(run, arms);
    if rated.len() < 2 {
        return html! { (values.0) (values.1) };
    }
    let shown = &rated[rated.len().saturating_sub(ROWS)..];
    let names: Vec<String> = shown.iter().map(|(arm, _)| arm.in_chart()).collect();
    let ends = shown.iter().flat_map(|(_, ratio)| [ratio.low, ratio.high, ratio.median]);
    let axis = Axis::logarithmic("times as long as the fastest, ns per pass", ends.chain([1.0]));
    let mut chart = Chart::of_rows(axis, &names);
    chart.marks.push(Mark::Guide((1.0, f64::MIN), (1.0, f64::MAX)));
    for (row, (_, ratio)) in shown.iter().enumerate() {
        let y = -(row as f64);
        chart.marks.push(Mark::Span(0, (ratio.low, y), (ratio.high, y)));
        chart.marks.push(Mark::Dot(0, (ratio.median, y)));
    }
    let (worst, most) = &rated[rated.len() - 1];
    let finding = html! {
        @if most.low > 1.0 {
            "Time of a pass against the fastest variant: up to " (interval(most)) " times, in " (worst.summary.name)
        } @else {
            "Time of a pass against the fastest variant: no interval lies wholly above 1"
        }
    };
    html! {
        (figure("forest", finding, chart.svg("forest"), html! { (values.0) (values.1) }))
        (left_out(rated.len(), shown.len(), "variants"))
    }
}

/// The same figures as a table, and reasons for those that are missing.
fn values(run: &Run, arms: &Arms<'_>) -> (Table, Notes) {
    let level = percent(run.method.level);
    let caption = format!("ns per pass of the headline role and worker: median, and its {level} interval");
    let mut table = Table::new(caption, 1, &["variant", "bytes", "ns per pass", "times the fastest", "kept"]);
    let mut notes = Notes::default();
    for arm in arms.all().iter().take(TABLED) {
        let summary = arm.summary;
        let fate = summary.repetitions;
        let cell = |of: Option<&Interval>, notes: &mut Notes, why: String| match of {
            Some(Interval { median: 1.0, low: 1.0, high: 1.0 }) => html! { "1" },
            Some(of) => interval(of),
            None => notes.missing(why),
        };
        let alone = || match summary.ns_per_op {
            Some(_) => "no ratio could be made within one regime".to_owned(),
            None => arm.reason(),
        };
        table.row(vec![
            arm.label(),
            html! { (figures::count(summary.bytes)) },
            cell(summary.ns_per_op.as_ref(), &mut notes, arm.reason()),
            cell(summary.ratio_to_best.as_ref(), &mut notes, alone()),
            html! { (fate.kept) "/" (fate.all()) },
        ]);
    }
    (table, notes)
}

fn listed(sentences: &[(Arm<'_>, String)]) -> Markup {
    html! { ul { @for (arm, text) in sentences { li { (arm.label()) ": " (text) } } } }
}

/// The line map in a sentence a variant.
fn hottest(arms: &Arms<'_>) -> Markup {
    let sentences: Vec<(Arm<'_>, String)> =
        arms.all().iter().take(ROWS).filter_map(|arm| Some((*arm, lines::hottest(arm.summary)?))).collect();
    html! { @if !sentences.is_empty() {
        h3 { "The hottest line of each variant" }
        @let (first, rest) = sentences.split_at(sentences.len().min(SENTENCES));
        (listed(first))
        @if !rest.is_empty() { (details(&format!("{} variants more", rest.len()), listed(rest))) }
        (left_out(arms.all().len(), ROWS, "variants"))
        p { a href="#lines" { "All lines, byte by byte" } }
    } }
}

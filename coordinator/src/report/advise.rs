//! The page of `advise`: the layouts as measured, each role, other machines as modelled, and what to do.

use crate::report::figures::{Figure, count, percent, plain, plural, wall_time};
use crate::report::page::Page;
use crate::report::style::{Style, Tone};
use crate::report::table::{Cell, Column, Grid, Notes, Row};
use record::{AdviseRun, AdvisedLayout, AdvisedRole, Interval, LayoutState, Verdict};
use std::collections::BTreeSet;

/// The whole page.
pub(crate) fn render(run: &AdviseRun, style: &Style) -> String {
    let mut page = Page::new(style);
    opening(&mut page, run);
    measured(&mut page, run);
    roles(&mut page, run);
    elsewhere(&mut page, run);
    ranked_out(&mut page, run);
    closing(&mut page, run);
    page.finish()
}

fn ran(layout: &AdvisedLayout) -> bool {
    matches!(layout.state, LayoutState::Measured | LayoutState::Unresolved)
}

fn opening(page: &mut Page, run: &AdviseRun) {
    page.heading(&run.scenario.title);
    if !run.scenario.question.is_empty() {
        page.prose(&run.scenario.question);
    }
    let tried = run.layouts.iter().filter(|layout| ran(layout)).count();
    let noise = match run.resolution {
        Some(seen) => format!("the present layout differs from itself by up to {}", percent(seen)),
        None => "the present layout's twin has no figure, so that no difference can be told from noise".to_owned(),
    };
    page.prose(&format!(
        "Present layout: variant {}. {} came into question, {tried} were measured side by side in {}, {}: {noise}.",
        run.present,
        plural(run.layouts.len() as u64, "layout"),
        plural(u64::from(run.blocks), "block"),
        wall_time(run.duration_s),
    ));
}

fn measured(page: &mut Page, run: &AdviseRun) {
    page.heading("Layouts, as measured");
    let columns = vec![
        Column::words("layout"),
        Column::figures("bytes", "bytes"),
        Column::figures("lines/op", "lines\n/op"),
        Column::figures("gain (interval)", "gain\n(interval)"),
        Column::figures("modelled gain", "modelled\ngain"),
        Column::words("verdict"),
    ];
    let mut notes = Notes::default();
    let mut rows: Vec<Row> = Vec::new();
    let (layouts, code): (Vec<&AdvisedLayout>, Vec<&AdvisedLayout>) =
        run.layouts.iter().filter(|layout| ran(layout)).partition(|layout| layout.code_change.is_none());
    for (index, layout) in layouts.into_iter().chain(code.iter().copied()).enumerate() {
        let is_first_code = code.first().is_some_and(|first| first.name == layout.name);
        let section = is_first_code.then_some("changes of the program, each worth only what is said of it below");
        rows.push(Row { section, ..Row::new(cells(layout, index == 0, &mut notes)) });
    }
    page.grid(&Grid { columns, rows }, &notes);
    page.legend(
        "gain: time of a pass in the present layout over that in this one, the geometric mean over the roles: above 1 is \
         faster. lines/op: cache lines that a pass touches, over all roles. modelled: computed for this machine.",
    );
}

fn cells(layout: &AdvisedLayout, is_present: bool, notes: &mut Notes) -> Vec<Cell> {
    let lines: f64 = layout.roles.iter().map(|role| role.lines_per_op).sum();
    let gain = match (&layout.gain, is_present) {
        (_, true) => Cell::text("1"),
        (Some(gain), false) => Cell::interval(gain),
        (None, false) => notes.missing(layout.why.clone().unwrap_or_else(|| "too few sound repetitions".to_owned())),
    };
    let modelled = match (layout.modelled_gain, &layout.not_modelled) {
        (Some(gain), _) => Cell::text(plain(gain)),
        (None, Some(why)) => notes.missing(format!("not modelled: {why}")),
        (None, None) => Cell::empty(),
    };
    let verdict = layout.verdict.map_or(String::new(), |verdict| verdict_in_words(verdict, layout.gain));
    vec![
        Cell::text(&layout.name),
        Cell::text(count(layout.bytes)),
        Cell::text(plain(lines)),
        gain,
        modelled,
        Cell::text(if is_present { "present" } else { &verdict }),
    ]
}

fn verdict_in_words(verdict: Verdict, gain: Option<Interval>) -> String {
    match (verdict, gain) {
        (Verdict::Faster, _) => "faster".to_owned(),
        (Verdict::Slower, _) => "slower".to_owned(),
        (Verdict::NoDifference, Some(gain)) => {
            format!("no difference > {}", percent(gain.high.max(1.0 / gain.low) - 1.0))
        }
        (Verdict::NoDifference, None) => "no difference".to_owned(),
        (Verdict::Unresolved, _) => "unresolved".to_owned(),
    }
}

/// What each role gains or pays. Of a scenario whose roles are one with one worker the table above says it all.
fn roles(page: &mut Page, run: &AdviseRun) {
    page.heading("Each role");
    let columns = vec![
        Column::words("layout"),
        Column::words("role"),
        Column::figures("lines/op", "lines\n/op"),
        Column::figures("ns/op (interval)", "ns/op\n(interval)"),
        Column::figures("gain (interval)", "gain\n(interval)"),
        Column::figures("slowest worker's gain (interval)", "slowest\nworker's\n(interval)"),
    ];
    let mut notes = Notes::default();
    let mut rows = Vec::new();
    for (index, layout) in run.layouts.iter().filter(|layout| ran(layout)).enumerate() {
        for role in &layout.roles {
            let block = Some(format!("{}, {}", layout.name, role.role));
            rows.push(Row { block, ..Row::new(role_cells(layout, role, index == 0, &mut notes)) });
        }
    }
    page.grid(&Grid { columns, rows }, &notes);
}

fn role_cells(layout: &AdvisedLayout, role: &AdvisedRole, is_present: bool, notes: &mut Notes) -> Vec<Cell> {
    let mut gain = |gain: Option<Interval>, verdict: Option<Verdict>| match (gain, is_present) {
        (_, true) => Cell::text("1"),
        (Some(gain), false) if verdict == Some(Verdict::Slower) => {
            let figure = Figure::new(&gain).line();
            notes.marked(&figure, "slower than at present by more than the noise".to_owned())
        }
        (Some(gain), false) => Cell::interval(&gain),
        (None, false) => notes.missing("too few sound repetitions".to_owned()),
    };
    let (of_median, of_slowest) =
        (gain(role.gain, role.verdict), gain(role.slowest_worker_gain, role.slowest_worker_verdict));
    let ns = match &role.ns_per_op {
        Some(ns) => Cell::interval(ns),
        None => notes.missing("too few sound repetitions".to_owned()),
    };
    vec![
        Cell::text(&layout.name),
        Cell::text(&role.role),
        Cell::text(plain(role.lines_per_op)),
        ns,
        of_median,
        of_slowest,
    ]
}

fn elsewhere(page: &mut Page, run: &AdviseRun) {
    let machines: BTreeSet<&str> =
        run.layouts.iter().flat_map(|layout| layout.modelled_elsewhere.keys()).map(String::as_str).collect();
    if machines.is_empty() {
        return;
    }
    page.heading("On other machines: modelled, not measured");
    let mut columns = vec![Column::words("layout")];
    columns.extend(machines.iter().map(|name| Column::figures((*name).to_owned(), name.replace('-', "-\n"))));
    let row = |layout: &AdvisedLayout| {
        let gain = |name: &&str| {
            layout.modelled_elsewhere.get(*name).map_or_else(Cell::empty, |gain| Cell::text(plain(*gain)))
        };
        Row::new(std::iter::once(Cell::text(&layout.name)).chain(machines.iter().map(gain)).collect())
    };
    let rows =
        run.layouts.iter().filter(|layout| ran(layout) && !layout.modelled_elsewhere.is_empty()).map(row).collect();
    page.grid_in_bands(Grid { columns, rows }, 1, &Notes::default());
    page.legend("gain of the same roles on as many cores of that machine.");
}

fn ranked_out(page: &mut Page, run: &AdviseRun) {
    let out: Vec<String> = run
        .layouts
        .iter()
        .filter(|layout| !ran(layout))
        .map(|layout| {
            let modelled =
                layout.modelled_gain.map_or(String::new(), |gain| format!(", modelled gain {}", plain(gain)));
            format!("{} ({} bytes{modelled})", layout.name, count(layout.bytes))
        })
        .collect();
    if out.is_empty() && run.left_out.is_empty() {
        return;
    }
    page.heading("Not measured");
    if !out.is_empty() {
        page.prose(&format!("Others rank before: {}.", out.join(", ")));
    }
    for variant in &run.left_out {
        page.prose(&format!("Variant {}: {}.", variant.variant, variant.why));
    }
}

fn closing(page: &mut Page, run: &AdviseRun) {
    page.heading("Advice");
    let advice = &run.advice;
    let find = |name: &str| run.layouts.iter().find(|layout| layout.name == name);
    let leave = run.layouts.first().is_some_and(|present| present.name == advice.layout);
    match (advice.conclusive, leave) {
        (false, _) => page.verdict(Tone::Caution, "inconclusive", &advice.reason),
        (true, true) => page.verdict(Tone::Good, "as it is", &advice.reason),
        (true, false) => page.verdict(Tone::Good, &advice.layout, &advice.reason),
    }
    if let Some(layout) = find(&advice.layout).filter(|_| !leave) {
        page.item(2, "", &format!("{}: {}", layout.name, layout.what));
        page.item(2, "", &offsets(layout));
    }
    if let Some(layout) = advice.smaller.as_deref().and_then(find) {
        page.item(2, "", &format!("{} takes {} bytes and is no slower", layout.name, count(layout.bytes)));
    }
    for layout in advice.code_changes.iter().filter_map(|name| find(name)) {
        let gain = layout.gain.map_or(String::new(), |gain| format!(", {} times as fast", Figure::new(&gain).line()));
        let slower: Vec<&str> = layout
            .roles
            .iter()
            .filter(|role| [role.verdict, role.slowest_worker_verdict].contains(&Some(Verdict::Slower)))
            .map(|role| role.role.as_str())
            .collect();
        let cost = if slower.is_empty() { String::new() } else { format!("; it makes {} slower", slower.join(", ")) };
        let when = layout.code_change.as_deref().unwrap_or_default();
        page.item(
            0,
            "- ",
            &format!(
                "needs a change of code, not only of the struct: {}: {}{gain}{cost}. The same only if {when}.",
                layout.name, layout.what
            ),
        );
    }
    let budget_spent = |id: &str| id == "budget_spent";
    for warning in run.warnings.iter().filter(|warning| !budget_spent(&warning.id)) {
        page.item(0, "! ", &format!("{} ({}): {}", warning.text, warning.id, warning.advice));
    }
}

/// `head 0, tail 64, slots 128 192`.
fn offsets(layout: &AdvisedLayout) -> String {
    let mut fields: Vec<(&String, &Vec<u64>)> = layout.offsets.iter().collect();
    fields.sort_by_key(|(_, list)| list.first().copied());
    let field = |(name, list): (&String, &Vec<u64>)| {
        let shown: Vec<String> = list.iter().take(4).map(ToString::to_string).collect();
        let more = if list.len() > 4 { " …" } else { "" };
        format!("{name} {}{more}", shown.join(" "))
    };
    format!("offsets: {}", fields.into_iter().map(field).collect::<Vec<_>>().join(", "))
}

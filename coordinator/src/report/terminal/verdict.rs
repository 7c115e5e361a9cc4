//! What it means: the diagnosis, the scenario's claims, and what to mind.

use crate::report::figures::{self, Figure, plain};
use crate::report::page::Page;
use crate::report::style::Tone;
use record::{Diagnosis, Evidence, ExpectOutcome, ExpectState, Run, Severity};

/// Diagnosis and expectations.
pub(super) fn write(page: &mut Page, run: &Run) {
    page.heading("Diagnosis");
    for diagnosis in &run.diagnosis {
        one(page, diagnosis);
    }
    if let Some(worst) = run.diagnosis.iter().find(|diagnosis| diagnosis.severity > Severity::None) {
        page.legend(&format!("More on it, and where to see it alone: coordinator explain {}", worst.kind));
    }
    if !run.expect.is_empty() {
        page.heading("Expectations of the scenario");
        for outcome in &run.expect {
            expectation(page, outcome);
        }
    }
}

/// Warnings, each with what to do.
pub(super) fn warnings(page: &mut Page, run: &Run) {
    if !run.warnings.is_empty() {
        page.heading("Warnings");
        for warning in &run.warnings {
            page.verdict(Tone::Caution, &warning.id, &warning.text);
            page.item(2, "", &warning.advice);
        }
    }
}

/// What a diagnosis says, without what it rests on.
pub(in crate::report) fn finding(page: &mut Page, diagnosis: &Diagnosis) {
    let (tone, severity) = match diagnosis.severity {
        Severity::None => (Tone::Good, "nothing to cure"),
        Severity::Low => (Tone::Caution, "low"),
        Severity::Medium => (Tone::Caution, "medium"),
        Severity::High => (Tone::Bad, "high"),
    };
    let verdict = match diagnosis.kind.as_str() {
        "none" => "nothing found".to_owned(),
        kind => format!("{} ({severity})", figures::in_words(kind)),
    };
    page.verdict(tone, &verdict, &diagnosis.text);
}

fn one(page: &mut Page, diagnosis: &Diagnosis) {
    finding(page, diagnosis);
    // Where nothing is wrong, the text says what was looked at; the count of each pattern is for run.json.
    let looked = |evidence: &&Evidence| diagnosis.severity > Severity::None || evidence.source != "layout";
    // Counts per operation stand in tables of their own, arm by arm; here is what follows from them.
    let tabled = |evidence: &&Evidence| evidence.unit == "per op" && evidence.source.starts_with("measured");
    for line in by_source(diagnosis.evidence.iter().filter(looked).filter(|one| !tabled(one))) {
        page.item(2, "- ", &line);
    }
    if !diagnosis.cure.is_empty() {
        page.item(2, "cure: ", &diagnosis.cure);
    }
    match &diagnosis.expected_gain {
        Some(gain) => {
            let ratio = Figure::new(&gain.ratio).line();
            page.item(2, "gain measured in this run: ", &format!("{ratio}\u{a0}×, with {}", gain.arm));
        }
        None if diagnosis.severity > Severity::None => {
            page.item(2, "gain: ", "not measured, no arm of this run holds the cure");
        }
        None => {}
    }
}

/// A line a source, `measured: name figure unit; …`: no figure without where it comes from, no source twice.
fn by_source<'a>(evidence: impl Iterator<Item = &'a Evidence>) -> Vec<String> {
    let mut sources: Vec<(&str, Vec<String>)> = Vec::new();
    for one in evidence {
        let shown = match one.value {
            Some(value) if one.unit.is_empty() => format!("{} {}", one.name, plain(value)),
            Some(value) => format!("{} {}\u{a0}{}", one.name, plain(value), one.unit),
            None => one.name.clone(),
        };
        match sources.iter_mut().find(|(source, _)| *source == one.source) {
            Some((_, all)) => all.push(shown),
            None => sources.push((&one.source, vec![shown])),
        }
    }
    let line = |(source, all): (&str, Vec<String>)| match source.strip_prefix("missing: ") {
        Some(why) => format!("missing: {} ({why})", all.join("; ")),
        None => format!("{source}: {}", all.join("; ")),
    };
    sources.into_iter().map(line).collect()
}

fn expectation(page: &mut Page, outcome: &ExpectOutcome) {
    let (tone, state) = match outcome.state {
        ExpectState::Holds => (Tone::Good, "holds"),
        ExpectState::Fails => (Tone::Bad, "fails"),
        ExpectState::Undecided => (Tone::Caution, "undecided"),
        ExpectState::NotApplicable => (Tone::Faint, "not applicable"),
    };
    page.verdict(tone, state, &outcome.claim);
    let seen = outcome.seen.as_ref().map(|seen| format!("seen {}", Figure::new(seen).line()));
    let parts: Vec<String> = seen.into_iter().chain(Some(outcome.why.clone()).filter(|why| !why.is_empty())).collect();
    if !parts.is_empty() {
        page.item(2, "", &parts.join("; "));
    }
}

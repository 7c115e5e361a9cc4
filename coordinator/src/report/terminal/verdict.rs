//! What it means: the diagnosis, the scenario's claims, and what to mind.

use crate::report::figures::{Figure, NONE, plain};
use crate::report::page::Page;
use crate::report::style::Tone;
use record::{Diagnosis, Evidence, ExpectOutcome, ExpectState, Run, Severity};

/// Diagnosis, expectations, warnings.
pub(super) fn write(page: &mut Page, run: &Run) {
    page.heading("Diagnosis");
    for diagnosis in &run.diagnosis {
        one(page, diagnosis);
    }
    if !run.expect.is_empty() {
        page.heading("Expectations of the scenario");
        for outcome in &run.expect {
            expectation(page, outcome);
        }
    }
    if !run.warnings.is_empty() {
        page.heading("Warnings");
        for warning in &run.warnings {
            page.verdict(Tone::Caution, &warning.id, &warning.text);
            page.item(2, "", &warning.advice);
        }
    }
}

fn one(page: &mut Page, diagnosis: &Diagnosis) {
    let (tone, severity) = match diagnosis.severity {
        Severity::None => (Tone::Good, "nothing to cure"),
        Severity::Low => (Tone::Caution, "low"),
        Severity::Medium => (Tone::Caution, "medium"),
        Severity::High => (Tone::Bad, "high"),
    };
    let verdict = match diagnosis.kind.as_str() {
        "none" => "nothing found".to_owned(),
        kind => format!("{} ({severity})", kind.replace('_', " ")),
    };
    page.verdict(tone, &verdict, &diagnosis.text);
    for evidence in &diagnosis.evidence {
        page.item(2, "- ", &shown(evidence));
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

/// `name: figure unit (source)`: no figure without where it comes from.
fn shown(evidence: &Evidence) -> String {
    let value = evidence.value.map_or_else(|| NONE.to_owned(), plain);
    let unit = if evidence.value.is_none() || evidence.unit.is_empty() {
        String::new()
    } else {
        format!("\u{a0}{}", evidence.unit)
    };
    format!("{}: {value}{unit} ({})", evidence.name, evidence.source)
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

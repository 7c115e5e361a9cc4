//! The page of `grade`: the verdict, the gates with what was looked at, the effect in figures, the hint, and what
//! grading again takes.

use crate::report::figures::Figure;
use crate::report::page::Page;
use crate::report::style::{Style, Tone};
use record::{Effect, Gate, GateState, Grade, GradeVerdict, Hint, Interval};

/// The page. Lines take at most the style's width.
pub(crate) fn render(grade: &Grade, style: &Style) -> String {
    let mut page = Page::new(style);
    page.heading(&grade.exercise);
    let (tone, word) = verdict(grade.verdict);
    page.verdict(tone, word, &grade.why);
    for gate in &grade.gates {
        page.heading(gate_name(gate.gate));
        if gate.state == GateState::NotReached {
            page.prose("not reached");
        }
        for check in &gate.checks {
            let (tone, word) = state(check.state);
            page.verdict(tone, word, &format!("{}: {}", check.what, check.why));
        }
    }
    if let Some(effect) = &grade.effect {
        figures(&mut page, effect);
    }
    if let Some(hint) = &grade.hint {
        page.heading(&format!("Hint {} of {}", hint.number, hint.of));
        page.prose(&hint.text);
    }
    page.heading("To grade again");
    page.prose(&again(grade));
    page.finish()
}

/// A hint by itself.
pub(crate) fn hint(hint: &Hint, style: &Style) -> String {
    let mut page = Page::new(style);
    page.verdict(Tone::Strong, &format!("hint {} of {}", hint.number, hint.of), &hint.text);
    page.finish()
}

fn verdict(verdict: GradeVerdict) -> (Tone, &'static str) {
    match verdict {
        GradeVerdict::Pass => (Tone::Good, "pass"),
        GradeVerdict::NotYet => (Tone::Bad, "not yet"),
        GradeVerdict::Inconclusive => (Tone::Caution, "inconclusive"),
        GradeVerdict::HostUnsuitable => (Tone::Caution, "host unsuitable"),
    }
}

fn gate_name(gate: Gate) -> &'static str {
    match gate {
        Gate::Conservation => "1. Conservation: is as much done, and every count exact?",
        Gate::Mechanism => "2. Mechanism: is the cause gone?",
        Gate::Effect => "3. Effect: is it faster here?",
    }
}

fn state(state: GateState) -> (Tone, &'static str) {
    match state {
        GateState::Passes => (Tone::Good, "yes"),
        GateState::Fails => (Tone::Bad, "no"),
        GateState::Undecided => (Tone::Caution, "undecided"),
        GateState::HostUnsuitable => (Tone::Caution, "not to be told here"),
        GateState::NotReached => (Tone::Faint, "not reached"),
    }
}

fn figures(page: &mut Page, effect: &Effect) {
    let of = effect.of.as_ref().map_or(String::new(), |of| format!(" of {of}"));
    let line = |interval: Option<Interval>| interval.map_or("–".to_owned(), |interval| Figure::new(&interval).line());
    page.prose(&format!(
        "{}{of}: starter {}, yours {}, reference {}, over {} blocks of repetitions.",
        effect.metric,
        line(effect.starter),
        line(effect.yours),
        line(effect.reference),
        effect.blocks
    ));
}

fn again(grade: &Grade) -> String {
    let file = grade.files.iter().find(|file| file.what == "yours");
    let hash = file.map_or(String::new(), |file| file.sha256.chars().take(12).collect());
    let commit = grade.tool.commit.as_ref().map_or(String::new(), |commit| format!(" ({commit})"));
    let seed = match grade.command.contains("--seed") {
        true => String::new(),
        false => format!(" --seed {}", grade.seed),
    };
    format!(
        "{}{seed}; file sha256 {hash}…; lab {}{commit}; host {}, {}, {} CPUs, Linux {}. With --json: all samples.",
        grade.command,
        grade.tool.version,
        grade.host.hostname,
        grade.host.cpu_model,
        grade.host.cpus,
        grade.host.kernel
    )
}

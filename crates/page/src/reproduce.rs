//! How far to trust the run, and how to make it again.

use crate::names::Arms;
use crate::table::{Table, details, interval, prose, scrolled};
use figures::{NONE, percent, plain, wall_time};
use maud::{Markup, html};
use record::Run;

/// Longest scenario that the page repeats, bytes.
const SCENARIO: usize = 48 * 1024;

/// Warnings, then what limits the figures.
pub(crate) fn trust(run: &Run, arms: &Arms<'_>) -> Markup {
    let method = &run.method;
    let all = arms.all().iter().map(|arm| arm.summary.repetitions);
    let add = |(k, s, o): (u64, u64, u64), fate: record::RepetitionCount| {
        (k + u64::from(fate.kept), s + u64::from(fate.spoiled), o + u64::from(fate.other_regime))
    };
    let (kept, spoiled, other) = all.fold((0, 0, 0), add);
    html! {
        @if run.warnings.is_empty() { p { "No warnings." } }
        @else { dl { @for warning in &run.warnings {
            dt { span .care { "⚠ " (warning.id) } }
            dd { (prose(&warning.text)) @if !warning.advice.is_empty() {
                " " strong { "What to do: " } (prose(&warning.advice))
            } }
        } } }
        ul {
            li { @match method.resolution {
                Some(resolution) => { "The same arm, measured twice, differed by up to " (percent(resolution))
                                      ": a smaller effect was not seen, whatever its interval says." }
                None => { "The control arm resolved nothing: how small an effect the run could have seen is unknown." }
            } }
            @if let Some(control) = &method.control {
                li { "Control over its twin: " (interval(control)) "; it should hold 1." }
            }
            li { "Of the variants' repetitions " (kept) " count, " (spoiled) " were spoiled and " (other)
                 " ran in another regime of the machine." }
            li { (method.blocks) " blocks" @if method.extended { ", more than asked for, since noise hid the answer" }
                 "; intervals by " (method.interval) " at " (percent(method.level)) "." }
            @if let Some(cost) = method.watching_cost { li { "Watching took " (percent(cost)) " of the window." } }
            @if let Some(timing) = &method.lock_timing {
                li { "Trying locks first and timing their waits: " (interval(timing)) " times the untimed pass." }
            }
        }
    }
}

/// The command, the machine and the scenario.
pub(crate) fn again(run: &Run) -> Markup {
    html! {
        p { "This took " (wall_time(run.duration_s)) ". The same again, with the same seed:" }
        (scrolled("Command", html! { pre { code { (command(run)) } } }))
        (details("The machine", host(run)))
        (scenario(run))
        p .left { "coordinator " (run.tool.version) @if let Some(commit) = &run.tool.commit { ", commit " (commit) }
                  "; schema version " (run.schema_version) "; started " (run.started_utc)
                  "; as typed: " code { (run.command) } }
    }
}

/// The command as typed, with the seed that was used.
fn command(run: &Run) -> String {
    let seeded = run.command.split_whitespace().any(|word| word == "--seed" || word.starts_with("--seed="));
    if seeded { run.command.clone() } else { format!("{} --seed {}", run.command, run.seed) }
}

fn host(run: &Run) -> Table {
    let host = &run.host;
    let or_none = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
    let mut table = Table::new("Host", 2, &["fact", "value"]);
    let facts = [
        ("host name", host.hostname.clone()),
        ("processor", host.cpu_model.clone()),
        ("hypervisor", host.hypervisor.clone().unwrap_or_else(|| "none seen".to_owned())),
        ("kernel", host.kernel.clone()),
        ("online CPUs", host.cpus.to_string()),
        ("last-level cache groups", host.llc_groups.to_string()),
        ("NUMA nodes", host.nodes.to_string()),
        ("sockets", host.sockets.to_string()),
        ("cache line", format!("{} bytes", host.line_bytes)),
        ("ticks of the TSC a second", plain(host.ticks_per_second)),
        ("perf_event_paranoid", or_none(host.perf_event_paranoid.map(|level| level.to_string()))),
        ("CPU time stolen by other guests", or_none(host.stolen_share.map(percent))),
    ];
    facts.into_iter().for_each(|(name, value)| table.row(vec![html! { (name) }, html! { (value) }]));
    table
}

fn scenario(run: &Run) -> Markup {
    let text = &run.scenario.text;
    let name = format!("The scenario: {}, SHA-256 {}", run.scenario.path, run.scenario.sha256);
    if text.len() > SCENARIO {
        return html! { p { (name) "; its " (text.len()) " bytes stand in " code { "run.json" } "." } };
    }
    let shown = text.replace('\t', "    ").replace('\r', "");
    details(&name, scrolled("The scenario", html! { pre { code { (shown) } } }))
}

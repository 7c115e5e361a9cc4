//! The doctor's screen: a line a check, and below it what to know and to do where it is not well. What is off or not
//! there shares a line.

use crate::report::page::Page;
use crate::report::style::{Style, Tone};
use crate::report::text::escaped;
use doctor::{Finding, Needs, Theme};
use plan::CpuId;
use record::{Check, CheckState};
use std::path::Path;

/// Columns from which on names stand in a column of their own.
const WIDE: usize = 72;
/// Columns of a state's word with the blank behind it.
const STATE: usize = 8;

/// What is shown.
pub(crate) struct Screen<'a> {
    pub(crate) themes: &'a [Theme],
    /// The CPUs in question, ascending, and why these.
    pub(crate) cpus: &'a [CpuId],
    pub(crate) chosen_by: &'a str,
    /// The scenario asked about, and what it needs.
    pub(crate) needs: Option<(&'a Path, &'a Needs)>,
    /// Whether checks that are well say why they matter, and each has a line of its own.
    pub(crate) verbose: bool,
}

/// The screen. Lines take at most the style's width; every text is escaped, since processes choose their own names.
pub(crate) fn render(screen: &Screen<'_>, style: &Style) -> String {
    let mut page = Page::new(style);
    let cpus = host::format_cpu_list(&screen.cpus.iter().map(|cpu| cpu.0).collect());
    page.prose(&format!("CPUs in question: {cpus}, {}", screen.chosen_by));
    let names = checks(screen.themes).map(|check| check.name.len()).max().unwrap_or(0);
    let names = if style.width() >= WIDE { names + 2 } else { 0 };
    for theme in screen.themes.iter().filter(|theme| !theme.findings.is_empty()) {
        page.heading(theme.title);
        let idle = if screen.verbose { vec![] } else { idle(theme) };
        for finding in theme.findings.iter().filter(|finding| !idle.contains(&finding.check.name.as_str())) {
            let explained = screen.verbose || screen.needs.is_some_and(|(_, needs)| finding.spoils(needs));
            one(&mut page, &finding.check, names, explained);
        }
        if !idle.is_empty() {
            page.columns(
                Tone::Good,
                &format!("{:STATE$}", "ok"),
                "",
                &format!("off or none: {}", idle.join(", ")),
                STATE,
            );
        }
    }
    page.blank();
    if let Some((file, needs)) = screen.needs {
        page.prose(&spoilt(screen.themes, file, needs));
    }
    page.prose(&totals(screen.themes));
    page.finish()
}

fn checks(themes: &[Theme]) -> impl Iterator<Item = &Check> {
    themes.iter().flat_map(|theme| &theme.findings).map(|finding| &finding.check)
}

/// The checks of a theme that share a line, where they are several.
fn idle(theme: &Theme) -> Vec<&str> {
    let idle = theme.findings.iter().filter(|finding| finding.idle).map(|finding| finding.check.name.as_str());
    let idle: Vec<&str> = idle.collect();
    if idle.len() > 1 { idle } else { vec![] }
}

fn one(page: &mut Page<'_>, check: &Check, names: usize, explained: bool) {
    let (tone, word) = match check.state {
        CheckState::Ok => (Tone::Good, "ok"),
        CheckState::Warn => (Tone::Caution, "warn"),
        CheckState::Missing => (Tone::Bad, "missing"),
    };
    let name = if names > 0 { format!("{:names$}", check.name) } else { format!("{}: ", check.name) };
    page.columns(tone, &format!("{word:STATE$}"), &name, &check.seen, if names > 0 { STATE + names } else { STATE });
    if explained || check.state != CheckState::Ok {
        page.item(STATE, "why: ", &check.why);
    }
    if let Some(cure) = &check.cure {
        page.item(STATE, "cure: ", cure);
    }
}

/// Which checks spoil runs of the scenario.
fn spoilt(themes: &[Theme], file: &Path, needs: &Needs) -> String {
    let findings = themes.iter().flat_map(|theme| &theme.findings);
    let names: Vec<&str> =
        findings.filter(|finding| finding.spoils(needs)).map(|finding| finding.check.name.as_str()).collect();
    let spoilt = match names.is_empty() {
        true => format!("Nothing here spoils runs of {}.", file.display()),
        false => format!("Runs of {} are spoiled by: {}.", file.display(), names.join(", ")),
    };
    match &needs.unplaced {
        None => spoilt,
        Some(why) => format!("This host can place no arm of {}: {why}. {spoilt}", file.display()),
    }
}

fn totals(themes: &[Theme]) -> String {
    let count = |state| checks(themes).filter(|check| check.state == state).count();
    format!(
        "{} ok, {} warn, {} missing; it changed nothing",
        count(CheckState::Ok),
        count(CheckState::Warn),
        count(CheckState::Missing)
    )
}

/// `2 things here spoil this run: cgroup_quota (1.5 CPUs for 2 in question), …`; `None` where nothing does.
pub(crate) fn spoilers(spoiling: &[&Finding]) -> Option<String> {
    let each = spoiling.iter().map(|finding| format!("{} ({})", finding.check.name, finding.check.seen));
    let list = each.collect::<Vec<_>>().join(", ");
    match spoiling.len() {
        0 => None,
        1 => Some(format!("1 thing here spoils this run: {list}")),
        n => Some(format!("{n} things here spoil this run: {list}")),
    }
}

/// The one line that `run` prints of it.
pub(crate) fn line(spoilers: &str, command: &str) -> String {
    format!("doctor: {}; see `{}`", escaped(spoilers), escaped(command))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::style::ColourChoice;
    use crate::report::text::columns;
    use doctor::Spoils;

    fn finding(name: &str, state: CheckState, seen: &str, spoils: Spoils) -> Finding {
        let cure = (state != CheckState::Ok).then(|| "`sudo sysctl -w kernel.calm=1`".to_owned());
        let why = "it takes time from a worker that the worker then lacks, and which nobody gives back".to_owned();
        Finding {
            check: Check { name: name.into(), state, seen: seen.into(), why, cure, spoils: false },
            spoils,
            idle: false,
        }
    }

    fn themes() -> Vec<Theme> {
        let quota = finding("cgroup_quota", CheckState::Warn, "1.5 CPUs for 2", Spoils::MoreWorkersThan(1.5));
        let threads =
            finding("other_processes", CheckState::Warn, "CPU 1: e\u{1b}[2Jvil 90 %", Spoils::On(vec![CpuId(1)]));
        let pmu = finding("pmu", CheckState::Missing, "none", Spoils::HardwareCounts);
        let calm = finding("calm", CheckState::Ok, "very", Spoils::Nothing);
        let theme = |title, findings| Theme { title, findings };
        vec![theme("Counting", vec![pmu]), theme("Empty", vec![]), theme("Noise", vec![threads, calm, quota])]
    }

    fn screen<'a>(themes: &'a [Theme], needs: Option<(&'a Path, &'a Needs)>, verbose: bool) -> Screen<'a> {
        Screen { themes, cpus: &[CpuId(0), CpuId(1)], chosen_by: "as asked for", needs, verbose }
    }

    #[test]
    fn each_check_is_a_line_and_only_what_is_not_well_explains_itself() {
        let text = render(&screen(&themes(), None, false), &Style::plain(80));
        let expected = "\
CPUs in question: 0-1, as asked for

Counting
missing pmu              none
        why: it takes time from a worker that the worker then lacks, and which
          nobody gives back
        cure: `sudo sysctl -w kernel.calm=1`

Noise
warn    other_processes  CPU 1: e\\u{1b}[2Jvil 90 %
        why: it takes time from a worker that the worker then lacks, and which
          nobody gives back
        cure: `sudo sysctl -w kernel.calm=1`
ok      calm             very
warn    cgroup_quota     1.5 CPUs for 2
        why: it takes time from a worker that the worker then lacks, and which
          nobody gives back
        cure: `sudo sysctl -w kernel.calm=1`

1 ok, 2 warn, 1 missing; it changed nothing
";
        assert_eq!(text, expected);
        let verbose = render(&screen(&themes(), None, true), &Style::plain(80));
        assert_eq!(verbose.matches("why: ").count(), 4);
    }

    #[test]
    fn lines_stay_within_the_width_and_say_the_same() {
        for width in [24, 40, 60, 80, 120] {
            let text = render(&screen(&themes(), None, true), &Style::plain(width));
            assert!(text.lines().all(|line| columns(line) <= width), "{width}:\n{text}");
            let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(joined.contains("ok calm") && joined.contains("it changed nothing"), "{width}:\n{text}");
        }
    }

    #[test]
    fn colour_only_repeats_the_state_s_word() {
        let style = Style::decide(ColourChoice::Always, Some(80), |_| None, false);
        let coloured = render(&screen(&themes(), None, false), &style);
        assert!(coloured.contains("\u{1b}[32mok\u{1b}[0m      calm"), "{coloured}");
        let mut plain = coloured.clone();
        for code in ["\u{1b}[1m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[1;31m", "\u{1b}[0m"] {
            plain = plain.replace(code, "");
        }
        assert_eq!(plain, render(&screen(&themes(), None, false), &Style::plain(80)));
    }

    #[test]
    fn a_scenario_is_told_what_spoils_it() {
        let file = Path::new("case.toml");
        let needs = Needs { cpus: vec![CpuId(1)], workers: 2, ..Needs::default() };
        let text = render(&screen(&themes(), Some((file, &needs)), false), &Style::plain(80));
        assert!(text.contains("Runs of case.toml are spoiled by: other_processes, cgroup_quota.\n"), "{text}");
        let text = render(&screen(&themes(), Some((file, &Needs::default())), false), &Style::plain(80));
        assert!(text.contains("Nothing here spoils runs of case.toml.\n"), "{text}");
        let needs = Needs { unplaced: Some("needs 2 CPUs, this host has 1".to_owned()), ..Needs::default() };
        let themes =
            [Theme { title: "Limits", findings: vec![finding("cpuset", CheckState::Warn, "1", Spoils::Unplaced)] }];
        let text = render(&screen(&themes, Some((file, &needs)), false), &Style::plain(200));
        let expected = "This host can place no arm of case.toml: needs 2 CPUs, this host has 1. Runs of case.toml are spoiled \
                        by: cpuset.\n";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn what_is_off_or_not_there_shares_a_line_unless_all_is_asked_for() {
        let idle = |name| Finding { idle: true, ..finding(name, CheckState::Ok, "none", Spoils::Nothing) };
        let several = Theme {
            title: "Several",
            findings: vec![idle("a"), finding("b", CheckState::Ok, "1", Spoils::Nothing), idle("c")],
        };
        let themes = [several, Theme { title: "Single", findings: vec![idle("d")] }];
        let text = render(&screen(&themes, None, false), &Style::plain(80));
        let expected = "Several\nok      b  1\nok      off or none: a, c\n\nSingle\nok      d  none\n\n4 ok,";
        assert!(text.contains(expected), "{text}");
        let verbose = render(&screen(&themes, None, true), &Style::plain(80));
        assert!(["a", "b", "c", "d"].iter().all(|name| verbose.contains(&format!("ok      {name}  "))), "{verbose}");
    }

    #[test]
    fn what_is_well_and_too_little_for_this_run_explains_itself() {
        let room = finding("dev_shm", CheckState::Ok, "17 MiB free", Spoils::SegmentsOver(17 << 20));
        let themes = [Theme { title: "Limits", findings: vec![room] }];
        let text = |segment_bytes| {
            let needs = Needs { segment_bytes, ..Needs::default() };
            render(&screen(&themes, Some((Path::new("case.toml"), &needs)), false), &Style::plain(80))
        };
        assert!(text(18 << 20).contains("        why: ") && text(18 << 20).contains("spoiled by: dev_shm."));
        assert!(!text(16 << 20).contains("why: "));
    }

    #[test]
    fn a_run_gets_one_line() {
        let themes = themes();
        let all: Vec<&Finding> = themes.iter().flat_map(|theme| &theme.findings).collect();
        assert_eq!(spoilers(&[]), None);
        assert_eq!(spoilers(&all[..1]).unwrap(), "1 thing here spoils this run: pmu (none)");
        let line = line(&spoilers(&[all[3], all[1]]).unwrap(), "coordinator doctor case.toml");
        assert_eq!(
            line,
            "doctor: 2 things here spoil this run: cgroup_quota (1.5 CPUs for 2), other_processes (CPU 1: \
             e\\u{1b}[2Jvil 90 %); see `coordinator doctor case.toml`"
        );
    }
}

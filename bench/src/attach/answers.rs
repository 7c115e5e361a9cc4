//! Answers: watches of programs whose doings are known, each held against what it has to say, and by when.

use super::target::Pair;
use super::{AttachError, Kind, slice};
use crate::contest::duel;
use record::{Attach, LineVerdict};
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Pairs that are watched, and within how many seconds the answer has to be there.
const CASES: [(Kind, f64); 5] =
    [(Kind::Packed, 5.0), (Kind::Shared, 5.0), (Kind::Convoy, 5.0), (Kind::Padded, 5.0), (Kind::Huge, 10.0)];

/// What watches answered.
#[derive(Debug, Serialize)]
pub(crate) struct AnswerReport {
    schema_version: u32,
    benchmark: &'static str,
    pub(super) watch_s: f64,
    pub(super) cases: Vec<Answered>,
}

/// The watches of one kind of pair, a fresh one each.
#[derive(Debug, Serialize)]
pub(crate) struct Answered {
    pub(super) kind: Kind,
    /// Within which each has to have answered, seconds.
    pub(super) bar_s: f64,
    pub(super) watches: u32,
    /// Watches that told every verdict, word and process as it was, and nothing else.
    pub(super) right: u32,
    /// From before the segment was looked for until all was told, seconds, ascending.
    pub(super) took_s: Vec<f64>,
    /// What the wrong ones told.
    pub(super) wrong: Vec<String>,
}

/// A line that somebody uses: where, what it amounts to, and who writes which of its words.
type Line = (u64, LineVerdict, BTreeSet<(u64, Vec<u32>)>);

/// Watches each kind so often.
pub(crate) fn answers(watches: u32, time: Duration) -> Result<AnswerReport, AttachError> {
    let cpus = duel::two_cpus()?;
    let mut cases = Vec::new();
    for (kind, bar_s) in CASES {
        let mut case = Answered { kind, bar_s, watches, right: 0, took_s: Vec::new(), wrong: Vec::new() };
        for watch in 1..=watches {
            eprintln!("{}: watch {watch} of {watches}", kind.name());
            let pair = Pair::start(kind, cpus)?;
            let began = Instant::now();
            let told = slice::watch(&pair, time, &|_| ())?;
            case.took_s.push(began.elapsed().as_secs_f64());
            let (seen, expected) = (lines(&told), expected(kind, pair.pids()));
            match seen == expected {
                true => case.right += 1,
                false => case.wrong.push(format!("{seen:x?}")),
            }
        }
        case.took_s.sort_by(f64::total_cmp);
        cases.push(case);
    }
    Ok(AnswerReport { schema_version: 1, benchmark: "attach-answers", watch_s: time.as_secs_f64(), cases })
}

/// What it told of lines that somebody writes. Of a lock's line the words are the C library's.
fn lines(told: &Attach) -> Vec<Line> {
    let line = |line: &record::TouchedLine| -> Line {
        let is_told = |word: &&record::TouchedWord| line.verdict != LineVerdict::LockWord || word.offset == line.offset;
        let words = line.words.iter().filter(|word| !word.writers.is_empty()).filter(is_told);
        (line.offset, line.verdict, words.map(|word| (word.offset, word.writers.clone())).collect())
    };
    let mut lines: Vec<Line> = told.lines.iter().map(line).filter(|(.., words)| !words.is_empty()).collect();
    lines.sort_by_key(|(offset, ..)| *offset);
    lines
}

/// What there is to be told of a kind (`c/target.c`).
fn expected(kind: Kind, [a, b]: [u32; 2]) -> Vec<Line> {
    let both = vec![a.min(b), a.max(b)];
    let line = |offset: u64, verdict, words: &[(u64, &[u32])]| -> Line {
        (offset, verdict, words.iter().map(|(word, pids)| (*word, pids.to_vec())).collect())
    };
    let falsely = |offset: u64| line(offset, LineVerdict::FalseSharing, &[(offset, &[a]), (offset + 8, &[b])]);
    let alone = |offset: u64, pid: u32| line(offset, LineVerdict::Private, &[(offset, &[pid])]);
    match kind {
        Kind::Packed => vec![falsely(0)],
        Kind::Shared => vec![line(0, LineVerdict::TrueSharing, &[(0, &both)])],
        Kind::Padded => vec![alone(0, a), alone(128, b)],
        Kind::Huge => vec![falsely(256 << 20), falsely(768 << 20)],
        Kind::Convoy => vec![
            line(0, LineVerdict::LockWord, &[(0, &both)]),
            line(128, LineVerdict::TrueSharing, &[(128, &both)]),
            alone(1024, a),
            alone(1024 + 128, b),
        ],
    }
}

impl Answered {
    fn is_kept(&self) -> bool {
        self.right == self.watches && self.took_s.last().is_some_and(|longest| *longest < self.bar_s)
    }
}

impl AnswerReport {
    /// 0 where each answer was right and in time, else 1.
    pub(crate) fn exit_status(&self) -> u8 {
        u8::from(!self.cases.iter().all(Answered::is_kept))
    }

    pub(crate) fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report is plain data")
    }

    /// A row for each kind, and a sentence for each wrong answer.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!(
            "Watches of {} s, from before the segment is looked for until the answer is there.\n\n| targets | right | takes, \
             s: median | longest | bar | |\n|---|--:|--:|--:|--:|---|\n",
            self.watch_s
        );
        for case in &self.cases {
            let median = case.took_s[case.took_s.len() / 2];
            let longest = case.took_s.last().copied().unwrap_or_default();
            let kept = if case.is_kept() { "kept" } else { "**missed**" };
            let of = format!("{} of {}", case.right, case.watches);
            let bar = case.bar_s;
            text += &format!(
                "| {} | {of} | {median:.2} | {longest:.2} | {bar} | {kept} |\n",
                super::page::shown(case.kind)
            );
        }
        for (case, wrong) in self.cases.iter().flat_map(|case| case.wrong.iter().map(move |wrong| (case, wrong))) {
            text += &format!("\n{}: a watch told {wrong}\n", super::page::shown(case.kind));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_right_where_nothing_is_missing_and_nothing_is_made_up() {
        let told = |verdict: &str, writer: u32| -> Attach {
            serde_json::from_value(serde_json::json!({
                "schema_version": 1,
                "segment": {"name": "r", "kind": "posix", "device": [0, 1], "inode": 2, "bytes": 4096, "deleted": true},
                "watched_ns": 1, "processes": [], "locks": [], "notes": [],
                "cost": {"traps": 0, "samples": 0, "events": 0, "stolen_ns": 0, "slowdown": null},
                "lines": [{"offset": 0, "verdict": verdict, "page_offset": 0, "words": [
                    {"offset": 0, "bytes": 8, "field": null, "writers": [7], "readers": [7], "proved": true, "instructions": []},
                    {"offset": 8, "bytes": 8, "field": null, "writers": [writer], "readers": [], "proved": true, "instructions": []},
                    {"offset": 16, "bytes": 8, "field": null, "writers": [], "readers": [9], "proved": true, "instructions": []}
                ]}],
            }))
            .expect("a record")
        };
        assert_eq!(lines(&told("false_sharing", 8)), expected(Kind::Packed, [7, 8]));
        assert_ne!(lines(&told("true_sharing", 8)), expected(Kind::Packed, [7, 8]));
        assert_ne!(lines(&told("false_sharing", 7)), expected(Kind::Packed, [7, 8]));
        let case = |right, longest| Answered {
            kind: Kind::Huge,
            bar_s: 10.0,
            watches: 3,
            right,
            took_s: vec![4.1, 4.2, longest],
            wrong: vec![],
        };
        let report =
            |case| AnswerReport { schema_version: 1, benchmark: "attach-answers", watch_s: 4.0, cases: vec![case] };
        assert_eq!([(3, 4.3), (2, 4.3), (3, 10.1)].map(|(right, s)| report(case(right, s)).exit_status()), [0, 1, 1]);
        let text = report(case(3, 4.3)).markdown();
        assert!(text.contains("| 3 of 3 | 4.20 | 4.30 | 10 | kept |"), "{text}");
    }
}

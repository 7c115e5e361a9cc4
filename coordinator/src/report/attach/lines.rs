//! The lines that somebody was seen to touch: what the accesses to each amount to, and who makes them where.

use super::{hex, rate, whom};
use crate::report::figures::{Figure, count, percent, plural};
use crate::report::page::Page;
use crate::report::style::Tone;
use plan::CACHE_LINE_BYTES;
use record::{Attach, LineVerdict, TouchedLine, TouchedWord, TouchingInstruction};

/// Lines shown one by one; the rest is in the JSON.
const MOST_LINES: usize = 12;
/// Instructions shown of one word.
const MOST_INSTRUCTIONS: usize = 4;
/// Words, and groups of them, named in the page's first sentence.
const MOST_IN_A_STORY: usize = 3;

/// The answer, before anything else: what the dearest line is.
pub(super) fn headline(page: &mut Page, seen: &Attach) {
    let Some(line) = seen.lines.iter().find(|line| tone(line.verdict) != Tone::Good) else { return };
    let (tone, word) = (tone(line.verdict), word(line.verdict));
    page.verdict(tone, word, &format!("{}{}", story(seen, line), gain(line)));
}

/// `hits[0] (written by 4711 a), hits[1] (written by 4712 b) lie on line 0`; words of the same users together.
fn story(seen: &Attach, line: &TouchedLine) -> String {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for word in &line.words {
        let users = users(seen, word);
        match groups.iter_mut().find(|(known, _)| *known == users) {
            Some((_, words)) => words.push(named(word)),
            None => groups.push((users, vec![named(word)])),
        }
    }
    let group = |(users, words): &(String, Vec<String>)| format!("{} ({users})", first(words, ", "));
    let told: Vec<String> = groups.iter().map(group).collect();
    let verb = if line.words.len() == 1 { "lies" } else { "lie" };
    format!("{} {verb} on line {}", first(&told, "; "), count(line.offset / CACHE_LINE_BYTES))
}

/// The first few of them, and how many more there are.
fn first(all: &[String], between: &str) -> String {
    let told = all.iter().take(MOST_IN_A_STORY).cloned();
    let more = all.len().checked_sub(MOST_IN_A_STORY).filter(|more| *more > 0).map(|more| format!("{more} more"));
    told.chain(more).collect::<Vec<_>>().join(between)
}

/// A word by its field's name, else by its offset.
fn named(word: &TouchedWord) -> String {
    word.field.clone().unwrap_or_else(|| format!("word {}", hex(word.offset)))
}

fn users(seen: &Attach, word: &TouchedWord) -> String {
    let readers: Vec<u32> = word.readers.iter().copied().filter(|pid| !word.writers.contains(pid)).collect();
    let told = [("written", &word.writers), ("read", &readers)].into_iter().filter(|(_, pids)| !pids.is_empty());
    told.map(|(how, pids)| format!("{how} by {}", whom(seen, pids))).collect::<Vec<_>>().join("; ")
}

pub(super) fn write(page: &mut Page, seen: &Attach) {
    if seen.lines.is_empty() {
        return;
    }
    page.heading("Lines that were touched, the dearest first");
    seen.lines.iter().take(MOST_LINES).for_each(|line| one(page, seen, line));
    if let Some(more) = seen.lines.len().checked_sub(MOST_LINES).filter(|more| *more > 0) {
        page.legend(&format!("{} more in --json", plural(more as u64, "line")));
    }
}

fn one(page: &mut Page, seen: &Attach, line: &TouchedLine) {
    let place = format!("line {} at offset {}", count(line.offset / CACHE_LINE_BYTES), hex(line.offset));
    let accesses = line.accesses_per_second.map_or_else(
        || ", sampled and not proved".to_owned(),
        |per_second| {
            let bound = if line.accesses_at_least { "at least " } else { "" };
            format!(", {bound}{} accesses a second", rate(per_second))
        },
    );
    page.verdict(tone(line.verdict), word(line.verdict), &format!("{place}{accesses}{}", gain(line)));
    page.item(2, "", meaning(line.verdict));
    line.words.iter().for_each(|word| touched(page, seen, word));
}

fn touched(page: &mut Page, seen: &Attach, word: &TouchedWord) {
    let named = word.field.as_ref().map_or_else(String::new, |field| format!(" `{field}`"));
    let proof = if word.proved { "" } else { " (from samples, not proved)" };
    let bytes = plural(u64::from(word.bytes), "byte");
    page.item(2, "- ", &format!("{}{named}, {bytes}: {}{proof}", hex(word.offset), users(seen, word)));
    let mut places: Vec<(String, Vec<u32>)> = Vec::new();
    for at in &word.instructions {
        let place = instruction(at);
        match places.iter_mut().find(|(known, _)| *known == place) {
            Some((_, pids)) if pids.contains(&at.pid) => {}
            Some((_, pids)) => pids.push(at.pid),
            None => places.push((place, vec![at.pid])),
        }
    }
    for (place, pids) in places.iter().take(MOST_INSTRUCTIONS) {
        let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
        page.item(4, "", &format!("{}: {place}", pids.join(", ")));
    }
}

/// `mov %rax,(%rdi) in bump+0xc (ring.c:10)`; without a symbol, where in which file or only where.
fn instruction(at: &TouchingInstruction) -> String {
    if at.symbol.as_deref() == Some("[kernel]") {
        return "the kernel, in a call of its".to_owned();
    }
    let text = at.text.as_deref().unwrap_or("an instruction that cannot be read");
    let object = at.object.as_deref().map(|path| path.rsplit('/').next().unwrap_or(path));
    let place = match (&at.symbol, object) {
        (Some(symbol), _) => symbol.clone(),
        (None, Some(object)) => object.to_owned(),
        (None, None) => hex(at.address),
    };
    let source = at.source.as_ref().map_or_else(String::new, |(file, line)| format!(" ({file}:{line})"));
    format!("{text} in {place}{source}")
}

/// What a cure could give back, where that is known.
fn gain(line: &TouchedLine) -> String {
    let penalty = line.penalty_ns.as_ref().map_or_else(String::new, |penalty| {
        format!(", each {}\u{a0}ns dearer than alone", Figure::new(penalty).line())
    });
    let back = line.recoverable.map_or_else(String::new, |(low, high)| {
        format!("; a cure could give back {} to {} of its users' time", percent(low), percent(high))
    });
    format!("{penalty}{back}")
}

fn word(verdict: LineVerdict) -> &'static str {
    match verdict {
        LineVerdict::FalseSharing => "false sharing",
        LineVerdict::TrueSharing => "true sharing",
        LineVerdict::LockWord => "lock word",
        LineVerdict::ReadMostly => "read-mostly",
        LineVerdict::Private => "private",
    }
}

fn tone(verdict: LineVerdict) -> Tone {
    match verdict {
        LineVerdict::FalseSharing => Tone::Bad,
        LineVerdict::TrueSharing | LineVerdict::LockWord => Tone::Caution,
        LineVerdict::ReadMostly | LineVerdict::Private => Tone::Good,
    }
}

fn meaning(verdict: LineVerdict) -> &'static str {
    match verdict {
        LineVerdict::FalseSharing => {
            "Different words of one line: nobody shares data, and yet each write takes the line away from the others. \
             Words on lines of their own cost memory and nothing else."
        }
        LineVerdict::TrueSharing => {
            "One word that several use and somebody writes: the line moves because the data is shared. Padding changes \
             nothing; fewer accesses do, such as a part for each process that is added up when read."
        }
        LineVerdict::LockWord => {
            "A lock: who waits shows below. Shorter critical sections, or fewer of them, and nothing else on its line."
        }
        LineVerdict::ReadMostly => {
            "Several read it and nobody was seen to write: each keeps a copy, and that is cheap."
        }
        LineVerdict::Private => "One process alone was seen to use it.",
    }
}

//! Why each line stands apart, in words.

use crate::candidate::Candidate;
use crate::cost::{NEGLIGIBLE, Rates, lines_of};
use std::collections::{BTreeMap, BTreeSet};

/// What is to be said at the first item of each line, by that item's offset. Lines of one array, which say the same,
/// say it once.
pub(super) fn by_offset(candidate: &Candidate) -> BTreeMap<u64, String> {
    let rates = Rates::of(&candidate.usage);
    let mut lines: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    let mut first: BTreeMap<u64, u64> = BTreeMap::new();
    for (item, place) in candidate.places().into_iter().enumerate() {
        let Some((offset, bytes)) = place else { continue };
        for line in lines_of(offset, bytes) {
            lines.entry(line).or_default().push(item);
        }
        let known = first.entry(offset / plan::CACHE_LINE_BYTES).or_insert(offset);
        *known = (*known).min(offset);
    }
    let mut said = BTreeMap::new();
    let mut before: BTreeSet<String> = BTreeSet::new();
    for (line, items) in &lines {
        // A line that something from the line before reaches into begins nothing.
        let Some(offset) = first.get(line) else { continue };
        let text = reason(candidate, &rates, &lines, *line);
        let fields: BTreeSet<String> = items.iter().map(|&item| candidate.usage.items[item].name.clone()).collect();
        if fields != before {
            said.insert(*offset, format!("Line {line}: {text}"));
        }
        before = fields;
    }
    said
}

fn reason(candidate: &Candidate, rates: &Rates, lines: &BTreeMap<u64, Vec<usize>>, line: u64) -> String {
    let here = &lines[&line];
    let who = |of: fn(&Rates, usize) -> Vec<usize>| -> BTreeSet<usize> {
        here.iter().flat_map(|&item| of(rates, item)).collect()
    };
    let (writers, users) = (who(Rates::writers), who(Rates::users));
    let readers: BTreeSet<usize> = users.difference(&writers).copied().collect();
    let names = |workers: &BTreeSet<usize>| roles(candidate, workers);
    let mut text = match (writers.is_empty(), readers.is_empty()) {
        (true, true) => return "seldom used by anybody.".to_owned(),
        (true, false) => {
            format!("read by {}, and hardly ever written, so that all keep their copies.", names(&readers))
        }
        (false, true) => format!("written by {}.", names(&writers)),
        (false, false) => format!("written by {}, read by {}.", names(&writers), names(&readers)),
    };
    let is_read_only = |items: &Vec<usize>| {
        items.iter().any(|&item| !rates.users(item).is_empty())
            && items.iter().all(|&item| rates.writers(item).is_empty())
    };
    let leaves_copies = || {
        let spared = !writers.is_empty() && lines.values().any(is_read_only);
        spared.then(|| "Apart from what is only read, whose copies its writes then leave alone.".to_owned())
    };
    if let Some(why) = apart(candidate, rates, lines, line).or_else(leaves_copies) {
        text.push(' ');
        text.push_str(&why);
    }
    text
}

/// The pair of fields, one here and one on another line, that would cost most on one line.
fn apart(candidate: &Candidate, rates: &Rates, lines: &BTreeMap<u64, Vec<usize>>, line: u64) -> Option<String> {
    let others = lines.iter().filter(|(other, _)| **other != line).flat_map(|(_, items)| items);
    let pairs = others.flat_map(|&there| lines[&line].iter().map(move |&here| (here, there)));
    let dear =
        pairs.map(|(here, there)| (rates.excess(&[here], &[there]), here, there)).filter(|(e, ..)| *e > NEGLIGIBLE);
    let (_, here, there) = dear.max_by(|a, b| a.0.total_cmp(&b.0).then(b.2.cmp(&a.2)))?;
    let takes = |writer: usize, used: usize| -> Option<(BTreeSet<usize>, BTreeSet<usize>)> {
        let writers: BTreeSet<usize> = rates.writers(writer).into_iter().collect();
        let of_writer: BTreeSet<usize> = rates.users(writer).into_iter().collect();
        let victims: BTreeSet<usize> = rates.users(used).into_iter().filter(|user| !of_writer.contains(user)).collect();
        (!writers.is_empty() && !victims.is_empty()).then_some((writers, victims))
    };
    let name = |item: usize| {
        let item = &candidate.usage.items[item];
        let several = candidate.offsets.get(&item.name).is_some_and(|list| list.len() > 1);
        if several { format!("`{}[{}]`", item.name, item.element) } else { format!("`{}`", item.name) }
    };
    let (written, used, (culprits, victims)) = match (takes(there, here), takes(here, there)) {
        (Some(found), _) => (there, here, found),
        (None, Some(found)) => (here, there, found),
        (None, None) => return None,
    };
    Some(format!(
        "Were {} and {} on one line, each write of {} by {} would take it from {}.",
        name(used),
        name(written),
        name(written),
        roles(candidate, &culprits),
        roles(candidate, &victims)
    ))
}

/// Roles of these workers, or single workers where a role's others are not among them.
fn roles(candidate: &Candidate, workers: &BTreeSet<usize>) -> String {
    let mut all: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for touch in &candidate.usage.touches {
        all.entry(touch.role).or_default().insert(touch.worker.0 as usize);
    }
    let mut named = Vec::new();
    for (role, members) in all {
        let present: Vec<usize> = members.intersection(workers).copied().collect();
        let name = &candidate.arm.case.roles[role].name;
        match present.len() {
            0 => {}
            n if n == members.len() && n > 1 => named.push(format!("every `{name}`")),
            n if n == members.len() => named.push(format!("`{name}`")),
            _ => {
                let numbers: Vec<String> = present.iter().map(ToString::to_string).collect();
                let noun = if present.len() == 1 { "worker" } else { "workers" };
                named.push(format!("{noun} {} of `{name}`", numbers.join(", ")));
            }
        }
    }
    match named.split_last() {
        None => "nobody".to_owned(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

//! The line map: what lies on each line of the fields area, and what the model saw it go through.

use model::{LineStory, Modelled};
use plan::{CACHE_LINE_BYTES, LockKind, Placed, Program};
use record::{ModelledLine, ModelledPair};
use std::collections::{BTreeMap, BTreeSet};

/// Pairs of words that are told of one line.
const MOST_PAIRS: usize = 8;

/// The touched lines of the fields area, ascending; queue nodes of locks, which lie elsewhere, are left out.
pub(super) fn of(program: &Program, modelled: &Modelled) -> Vec<ModelledLine> {
    let lines = program.area_bytes.div_ceil(CACHE_LINE_BYTES);
    modelled.lines.iter().filter(|story| story.index < lines).map(|story| line(program, modelled, story)).collect()
}

fn line(program: &Program, modelled: &Modelled, story: &LineStory) -> ModelledLine {
    let here: Vec<&Placed> = program.layout.placed.iter().filter(|placed| touches(placed, story.index)).collect();
    let indices = |of: fn(&Placed) -> &[plan::WorkerIndex]| -> Vec<u32> {
        here.iter().flat_map(|placed| of(placed)).map(|worker| worker.0).collect::<BTreeSet<_>>().into_iter().collect()
    };
    let (writers, readers) = (indices(|placed| &placed.writers), indices(|placed| &placed.readers));
    let touching = modelled.workers.iter().filter(|w| writers.contains(&w.worker) || readers.contains(&w.worker));
    let passes: u64 = touching.map(|worker| worker.passes).sum();
    let tenures = story.tenures_by_worker.iter().sum::<u64>();
    let owners: BTreeMap<u32, f64> = modelled
        .workers
        .iter()
        .zip(&story.tenures_by_worker)
        .filter(|(_, count)| **count > 0)
        .map(|(worker, &count)| (worker.worker, count as f64 / tenures as f64))
        .collect();
    ModelledLine {
        index: story.index,
        fields: here.iter().map(|placed| name(program, placed)).collect(),
        transfers_per_op: story.transfers as f64 / passes.max(1) as f64,
        tenure_passes: (owners.len() > 1).then(|| owned_passes(program, modelled, story) / tenures as f64),
        owners,
        pairs: pairs(program, &here, story),
        writers,
        readers,
    }
}

/// Passes of those who come to own the line.
fn owned_passes(program: &Program, modelled: &Modelled, story: &LineStory) -> f64 {
    let owns = |nth: usize| story.tenures_by_worker.get(nth).is_some_and(|count| *count > 0);
    let of = program.workers.iter().zip(&modelled.workers).enumerate();
    of.filter(|(nth, _)| owns(*nth)).map(|(_, (_, worker))| worker.passes as f64).sum()
}

fn touches(placed: &Placed, line: u64) -> bool {
    let last = placed.offset + placed.bytes.max(1) - 1;
    (placed.offset / CACHE_LINE_BYTES..=last / CACHE_LINE_BYTES).contains(&line)
}

/// `hits[0]`, where a field has several elements; a lock or a lone field by its name.
fn name(program: &Program, placed: &Placed) -> String {
    let has_more = program.layout.placed.iter().any(|other| other.field == placed.field && other.element > 0);
    if has_more && !placed.lock { format!("{}[{}]", placed.field, placed.element) } else { placed.field.clone() }
}

fn pairs(program: &Program, here: &[&Placed], story: &LineStory) -> Vec<ModelledPair> {
    let at = |offset: u64| {
        let within = |placed: &&&Placed| {
            let bytes = if placed.lock { LockKind::BYTES } else { placed.bytes };
            (placed.offset..placed.offset + bytes).contains(&offset)
        };
        here.iter().find(within).map_or_else(|| format!("byte {offset}"), |placed| name(program, placed))
    };
    let mut named: BTreeMap<(String, String, bool), u64> = BTreeMap::new();
    for pair in &story.pairs {
        *named.entry((at(pair.held), at(pair.wanted), pair.to_write)).or_default() += pair.transfers;
    }
    let all = named.values().sum::<u64>().max(1) as f64;
    let mut pairs: Vec<ModelledPair> = named
        .into_iter()
        .map(|((held, wanted, to_write), count)| ModelledPair { held, wanted, to_write, share: count as f64 / all })
        .collect();
    pairs.sort_by(|a, b| b.share.total_cmp(&a.share));
    pairs.truncate(MOST_PAIRS);
    pairs
}

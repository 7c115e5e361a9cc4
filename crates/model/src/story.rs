//! What became of one line: who owned it, for how many operations, and which pairs of words made it move.

use std::collections::HashMap;

/// A line's part of the simulated window.
#[derive(Clone, Debug, PartialEq)]
pub struct LineStory {
    /// Number of the line from the area's start: its offset in lines. Queue nodes of locks lie beyond 2^42.
    pub index: u64,
    /// Times it moved from one core to another, or a core took others' copies away.
    pub transfers: u64,
    /// Times a core came to own it, alone or as the supplier, after another.
    pub tenures: u64,
    /// Accesses by its owner, from coming to own it to losing it, a tenure.
    pub ops_per_tenure: Option<f64>,
    /// How often each worker came to own it, by the Program's order.
    pub tenures_by_worker: Vec<u64>,
    /// What moved it, most frequent first.
    pub pairs: Vec<PairStory>,
}

/// Two words, one touched by the core that had the line, the other wanted by the core that took it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PairStory {
    /// Offset of the word that the holder touched last.
    pub held: u64,
    /// Offset of the word for which it was taken.
    pub wanted: u64,
    /// Whether the taker wanted to write.
    pub to_write: bool,
    /// How often.
    pub transfers: u64,
}

/// A story as it is written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    transfers: u64,
    ops: u64,
    tenures_by_worker: Vec<u64>,
    pairs: HashMap<(u32, u32, bool), u64>,
    /// The word that the present owner touched last.
    pub(crate) touched: u32,
}

impl Draft {
    /// Its owner touched a word.
    #[inline(always)]
    pub(crate) fn touch(&mut self, word: u32) {
        self.ops += 1;
        self.touched = word;
    }

    /// Another core took it, or a share of it, from one that held it.
    pub(crate) fn transfer(&mut self, wanted: u32, to_write: bool) {
        self.transfers += 1;
        *self.pairs.entry((self.touched, wanted, to_write)).or_default() += 1;
    }

    /// A worker came to own it.
    pub(crate) fn tenure(&mut self, worker: usize) {
        if self.tenures_by_worker.len() <= worker {
            self.tenures_by_worker.resize(worker + 1, 0);
        }
        self.tenures_by_worker[worker] += 1;
    }

    /// Begins anew; who touched it last stays known.
    pub(crate) fn restart(&mut self) {
        *self = Draft { touched: self.touched, ..Draft::default() };
    }

    /// The whole story.
    pub(crate) fn finish(&self, index: u64, words: &[u64], workers: usize) -> LineStory {
        let mut tenures_by_worker = self.tenures_by_worker.clone();
        tenures_by_worker.resize(workers, 0);
        let tenures = tenures_by_worker.iter().sum::<u64>();
        let offset = |word: u32| words[word as usize];
        let pair = |(&(held, wanted, to_write), &transfers): (&(u32, u32, bool), &u64)| PairStory {
            held: offset(held),
            wanted: offset(wanted),
            to_write,
            transfers,
        };
        let mut pairs: Vec<PairStory> = self.pairs.iter().map(pair).collect();
        pairs.sort_by_key(|p| (std::cmp::Reverse(p.transfers), p.held, p.wanted, p.to_write));
        LineStory {
            index,
            transfers: self.transfers,
            tenures,
            ops_per_tenure: (tenures > 0).then(|| self.ops as f64 / tenures as f64),
            tenures_by_worker,
            pairs,
        }
    }
}

//! What became of one line: who owned it, for how many operations, and which pairs of words made it move.

/// A line's part of the simulated window.
#[derive(Clone, Debug, PartialEq)]
pub struct LineStory {
    /// Number of the line from the area's start: its offset in lines. Queue nodes of locks lie beyond 2^42.
    pub index: u64,
    /// Times it moved from one core to another, or a core took others' copies away.
    pub transfers: u64,
    /// Times a core came to own it, that is to have it alone.
    pub tenures: u64,
    /// Accesses by its owner, while it may write it, a tenure.
    pub ops_per_tenure: Option<f64>,
    /// How often each worker came to own it, by the Program's order.
    pub tenures_by_worker: Vec<u64>,
    /// What moved it, most frequent first.
    pub pairs: Vec<PairStory>,
}

/// Two words, one touched by the core that had the line, the other wanted by the core that took it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PairStory {
    /// Offset of the word that the holder touched last, or wanted when it asked and then never touched.
    pub held: u64,
    /// Offset of the word for which it was taken; in the other line of the pair where it came along with that.
    pub wanted: u64,
    /// Whether the taker wanted to write.
    pub to_write: bool,
    /// How often.
    pub transfers: u64,
}

/// A story as it is written. Words are told by their places in the line pair, so that counting a transfer takes a look
/// into a table and no search.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    words: usize,
    transfers: u64,
    ops: u64,
    tenures_by_worker: Vec<u64>,
    /// By holder's word, wanted word and whether to write; empty until the line moves.
    pairs: Vec<u64>,
}

impl Draft {
    /// Of a line in whose pair so many words are touched.
    pub(crate) fn new(words: usize) -> Draft {
        Draft { words, transfers: 0, ops: 0, tenures_by_worker: Vec::new(), pairs: Vec::new() }
    }

    /// Its owner touched it.
    #[inline(always)]
    pub(crate) fn touch(&mut self) {
        self.ops += 1;
    }

    /// Another core took it, or a share of it, from one that held it.
    pub(crate) fn transfer(&mut self, held: usize, wanted: usize, to_write: bool) {
        self.transfers += 1;
        if self.pairs.is_empty() {
            self.pairs = vec![0; self.words * self.words * 2];
        }
        self.pairs[(held * self.words + wanted) * 2 + usize::from(to_write)] += 1;
    }

    /// A worker came to own it.
    pub(crate) fn tenure(&mut self, worker: usize) {
        if self.tenures_by_worker.len() <= worker {
            self.tenures_by_worker.resize(worker + 1, 0);
        }
        self.tenures_by_worker[worker] += 1;
    }

    /// What it has reserved.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.tenures_by_worker.capacity() + self.pairs.capacity()
    }

    /// Begins anew.
    pub(crate) fn restart(&mut self) {
        *self = Draft::new(self.words);
    }

    /// The whole story; `offsets` are those of the pair's words.
    pub(crate) fn finish(&self, index: u64, offsets: &[u64], workers: usize) -> LineStory {
        let mut tenures_by_worker = self.tenures_by_worker.clone();
        tenures_by_worker.resize(workers, 0);
        let tenures = tenures_by_worker.iter().sum::<u64>();
        let pair = |(at, &transfers): (usize, &u64)| PairStory {
            held: offsets[at / 2 / self.words],
            wanted: offsets[at / 2 % self.words],
            to_write: at % 2 == 1,
            transfers,
        };
        let moved = self.pairs.iter().enumerate().filter(|&(_, &transfers)| transfers > 0);
        let mut pairs: Vec<PairStory> = moved.map(pair).collect();
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

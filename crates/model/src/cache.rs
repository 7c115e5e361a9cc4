//! Set-associative caches with replacement of the least recently used line, of which they hold numbers only: what state
//! a copy is in stands with the line (`line.rs`). Lines whose set can never be full need no cache to say who stays.

use crate::machine::CacheShape;
use std::collections::HashMap;

/// Which of the sets that `numbers` fall into they can overfill: whether that is so of a number's.
pub(crate) fn overfull(shape: &CacheShape, numbers: &[u64]) -> impl Fn(u64) -> bool {
    let set = |number: u64, sets: u64| number & (sets - 1);
    let (sets, ways) = (shape.sets(), shape.ways);
    let mut lines_of: HashMap<u64, u32> = HashMap::new();
    numbers.iter().for_each(|&number| *lines_of.entry(set(number, sets)).or_default() += 1);
    move |number| lines_of.get(&set(number, sets)).is_some_and(|&lines| lines > ways)
}

/// How many lines a cache holds.
pub(crate) fn lines(shape: &CacheShape) -> u64 {
    shape.sets() * u64::from(shape.ways)
}

/// One cache.
#[derive(Debug)]
pub(crate) struct Cache {
    sets: Vec<Vec<Entry>>,
    mask: u64,
    ways: usize,
}

#[derive(Copy, Clone, Debug)]
struct Entry {
    line: u32,
    used: u64,
}

impl Cache {
    pub(crate) fn new(shape: &CacheShape) -> Cache {
        Cache { sets: vec![Vec::new(); shape.sets() as usize], mask: shape.sets() - 1, ways: shape.ways as usize }
    }

    fn set(&mut self, number: u64) -> &mut Vec<Entry> {
        &mut self.sets[(number & self.mask) as usize]
    }

    /// Enters a line, at the address `number`; returns the one that had to go for it. One that is here already is used.
    pub(crate) fn insert(&mut self, line: u32, number: u64, now: u64) -> Option<u32> {
        let ways = self.ways;
        let set = self.set(number);
        if let Some(entry) = set.iter_mut().find(|e| e.line == line) {
            entry.used = now;
            return None;
        }
        let entry = Entry { line, used: now };
        if set.len() < ways {
            set.push(entry);
            return None;
        }
        let oldest = set.iter_mut().min_by_key(|e| e.used)?;
        Some(std::mem::replace(oldest, entry).line)
    }

    /// Notes that a line was used, where it is here.
    #[inline(always)]
    pub(crate) fn touch(&mut self, line: u32, number: u64, now: u64) {
        if let Some(entry) = self.set(number).iter_mut().find(|e| e.line == line) {
            entry.used = now;
        }
    }

    /// Drops a line.
    pub(crate) fn remove(&mut self, line: u32, number: u64) {
        self.set(number).retain(|e| e.line != line);
    }

    /// Whether a line is here.
    #[cfg(test)]
    pub(crate) fn holds(&self, line: u32, number: u64) -> bool {
        self.sets[(number & self.mask) as usize].iter().any(|e| e.line == line)
    }
}

/// The lines that a fully associative cache of the same size would hold: it tells conflict from capacity misses (M. D.
/// Hill and A. J. Smith, "Evaluating associativity in CPU caches", IEEE ToC 1989).
#[derive(Debug)]
pub(crate) struct Shadow {
    /// By line: its neighbours towards the most and the least recently used one, or itself at the ends; `None` where it
    /// is not here.
    links: Vec<Option<Link>>,
    ends: Option<Link>,
    len: usize,
    capacity: usize,
}

#[derive(Copy, Clone, Debug)]
struct Link {
    newer: u32,
    older: u32,
}

impl Shadow {
    pub(crate) fn new(shape: &CacheShape) -> Shadow {
        Shadow { links: Vec::new(), ends: None, len: 0, capacity: lines(shape) as usize }
    }

    /// Whether it holds the line.
    pub(crate) fn holds(&self, line: u32) -> bool {
        self.links.get(line as usize).is_some_and(Option::is_some)
    }

    /// A use.
    #[inline(always)]
    pub(crate) fn touch(&mut self, line: u32) {
        if self.ends.is_none_or(|ends| ends.newer != line) {
            self.make_newest(line);
        }
    }

    fn make_newest(&mut self, line: u32) {
        self.unlink(line);
        if self.len == self.capacity
            && let Some(ends) = self.ends
        {
            self.unlink(ends.older);
        }
        if self.links.len() <= line as usize {
            self.links.resize(line as usize + 1, None);
        }
        let older = self.ends.map_or(line, |ends| ends.newer);
        if let Some(link) = &mut self.links[older as usize] {
            link.newer = line;
        }
        self.links[line as usize] = Some(Link { newer: line, older });
        self.ends = Some(Link { newer: line, older: self.ends.map_or(line, |ends| ends.older) });
        self.len += 1;
    }

    fn unlink(&mut self, line: u32) {
        let Some(link) = self.links.get_mut(line as usize).and_then(Option::take) else { return };
        self.len -= 1;
        let (is_newest, is_oldest) = (link.newer == line, link.older == line);
        if let Some(newer) = self.links[link.newer as usize].as_mut().filter(|_| !is_newest) {
            newer.older = if is_oldest { link.newer } else { link.older };
        }
        if let Some(older) = self.links[link.older as usize].as_mut().filter(|_| !is_oldest) {
            older.newer = if is_newest { link.older } else { link.newer };
        }
        self.ends = match (is_newest, is_oldest, self.ends) {
            (true, true, _) | (_, _, None) => None,
            (true, false, Some(ends)) => Some(Link { newer: link.older, ..ends }),
            (false, true, Some(ends)) => Some(Link { older: link.newer, ..ends }),
            (false, false, ends) => ends,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_WAYS: CacheShape = CacheShape { bytes: 4 * 2 * 64, ways: 2, ns: 0.0 };

    #[test]
    fn a_full_set_loses_its_least_recently_used_line_and_others_stay() {
        let mut cache = Cache::new(&TWO_WAYS);
        assert_eq!(cache.insert(10, 0, 1), None);
        assert_eq!(cache.insert(11, 4, 2), None);
        assert_eq!(cache.insert(12, 1, 3), None, "another set");
        cache.touch(10, 0, 4);
        assert_eq!(cache.insert(13, 8, 5), Some(11));
        assert!(cache.holds(10, 0) && cache.holds(12, 1) && cache.holds(13, 8) && !cache.holds(11, 4));
        cache.remove(10, 0);
        assert_eq!(cache.insert(14, 12, 6), None);
    }

    #[test]
    fn only_sets_that_more_lines_fall_into_than_they_have_ways_are_overfull() {
        let is_overfull = overfull(&TWO_WAYS, &[0, 4, 8, 1, 5]);
        assert!(is_overfull(0) && is_overfull(8) && !is_overfull(1) && !is_overfull(2));
        assert_eq!(lines(&TWO_WAYS), 8);
    }

    #[test]
    fn the_shadow_holds_as_many_lines_as_the_cache_whatever_their_sets() {
        let mut shadow = Shadow::new(&TWO_WAYS);
        for line in 0..8 {
            shadow.touch(line);
        }
        shadow.touch(0);
        shadow.touch(8);
        assert!(shadow.holds(0) && !shadow.holds(1) && (2..=8).all(|line| shadow.holds(line)));
    }
}

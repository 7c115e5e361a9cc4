//! The locks that lie in the segment: the words that are theirs, and how long they were held.

use super::users::User;
use record::{Attach, LineVerdict, TouchedWord, TouchingInstruction};
use std::collections::BTreeSet;

/// Bytes of a `pthread_mutex_t` of glibc's on a 64-bit machine (`bits/pthreadtypes-arch.h`), and of a futex.
const MUTEX_BYTES: u64 = 40;
const FUTEX_BYTES: u64 = 4;

/// A lock in the segment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Site {
    /// The offset of its word.
    pub(super) offset: u64,
    /// As scenarios spell it.
    pub(super) kind: String,
    /// The field's name, where a struct was named.
    pub(super) field: Option<String>,
    /// Who was seen to take it; of those whose waits alone were seen, the process.
    pub(super) takers: BTreeSet<User>,
    /// In which share of looks it was held.
    pub(super) held: Option<f64>,
}

impl Site {
    fn bytes(&self) -> u64 {
        if self.kind == "futex" { FUTEX_BYTES } else { MUTEX_BYTES }
    }
}

/// All of them, ascending by offset.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sites(pub(super) Vec<Site>);

impl Sites {
    /// Those whose bytes, waits or instructions say what they are.
    pub(super) fn of(seen: &Attach) -> Sites {
        let mut sites: Vec<Site> = Vec::new();
        for lock in &seen.locks {
            let Some(kind) = &lock.kind else { continue };
            let waited = lock.waiters.iter().chain(&lock.wakers).map(|one| User { pid: one.pid, tid: None });
            sites.push(Site {
                offset: lock.offset,
                kind: kind.clone(),
                field: lock.field.clone(),
                takers: waited.collect(),
                held: None,
            });
        }
        for line in seen.lines.iter().filter(|line| line.verdict == LineVerdict::LockWord) {
            for word in line.words.iter().filter(|word| word.instructions.iter().any(takes_mutex)) {
                if sites.iter().all(|site| site.offset != word.offset) {
                    sites.push(Site {
                        offset: word.offset,
                        kind: "pthread".to_owned(),
                        field: word.field.clone(),
                        takers: BTreeSet::new(),
                        held: None,
                    });
                }
            }
        }
        sites.sort_by_key(|site| site.offset);
        let words = || seen.lines.iter().flat_map(|line| &line.words);
        for site in &mut sites {
            if let Some(word) = words().find(|word| word.offset == site.offset) {
                site.held = word.held;
                site.takers.extend(word.instructions.iter().filter(|at| at.writes).flat_map(User::at));
            }
        }
        Sites(sites)
    }

    /// Whether the word at that offset is a part of a lock.
    pub(super) fn holds(&self, offset: u64) -> bool {
        self.0.iter().any(|site| (site.offset..site.offset + site.bytes()).contains(&offset))
    }

    /// Those that a user takes: their places in the list. Where it is not known which thread of its process does, it may.
    pub(super) fn taken_by(&self, user: User) -> Vec<usize> {
        let takes = |site: &Site| {
            let mut own = site.takers.iter().filter(|taker| taker.pid == user.pid).peekable();
            let known = own.peek().is_some();
            let mut threads = own.filter(|taker| taker.tid.is_some()).peekable();
            known && (threads.peek().is_none() || threads.any(|taker| *taker == user))
        };
        self.0.iter().enumerate().filter(|(_, site)| takes(site)).map(|(at, _)| at).collect()
    }
}

/// Acquisitions of a word a second by a user, where they are few enough to be told apart.
pub(super) fn acquisitions(word: &TouchedWord, user: User) -> Option<f64> {
    let takes = word.instructions.iter().filter(|at| user.was_at(at) && is_exchange(at));
    let mut all = None;
    for at in takes {
        if at.at_least {
            return None;
        }
        all = Some(all.unwrap_or(0.0) + User::part(at)?);
    }
    all.filter(|rate| *rate > 0.0)
}

fn is_exchange(at: &TouchingInstruction) -> bool {
    at.text.as_deref().is_some_and(|text| text.contains("cmpxchg"))
}

/// Whether it is the C library's taking of a mutex: in a function of that name, or in the library where that has no names.
fn takes_mutex(at: &TouchingInstruction) -> bool {
    const NAMES: [&str; 3] = ["pthread_mutex_", "lll_lock", "lll_trylock"];
    let by_name = at
        .symbol
        .as_deref()
        .is_some_and(|symbol| NAMES.iter().any(|name| symbol.trim_start_matches('_').starts_with(name)));
    let object = at.object.as_deref().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    is_exchange(at) && (by_name || ["libc.so", "libc-", "libpthread"].iter().any(|name| object.starts_with(name)))
}

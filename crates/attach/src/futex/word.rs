//! What a lock's word, and what lies behind it, says about its owner.
//!
//! # References
//! `linux/futex.h`, FUTEX_TID_MASK and the bits above it; `Documentation/locking/robust-futex-ABI.rst`; glibc,
//! `sysdeps/nptl/bits/struct_mutex.h` and `nptl/pthreadP.h` (PTHREAD_MUTEX_INCONSISTENT and the bits of `__kind`).

/// What of a lock is read: as much of a `pthread_mutex_t` as tells what it is.
pub(super) const READ_BYTES: usize = 20;

/// FUTEX_WAITERS: the owner has to ask the kernel to wake somebody.
const WAITERS: u32 = 1 << 31;
/// FUTEX_OWNER_DIED: the kernel found it among the locks of a thread that ended.
const OWNER_DIED: u32 = 1 << 30;
/// FUTEX_TID_MASK.
const THREAD: u32 = (1 << 30) - 1;

/// PTHREAD_MUTEX_ROBUST_NORMAL_NP, PTHREAD_MUTEX_PRIO_INHERIT_NP, PTHREAD_MUTEX_PRIO_PROTECT_NP and PTHREAD_MUTEX_PSHARED_BIT
/// in a mutex's `__kind`; below them its type, above them two bits about elision.
const ROBUST: u32 = 0x10;
const INHERITS: u32 = 0x20;
const PROTECTS: u32 = 0x40;
const SHARED: u32 = 0x80;
const ANY_KIND: u32 = 0x3f3;
/// The bits of the type, and PTHREAD_MUTEX_ADAPTIVE_NP.
const TYPE: u32 = 3;
const ADAPTIVE: u32 = 3;

/// PTHREAD_MUTEX_INCONSISTENT in a robust mutex's `__owner`: taken over from a dead owner, and not yet mended.
const INCONSISTENT: u32 = i32::MAX as u32;
/// PTHREAD_MUTEX_NOTRECOVERABLE: it was given back unmended, and nobody gets it any more.
const LOST: u32 = INCONSISTENT - 1;

/// What a word was when it was read.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// A lock that nobody owns.
    Free,
    /// A lock, and its owner's thread as that thread's own namespace numbers it.
    Owned {
        thread: u32,
        /// A thread has ended while it owned it, and what it protects has not been declared mended since.
        died: bool,
    },
    /// A robust mutex that nobody can take any more.
    Lost,
    /// 0, 1 or 2, as in most locks that are made of one word: free, taken, taken and waited for.
    ThreeState(u32),
    /// Nothing that is known.
    Other,
}

/// Takes the bytes from the word on apart, as many as could be read. `inherits_priority`: the kernel was asked to hand the lock
/// on itself, so it has to be of the kernel's own shape.
pub(super) fn read(bytes: &[u8], address_bits: u32, inherits_priority: bool) -> Word {
    let Some(word) = part(bytes, 0) else { return Word::Other };
    if let Some(mutex) = parts(bytes, address_bits).and_then(|(word, owner, kind)| mutex(word, owner, kind)) {
        return mutex;
    }
    if inherits_priority || word & (WAITERS | OWNER_DIED) != 0 && word & THREAD != 0 && word != u32::MAX {
        return with_thread(word);
    }
    if word <= 2 { Word::ThreeState(word) } else { Word::Other }
}

/// The kind of a process-shared `pthread_mutex_t` as scenarios spell it, where these bytes are one. Those that count how often
/// their owner took them, or check who gives them back, are plain ones to all others.
pub(super) fn kind(bytes: &[u8], address_bits: u32) -> Option<&'static str> {
    let (word, owner, kind) = parts(bytes, address_bits)?;
    mutex(word, owner, kind)?;
    Some(match kind {
        kind if kind & INHERITS != 0 => "pthread-pi",
        kind if kind & ROBUST != 0 => "pthread-robust",
        kind if kind & TYPE == ADAPTIVE => "pthread-adaptive",
        _ => "pthread",
    })
}

fn part(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map(u32::from_ne_bytes)
}

/// Lock, owner and kind, as they would stand in a `pthread_mutex_t`.
fn parts(bytes: &[u8], address_bits: u32) -> Option<(u32, u32, u32)> {
    let kind_at = if address_bits == 32 { 12 } else { 16 };
    Some((part(bytes, 0)?, part(bytes, 8)?, part(bytes, kind_at)?))
}

/// A process-shared `pthread_mutex_t`, where this is one.
fn mutex(word: u32, owner: u32, kind: u32) -> Option<Word> {
    if kind & SHARED == 0 || kind & !ANY_KIND != 0 || kind & PROTECTS != 0 {
        return None;
    }
    if kind & (ROBUST | INHERITS) != 0 {
        return Some(match owner {
            LOST => Word::Lost,
            INCONSISTENT if word & THREAD != 0 => Word::Owned { thread: word & THREAD, died: true },
            _ => with_thread(word),
        });
    }
    match (word, owner) {
        (0, _) => Some(Word::Free),
        // Just taken, and the owner not yet written.
        (1 | 2, 0) => Some(Word::ThreeState(word)),
        (1 | 2, _) if owner <= THREAD => Some(Word::Owned { thread: owner, died: false }),
        _ => None,
    }
}

/// A word that holds the owner's thread.
fn with_thread(word: u32) -> Word {
    match (word & THREAD, word & OWNER_DIED != 0) {
        (0, false) => Word::Free,
        // The kernel leaves the bit and no thread: it is free, for one who looks after what it protects.
        (thread, died) => Word::Owned { thread, died },
    }
}

#[cfg(test)]
mod tests {
    use super::{Word, kind, read};

    /// A `pthread_mutex_t` of glibc's on a 64-bit machine.
    fn mutex(word: u32, owner: u32, kind: u32) -> Vec<u8> {
        [word, 0, owner, u32::from(owner != 0), kind].iter().flat_map(|part| part.to_ne_bytes()).collect()
    }

    fn owned(thread: u32) -> Word {
        Word::Owned { thread, died: false }
    }

    #[test]
    fn a_plain_mutex_has_its_owner_beside_the_word() {
        assert_eq!(read(&mutex(2, 4711, 0x80), 64, false), owned(4711));
        assert_eq!(read(&mutex(0, 0, 0x80), 64, false), Word::Free);
        assert_eq!(read(&mutex(1, 0, 0x80), 64, false), Word::ThreeState(1));
        let narrow: Vec<u8> = [2u32, 0, 4711, 0x80, 1].iter().flat_map(|part| part.to_ne_bytes()).collect();
        assert_eq!(read(&narrow, 32, false), owned(4711));
    }

    #[test]
    fn a_robust_mutex_has_it_in_the_word_and_says_that_it_died() {
        assert_eq!(read(&mutex(4711 | 1 << 31, 4711, 0x90), 64, false), owned(4711));
        assert_eq!(read(&mutex(4711, 4711, 0x90), 64, false), owned(4711));
        let died = Word::Owned { thread: 4711, died: true };
        assert_eq!(read(&mutex(4711 | 1 << 30, 4711, 0x90), 64, false), died);
        assert_eq!(read(&mutex(4711, i32::MAX as u32, 0x90), 64, false), died);
        assert_eq!(read(&mutex(0, i32::MAX as u32 - 1, 0x90), 64, false), Word::Lost);
    }

    #[test]
    fn a_mutex_has_the_kind_that_a_scenario_would_give_it() {
        let kinds = [0x80, 0x81, 0x83, 0x90, 0xa0, 0, 0x84].map(|bits| kind(&mutex(1, 4711, bits), 64));
        let some = ["pthread", "pthread", "pthread-adaptive", "pthread-robust", "pthread-pi"].map(Some);
        assert_eq!((&kinds[..5], &kinds[5..]), (&some[..], &[None, None][..]));
        assert_eq!(kind(&mutex(77, 4711, 0x80), 64), None, "no state of a mutex");
    }

    #[test]
    fn a_mutex_of_another_kind_is_not_guessed_at() {
        // For one process alone; with a ceiling; and numbers that are no kind at all.
        for kind in [0, 0xc0, 0x1080, 0x84, 0xffff_ffff] {
            assert_eq!(read(&mutex(2, 4711, kind), 64, false), Word::ThreeState(2), "{kind:#x}");
        }
        assert_eq!(read(&mutex(77, 4711, 0x80), 64, false), Word::Other);
    }

    #[test]
    fn a_word_alone_is_an_owner_only_where_the_kernel_would_take_it_for_one() {
        assert_eq!(read(&(4711u32 | 1 << 31).to_ne_bytes(), 64, false), owned(4711));
        assert_eq!(read(&4711u32.to_ne_bytes(), 64, true), owned(4711));
        assert_eq!(read(&4711u32.to_ne_bytes(), 64, false), Word::Other);
        assert_eq!(read(&u32::MAX.to_ne_bytes(), 64, false), Word::Other);
        assert_eq!(read(&0u32.to_ne_bytes(), 64, true), Word::Free);
        assert_eq!(read(&[1, 0], 64, false), Word::Other);
    }
}

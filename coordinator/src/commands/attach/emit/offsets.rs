//! Where words and locks of a segment go in a scenario's layout.

use plan::LockKind;

/// Up to here offsets are kept as they are; from here on what lies far apart is moved together by whole pages, since the
/// lab reserves and touches all that lies between.
const KEPT_BYTES: u64 = 1 << 20;
const PAGE_BYTES: u64 = 4096;

/// Where everything went.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Settled {
    /// Offsets of the fields, in the order in which they were given.
    pub(super) fields: Vec<u64>,
    /// Those of the locks.
    pub(super) locks: Vec<u64>,
    /// What could not stay, a sentence each.
    pub(super) moved: Vec<String>,
}

/// Places fields (offset and bytes) and locks (offset), ascending each.
pub(super) fn settle(fields: &[(u64, u64)], locks: &[u64]) -> Settled {
    let field = |(index, (offset, bytes)): (usize, &(u64, u64))| (*offset, *bytes, *bytes, Ok(index));
    let lock = |(index, offset): (usize, &u64)| (*offset, LockKind::BYTES, LockKind::ALIGN, Err(index));
    let mut items: Vec<_> = fields.iter().enumerate().map(field).chain(locks.iter().enumerate().map(lock)).collect();
    items.sort_by_key(|(offset, ..)| *offset);
    let is_kept = items.last().is_none_or(|(offset, ..)| *offset < KEPT_BYTES);
    let mut settled = Settled { fields: vec![0; fields.len()], locks: vec![0; locks.len()], moved: Vec::new() };
    let (mut end, mut page, mut wanted_page) = (0u64, 0u64, None);
    for (offset, bytes, align, what) in items {
        if !is_kept {
            // The next page in use follows the last one.
            let own = offset / PAGE_BYTES;
            if wanted_page.is_some_and(|last| last != own) {
                page = u64::max(page + 1, end.div_ceil(PAGE_BYTES));
            }
            wanted_page = Some(own);
        }
        let wanted = if is_kept { offset } else { page * PAGE_BYTES + offset % PAGE_BYTES };
        let at = u64::max(wanted, end).next_multiple_of(align);
        if at != wanted {
            settled.moved.push(match what {
                Ok(_) => format!(
                    "the word at {offset:#x} lies {} bytes further back here, behind the lock, which takes {} bytes in the lab",
                    at - wanted,
                    LockKind::BYTES
                ),
                Err(_) => format!("the lock at {offset:#x} lies {} bytes further back here", at - wanted),
            });
        }
        end = at + bytes;
        match what {
            Ok(index) => settled.fields[index] = at,
            Err(index) => settled.locks[index] = at,
        }
    }
    if !is_kept {
        settled.moved.insert(0, "pages that nobody was seen to touch are left out between the others".to_owned());
    }
    settled
}

#[cfg(test)]
mod tests {
    use super::{Settled, settle};

    #[test]
    fn what_fits_stays_where_it_was() {
        let settled = settle(&[(0, 8), (12, 4), (4096, 1)], &[128]);
        assert_eq!(settled, Settled { fields: vec![0, 12, 4096], locks: vec![128], moved: vec![] });
    }

    #[test]
    fn a_word_within_the_lab_s_lock_goes_behind_it_and_that_is_said() {
        let settled = settle(&[(40, 8), (128, 8)], &[0]);
        assert_eq!((&settled.fields[..], &settled.locks[..]), (&[64, 128][..], &[0][..]));
        assert!(settled.moved[0].contains("0x28") && settled.moved[0].contains("24 bytes"), "{:?}", settled.moved);
    }

    #[test]
    fn far_pages_come_together_and_keep_their_place_within_a_page() {
        let settled = settle(&[(64, 8), (1 << 29, 8), ((1 << 29) + 72, 8), ((1 << 30) - 8, 8)], &[]);
        assert_eq!(settled.fields, [64, 4096, 4096 + 72, 8192 + 4088]);
        assert_eq!(settled.moved.len(), 1);
    }
}

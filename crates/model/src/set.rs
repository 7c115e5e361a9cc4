//! Sets of cores, or of clusters, as bits.

/// How many there can be.
pub(crate) const MOST: usize = u128::BITS as usize;

/// Some of up to [`MOST`] cores or clusters, by number.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Set(u128);

impl Set {
    pub(crate) const EMPTY: Set = Set(0);

    #[inline(always)]
    pub(crate) fn only(member: usize) -> Set {
        Set(1 << member)
    }

    #[inline(always)]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline(always)]
    pub(crate) fn has(self, member: usize) -> bool {
        self.0 >> member & 1 == 1
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, member: usize) {
        self.0 |= 1 << member;
    }

    #[inline(always)]
    pub(crate) fn remove(&mut self, member: usize) {
        self.0 &= !(1 << member);
    }

    #[inline(always)]
    pub(crate) fn without(self, other: Set) -> Set {
        Set(self.0 & !other.0)
    }

    #[inline(always)]
    pub(crate) fn both(self, other: Set) -> Set {
        Set(self.0 & other.0)
    }

    #[inline(always)]
    pub(crate) fn first(self) -> Option<usize> {
        (self.0 != 0).then(|| self.0.trailing_zeros() as usize)
    }

    /// Its members, ascending.
    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self;
        std::iter::from_fn(move || {
            let first = left.first()?;
            left.0 &= left.0 - 1;
            Some(first)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_ascending_and_leave() {
        let mut set = Set::EMPTY;
        [127, 0, 64].into_iter().for_each(|member| set.add(member));
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 64, 127]);
        set.remove(0);
        assert!(!set.has(0) && set.has(64));
        assert_eq!(set.without(Set::only(64)), Set::only(127));
        assert_eq!(set.both(Set::only(64)).first(), Some(64));
        assert!(Set::EMPTY.first().is_none() && Set::EMPTY.is_empty());
    }
}

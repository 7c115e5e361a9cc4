//! The way of a line, or of the request for it.

use crate::chance::Chance;
use crate::time::Ps;

/// How long a way is this time, between its shortest and its longest.
///
/// Where two cores want a line all the time, the next request is on its way before the line has come. Had it nothing to
/// do with how long that took, a line that came soon would be kept longer, and the contended probe's figure, which has
/// the tenure, would not come out any more. So a request for a line that is still on its way, and comes sooner than
/// usual, is as much sooner itself; any other takes as long as usual.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Way(u32);

impl Way {
    /// As long as usual.
    pub(crate) const USUAL: Way = Way(1 << 31);

    #[inline(always)]
    pub(crate) fn draw(chance: &mut Chance) -> Way {
        Way(chance.below(1 << 32) as u32)
    }

    /// The way of the request that follows.
    #[inline(always)]
    pub(crate) fn no_longer_than_usual(self) -> Way {
        Way(self.0.min(Way::USUAL.0))
    }

    /// So much of what a way can be longer than its shortest.
    #[inline(always)]
    pub(crate) fn part_of(self, span: Ps) -> Ps {
        (span * u64::from(self.0)) >> 32
    }
}

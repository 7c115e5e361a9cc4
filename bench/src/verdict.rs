//! What a figure comes to against its bar: one rule for everything that is judged.

use record::Interval;
use serde::Serialize;

/// The judgement on a ratio.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// The interval's upper end is at most the bar, and the control is sound.
    Within,
    /// The whole interval is above it, and the control is sound.
    Over,
    /// Neither, or no interval, or a control that is not sound: noise hid the answer.
    Unresolved,
}

/// Whether what differs in nothing was seen not to differ: the control's interval holds 1 and is narrower than `width`.
pub(crate) fn is_sound(control: Interval, width: f64) -> bool {
    control.low <= 1.0 && 1.0 <= control.high && control.high - control.low < width
}

impl Verdict {
    /// On a ratio, beside its control.
    pub(crate) fn of(ratio: Option<Interval>, control: Option<Interval>, bar: f64, width: f64) -> Verdict {
        let (Some(ratio), Some(control)) = (ratio, control) else { return Verdict::Unresolved };
        let sound = is_sound(control, width);
        match () {
            () if sound && ratio.high <= bar => Verdict::Within,
            () if sound && ratio.low > bar => Verdict::Over,
            () => Verdict::Unresolved,
        }
    }

    /// As tables show it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Verdict::Within => "within",
            Verdict::Over => "over",
            Verdict::Unresolved => "unresolved",
        }
    }
}

/// 0 where all are within, 1 where one is over, else 3.
pub(crate) fn exit_status(verdicts: impl IntoIterator<Item = Verdict>) -> u8 {
    let of = |verdict| match verdict {
        Verdict::Over => 1,
        Verdict::Unresolved => 3,
        Verdict::Within => 0,
    };
    let worse = |a, b| if a == 1 || b == 0 { a } else { b };
    verdicts.into_iter().map(of).fold(0, worse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_needs_a_sound_control() {
        let interval = |low, high| Some(Interval { median: (low + high) / 2.0, low, high });
        let of = |ratio, control| Verdict::of(ratio, control, 1.05, 0.04);
        let sound = interval(0.99, 1.01);
        assert_eq!(of(interval(0.9, 1.05), sound), Verdict::Within);
        assert_eq!(of(interval(1.06, 1.2), sound), Verdict::Over);
        assert_eq!(of(interval(1.04, 1.06), sound), Verdict::Unresolved);
        for unsound in [interval(0.97, 1.02), interval(1.001, 1.01), None] {
            assert_eq!(of(interval(0.9, 1.0), unsound), Verdict::Unresolved, "{unsound:?}");
        }
        assert_eq!(of(None, sound), Verdict::Unresolved);
    }

    #[test]
    fn one_over_the_bar_tells_more_than_one_unresolved() {
        use Verdict::{Over, Unresolved, Within};
        assert_eq!(exit_status([]), 0);
        assert_eq!(exit_status([Within, Within]), 0);
        assert_eq!(exit_status([Within, Unresolved, Within]), 3);
        assert_eq!((exit_status([Unresolved, Over]), exit_status([Over, Unresolved, Within])), (1, 1));
    }
}

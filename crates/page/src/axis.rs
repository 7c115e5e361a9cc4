//! Axes: their range, and ticks that a person would have chosen.

use figures::plain;
use std::ops::RangeInclusive;

/// Room for a character of a label, in the drawing's units: most are narrower.
const LETTERS_WIDE: f64 = 8.3;

/// One axis of a chart, in the coordinate that is drawn: a logarithmic one is its decimal logarithm.
pub(crate) struct Axis {
    /// What it shows, with its unit.
    pub(crate) title: String,
    /// Its ends.
    pub(crate) from: f64,
    /// As above.
    pub(crate) to: f64,
    /// Where it is marked, and with what.
    pub(crate) ticks: Vec<(f64, String)>,
    logarithmic: bool,
}

/// What an axis reaches: a record may hold figures whose steps are nothing, or beyond all numbers.
const DRAWN: RangeInclusive<f64> = 1e-300..=1e300;

impl Axis {
    /// From 0 to a little beyond `most`.
    pub(crate) fn from_zero(title: impl Into<String>, most: f64) -> Axis {
        let most = if most.is_finite() && most > 0.0 { most.clamp(*DRAWN.start(), *DRAWN.end()) } else { 1.0 };
        let step = round_step(most / 5.0);
        let to = (most / step).ceil() * step;
        let ticks = (0..=(to / step).round() as u32).map(|n| f64::from(n) * step);
        let ticks = ticks.map(|at| (at, plain(tidy(at)))).collect();
        Axis { title: title.into(), from: 0.0, to: to * 1.02, ticks, logarithmic: false }
    }

    /// A logarithmic axis that holds `values`; only those above 0 count.
    pub(crate) fn logarithmic(title: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Axis {
        let logs: Vec<f64> = values.into_iter().filter(|v| v.is_finite() && *v > 0.0).map(f64::log10).collect();
        let low = logs.iter().copied().fold(f64::INFINITY, f64::min);
        let high = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = if low.is_finite() { (low, high) } else { (0.0, 1.0) };
        let room = ((high - low) * 0.06).max(0.02);
        let (from, to) = (low - room, high + room);
        let ticks = log_ticks(from, to).into_iter().map(|at| (at.log10(), plain(at))).collect();
        Axis { title: title.into(), from, to, ticks, logarithmic: true }
    }

    /// A category at each of 0, 1, …; the first one is on top where the axis is upright.
    pub(crate) fn categories(names: &[String]) -> Axis {
        let ticks = names.iter().enumerate().map(|(index, name)| (-(index as f64), name.clone())).collect();
        Axis { title: String::new(), from: 0.6 - names.len() as f64, to: 0.6, ticks, logarithmic: false }
    }

    /// The axis of HdrHistogram's plots: 1 / (1 - quantile), so that each nine has as much room as the one before.
    pub(crate) fn nines(most: f64) -> Axis {
        let to = most.max(100.0).log10();
        let known = [(2.0, "50 %"), (10.0, "90 %"), (100.0, "99 %"), (1e3, "99.9 %"), (1e4, "99.99 %")];
        let far = [(1e5, "5 nines"), (1e6, "6 nines"), (1e7, "7 nines"), (1e8, "8 nines")];
        let ticks = known.into_iter().chain(far).map(|(at, name)| (f64::log10(at), name.to_owned()));
        let ticks = ticks.filter(|(at, _)| *at <= to).collect();
        Axis {
            title: "share of them that took at most so long".to_owned(),
            from: 0.0,
            to: to * 1.03,
            ticks,
            logarithmic: true,
        }
    }

    /// Where a value lies on it.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let at = if self.logarithmic { value.max(f64::MIN_POSITIVE).log10() } else { value };
        at.clamp(self.from, self.to)
    }

    /// How far along it a value lies: 0 at its beginning, 1 at its end.
    pub(crate) fn part(&self, value: f64) -> f64 {
        (self.at(value) - self.from) / (self.to - self.from)
    }

    /// The label at a tick.
    pub(crate) fn label(&self, at: f64) -> String {
        let found = self.ticks.iter().find(|(tick, _)| (tick - at).abs() < 1e-9);
        found.map_or_else(String::new, |(_, label)| label.clone())
    }

    /// Room that the labels need beside an upright axis, in the drawing's units.
    pub(crate) fn label_room(&self) -> u32 {
        let longest = self.ticks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0);
        (longest as f64 * LETTERS_WIDE) as u32 + 12
    }
}

/// 1, 2 or 5 times a power of ten, the next above.
fn round_step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|digit| digit * power).find(|step| *step >= rough * 0.999).unwrap_or(power)
}

/// Takes the noise of binary fractions off a tick.
fn tidy(value: f64) -> f64 {
    if value == 0.0 { 0.0 } else { format!("{value:.9e}").parse().unwrap_or(value) }
}

/// Ticks between two decimal logarithms: powers of ten, or finer where fewer than three would show.
fn log_ticks(from: f64, to: f64) -> Vec<f64> {
    let within = |digits: &[f64]| -> Vec<f64> {
        let powers = from.floor() as i32..=to.ceil() as i32;
        let all = powers.flat_map(|power| digits.iter().map(move |digit| tidy(digit * 10f64.powi(power))));
        all.filter(|at| (from..=to).contains(&at.log10())).collect()
    };
    let decades = (to - from).ceil() as usize;
    let sets: [&[f64]; 3] = [&[1.0], &[1.0, 3.0], &[1.0, 2.0, 5.0]];
    let fine = sets.into_iter().map(within).find(|ticks| ticks.len() >= 3);
    fine.unwrap_or_else(|| {
        debug_assert!(decades <= 2, "more decades have ticks of their own");
        linear_ticks(10f64.powf(from), 10f64.powf(to))
    })
}

/// Evenly spaced round numbers, for a logarithmic axis of less than a decade.
fn linear_ticks(from: f64, to: f64) -> Vec<f64> {
    let step = round_step((to - from) / 5.0);
    let first = (from / step).ceil();
    (0..12).map(|n| tidy((first + f64::from(n)) * step)).take_while(|at| *at <= to).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_enough() {
        assert_eq!(labels(&Axis::from_zero("", 4140.0)), ["0", "1000", "2000", "3000", "4000", "5000"]);
        assert_eq!(labels(&Axis::from_zero("", 0.43)), ["0", "0.1", "0.2", "0.3", "0.4", "0.5"]);
        assert_eq!(labels(&Axis::logarithmic("", [1.0, 74.0])), ["1", "3", "10", "30"]);
        assert_eq!(labels(&Axis::logarithmic("", [1.0, 1.3])), ["1", "1.1", "1.2", "1.3"]);
        assert_eq!(labels(&Axis::logarithmic("", [30.0, 4e6]))[..2], ["100", "1000"]);
    }

    #[test]
    fn no_values_are_an_axis_too() {
        for axis in [Axis::logarithmic("", []), Axis::from_zero("", f64::NAN), Axis::logarithmic("", [5.0])] {
            assert!(axis.from < axis.to && axis.ticks.len() > 1, "{:?}", axis.ticks);
        }
    }

    #[test]
    fn each_nine_has_as_much_room() {
        let axis = Axis::nines(5e4);
        assert_eq!(labels(&axis), ["50 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
        assert_eq!((axis.at(10.0), axis.at(1000.0)), (1.0, 3.0));
    }

    #[test]
    fn figures_at_the_ends_of_all_numbers_have_few_ticks() {
        for most in [5e-324, f64::MIN_POSITIVE, 1e-300, f64::MAX, 1e300, f64::INFINITY, f64::NAN, -1.0, 0.0] {
            let axis = Axis::from_zero("x", most);
            assert!((2..=12).contains(&axis.ticks.len()), "{most}: {} ticks", axis.ticks.len());
            let axis = Axis::logarithmic("x", [most, most * 1.01]);
            assert!(axis.ticks.len() <= 700, "{most}: {} ticks", axis.ticks.len());
        }
    }
}

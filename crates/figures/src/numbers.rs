//! Numbers as text: no digit finer than the interval beside it, no locale, and nothing above zero shown as zero.

use record::Interval;

/// Stands where there is no figure; the reason is given beside it.
pub const NONE: &str = "–";

/// Joins the groups of a long number and a number to its unit, so that no line breaks inside.
const JOINT: char = '\u{a0}';

/// Most digits that mean something in a timing on a shared machine, however narrow the interval.
const MOST_DIGITS: i32 = 4;

/// An estimate and its interval, as text with the same last digit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The estimate: `23.1`.
    pub value: String,
    /// The interval: `(21.9–24.4)`; `None` where it has no width.
    pub ends: Option<String>,
}

impl Figure {
    /// Rounded so that the last digit is worth at most the interval's half-width, and more than a tenth of it.
    pub fn new(interval: &Interval) -> Figure {
        let Interval { median, low, high } = *interval;
        if !median.is_finite() {
            return Figure { value: NONE.to_owned(), ends: None };
        }
        let exponent = last_digit(interval);
        let ends = (low != high).then(|| format!("({}–{})", end(low, exponent), end(high, exponent)));
        Figure { value: rounded(median, exponent), ends }
    }

    /// Estimate and interval on one line.
    pub fn line(&self) -> String {
        match &self.ends {
            Some(ends) => format!("{}{JOINT}{ends}", self.value),
            None => self.value.clone(),
        }
    }
}

/// The power of ten that the last shown digit stands for.
fn last_digit(interval: &Interval) -> i32 {
    let leading = leading_digit(interval.median);
    let half_width = (interval.high - interval.low) / 2.0;
    if !half_width.is_finite() || half_width <= 0.0 || interval.median == 0.0 {
        return if interval.median == 0.0 && half_width > 0.0 && half_width.is_finite() {
            leading_digit(half_width)
        } else {
            leading - 2
        };
    }
    leading_digit(half_width).clamp(leading - (MOST_DIGITS - 1), leading)
}

/// The power of ten of a number's first digit; 0 for 0.
fn leading_digit(value: f64) -> i32 {
    if value == 0.0 { 0 } else { (value.abs().log10() + 1e-9).floor() as i32 }
}

fn end(value: f64, exponent: i32) -> String {
    if value.is_finite() { rounded(value, exponent) } else { "∞".to_owned() }
}

/// `value` to the digit that `10^exponent` stands for.
fn rounded(value: f64, exponent: i32) -> String {
    if exponent >= 0 {
        let unit = 10f64.powi(exponent);
        let whole = (value / unit).round() * unit;
        let sign = if whole < 0.0 { "-" } else { "" };
        return format!("{sign}{}", count(whole.abs() as u64));
    }
    let text = format!("{value:.*}", -exponent as usize);
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|b| b == b'0' || b == b'.') => rest.to_owned(),
        _ => text,
    }
}

/// A figure that has no interval, to three digits: `0.0213`, `1.02`, `314`. What is above zero but below 0.0001 is
/// shown as such, never as 0.
pub fn plain(value: f64) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    if value.abs() < 1e-4 {
        return if value > 0.0 { "<0.0001" } else { ">-0.0001" }.to_owned();
    }
    let exponent = (leading_digit(value) - 2).max(-4);
    let text = rounded(value, exponent.min(0));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A share of 1 as per cent, two digits: `3.1 %`, `48 %`. Neither 0 nor 100 is shown for what only comes near it.
pub fn percent(share: f64) -> String {
    format!("{}{JOINT}%", percent_number(share))
}

/// The same without its sign, for a column that carries it.
pub fn percent_number(share: f64) -> String {
    let hundredths = share * 100.0;
    if !hundredths.is_finite() {
        return NONE.to_owned();
    }
    if hundredths > 0.0 && hundredths < 0.05 {
        return "<0.1".to_owned();
    }
    if (99.5..100.0).contains(&hundredths) {
        return ">99".to_owned();
    }
    if hundredths.abs() < 9.95 {
        let text = format!("{hundredths:.1}");
        return text.strip_suffix(".0").unwrap_or(&text).to_owned();
    }
    format!("{hundredths:.0}")
}

/// A count, in groups of three where it has more than four digits.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    if digits.len() <= 4 {
        return digits;
    }
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(JOINT);
        }
        text.push(digit);
    }
    text
}

/// `one repetition`, `3 repetitions`.
pub fn plural(number: u64, noun: &str) -> String {
    if number == 1 { format!("1{JOINT}{noun}") } else { format!("{}{JOINT}{noun}s", count(number)) }
}

/// A length of wall time for a person who waits: `8 s`, `2 min 05 s`.
pub fn wall_time(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    if whole < 60 { format!("{whole} s") } else { format!("{} min {:02} s", whole / 60, whole % 60) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(median: f64, low: f64, high: f64) -> String {
        Figure::new(&Interval { median, low, high }).line().replace(JOINT, " ")
    }

    #[test]
    fn digits_are_no_finer_than_the_interval() {
        assert_eq!(shown(23.1234, 21.87, 24.37), "23 (22–24)");
        assert_eq!(shown(23.1234, 22.87, 23.41), "23.1 (22.9–23.4)");
        assert_eq!(shown(0.33125, 0.32876, 0.33581), "0.331 (0.329–0.336)");
        assert_eq!(shown(1234.0, 1120.0, 1430.0), "1200 (1100–1400)");
        assert_eq!(shown(1.0, 0.996, 1.031), "1.00 (1.00–1.03)");
    }

    #[test]
    fn an_interval_wider_than_its_median_does_not_round_it_away() {
        assert_eq!(shown(3.0, 0.6, 60.0), "3 (1–60)");
        assert_eq!(shown(0.02, 0.0, 4.0), "0.02 (0.00–4.00)");
    }

    #[test]
    fn a_figure_without_width_has_three_digits_and_no_interval() {
        assert_eq!(shown(57.321, 57.321, 57.321), "57.3");
        assert_eq!(shown(0.0, 0.0, 0.0), "0.00");
    }

    #[test]
    fn however_narrow_the_interval_four_digits_are_the_most() {
        assert_eq!(shown(2.3500004, 2.35, 2.350001), "2.350 (2.350–2.350)");
    }

    #[test]
    fn what_is_not_finite_is_no_number() {
        assert_eq!(shown(f64::NAN, 0.0, 1.0), "–");
        assert_eq!(shown(1.0, 0.5, f64::INFINITY), "1.00 (0.50–∞)");
        assert_eq!((plain(f64::NAN), percent_number(f64::NAN)), ("–".to_owned(), "–".to_owned()));
    }

    #[test]
    fn nothing_above_zero_is_shown_as_zero() {
        assert_eq!(
            ["0", "<0.0001", "0.0213", "1.02", "314", "12\u{a0}346"].map(str::to_owned),
            [plain(0.0), plain(3e-7), plain(0.02134), plain(1.0234), plain(314.15), plain(12345.6)]
        );
        assert_eq!(
            [0.0, 0.0001, 0.031, 0.03, 0.48, 0.9999, 1.0].map(percent_number),
            ["0", "<0.1", "3.1", "3", "48", ">99", "100"]
        );
    }

    #[test]
    fn long_counts_are_grouped_alike_everywhere() {
        assert_eq!([7, 1234, 12345, 1234567].map(count), ["7", "1234", "12\u{a0}345", "1\u{a0}234\u{a0}567"]);
        assert_eq!([plural(1, "repetition"), plural(3, "worker")], ["1\u{a0}repetition", "3\u{a0}workers"]);
        assert_eq!([wall_time(8.4), wall_time(125.0)], ["8 s", "2 min 05 s"]);
    }
}

//! Numbers for comments of a file: plain ASCII, three digits.

use record::Interval;

/// `48.2 million`, `960 thousand`, `12.5`.
pub(super) fn rate(per_second: f64) -> String {
    let (value, unit) = scale(per_second);
    format!("{}{unit}", three_digits(per_second / value))
}

/// `48.2 million (45.1 to 50.3)`.
pub(super) fn spread(rate: Interval) -> String {
    let (value, unit) = scale(rate.median);
    let [median, low, high] = [rate.median, rate.low, rate.high].map(|one| three_digits(one / value));
    format!("{median}{unit} ({low} to {high})")
}

fn scale(value: f64) -> (f64, &'static str) {
    match value {
        _ if value >= 1e9 => (1e9, " billion"),
        _ if value >= 1e6 => (1e6, " million"),
        _ if value >= 1e3 => (1e3, " thousand"),
        _ => (1.0, ""),
    }
}

fn three_digits(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::{rate, spread};
    use record::Interval;

    #[test]
    fn rates_have_three_digits_and_one_unit() {
        assert_eq!(
            [2.535e9, 48.23e6, 960_400.0, 12.53].map(rate),
            ["2.54 billion", "48.2 million", "960 thousand", "12.5"]
        );
        let of = Interval { median: 48.23e6, low: 4.51e6, high: 150.3e6 };
        assert_eq!(spread(of), "48.2 million (4.51 to 150)");
    }
}

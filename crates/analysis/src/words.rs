//! Numbers and lists in sentences.

use record::Interval;

/// A number to three significant digits, or all digits before the point: `0.334`, `2.35`, `41.2`, `1203`.
pub(crate) fn figure(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        s if s >= 100.0 => 0,
        s if s >= 10.0 => 1,
        s if s >= 1.0 => 2,
        s if s >= 0.001 || s == 0.0 => 3,
        _ => return format!("{value:.1e}"),
    };
    format!("{value:.decimals$}")
}

/// `12.3 (interval 11.0 to 14.2)`; an exact figure alone.
pub(crate) fn interval(i: Interval) -> String {
    if i.low == i.high {
        return figure(i.median);
    }
    format!("{} (interval {} to {})", figure(i.median), figure(i.low), figure(i.high))
}

/// A share as a percentage: `12 %`, `0.4 %`.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 10.0 { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

/// `a`, `a and b`, `a, b and c`, each in backticks.
pub(crate) fn list<S: AsRef<str>>(names: &[S]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{}`", n.as_ref())).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

/// `1 block`, `3 blocks`.
pub(crate) fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits() {
        assert_eq!(
            [0.3344, 2.349, 41.21, 1203.4, 0.0, 0.00002].map(figure),
            ["0.334", "2.35", "41.2", "1203", "0.000", "2.0e-5"]
        );
        assert_eq!([0.004, 0.061, 0.45].map(percent), ["0.4 %", "6.1 %", "45 %"]);
    }

    #[test]
    fn lists_read_as_english() {
        assert_eq!(list::<&str>(&[]), "");
        assert_eq!(list(&["a"]), "`a`");
        assert_eq!(list(&["a", "b", "c"]), "`a`, `b` and `c`");
        assert_eq!([count(1, "block"), count(3, "block")], ["1 block", "3 blocks"]);
    }
}

//! Durations, sizes, rates and percentages, written with their units.

use crate::context::Context;
use crate::document::{Node, Value, quoted};
use crate::read;
use crate::refusal::Problem;
use crate::words;
use plan::Nanos;

/// The units of time, and the nanoseconds in one.
pub(crate) const UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// What a duration looks like, for cures.
const DURATION_CURE: &str = "write a number and a unit without a space: \"100ms\", \"20us\", \"100ns\", \"1.5s\"";

/// A duration within bounds.
pub(crate) fn duration(
    context: &mut Context,
    node: &Node,
    key: &str,
    (low, high): (Nanos, Nanos),
    why: &str,
) -> Option<Nanos> {
    let text = match &node.value {
        Value::String(text) => text,
        Value::Integer(_) | Value::Float(_) => {
            let written = context.texts.slice(&node.place).to_owned();
            let fits = |with_unit: &str| parse_duration(with_unit).is_ok_and(|length| (low..=high).contains(&length));
            let cure = with_units(key, &words::shown(&written), ["ms", "us", "s"], fits)
                .unwrap_or_else(|| format!("write a duration from {low} to {high}, such as {key} = \"100ms\": {why}"));
            context.refuse(Problem::at(&node.place, format!("`{key}` has no unit")).label("a bare number").cure(cure));
            return None;
        }
        _ => {
            read::wrong_type(context, node, key, "a duration in quotes", "\"100ms\"");
            return None;
        }
    };
    let problem = match parse_duration(text) {
        Ok(length) if (low..=high).contains(&length) => return Some(length),
        Ok(_) => Problem::at(&node.place, format!("`{key}` cannot be {}", words::shown(text)))
            .label(format!("not within {low} to {high}"))
            .cure(format!("write a duration from {low} to {high}: {why}")),
        Err(why) => Problem::at(&node.place, format!("{} is no duration", quoted(text))).label(why).cure(DURATION_CURE),
    };
    context.refuse(problem);
    None
}

/// The bare number with each unit with which it would be accepted; `None` where it would be with none.
fn with_units(key: &str, number: &str, units: [&str; 3], fits: impl Fn(&str) -> bool) -> Option<String> {
    let written: Vec<String> = units.iter().map(|unit| format!("{number}{unit}")).filter(|text| fits(text)).collect();
    let (first, others) = written.split_first()?;
    let others: Vec<String> = others.iter().map(|text| format!("\"{text}\"")).collect();
    let or = if others.is_empty() { String::new() } else { format!(", or {}", others.join(", ")) };
    Some(format!("write {key} = \"{first}\"{or}"))
}

/// Reads `100ms`, `1.5s`: digits, optionally a point and more digits, then a unit, with nothing between.
pub(crate) fn parse_duration(text: &str) -> Result<Nanos, String> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    if number.is_empty() {
        return Err(if text.starts_with('-') { "negative" } else { "does not begin with a number" }.to_owned());
    }
    if unit.is_empty() {
        return Err("the unit is missing: ns, us, ms, s, min or h".to_owned());
    }
    let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(format!("unknown unit {}: it is ns, us, ms, s, min or h", quoted(unit)));
    };
    let (numerator, denominator) = decimal(number)?;
    let scaled = numerator * u128::from(*factor);
    if !scaled.is_multiple_of(denominator) {
        return Err("finer than a nanosecond, the smallest unit here".to_owned());
    }
    u64::try_from(scaled / denominator).map(Nanos).map_err(|_| "longer than 500 years".to_owned())
}

/// `1.5` as a fraction of whole numbers; at most 18 digits on each side of the point.
fn decimal(number: &str) -> Result<(u128, u128), String> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |part: &str| !part.is_empty() && part.len() <= 18 && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return Err(format!("{} is no decimal number", quoted(number)));
    }
    let parts = (whole.parse::<u128>(), fraction.parse::<u128>());
    let (Ok(whole), Ok(fraction_digits)) = parts else {
        return Err("too long".to_owned());
    };
    let denominator = 10u128.pow(fraction.len() as u32);
    Ok((whole * denominator + fraction_digits, denominator))
}

/// The units of size, and the bytes in one; the largest last.
pub(crate) const SIZES: &[(&str, u64)] = &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// A size in bytes within bounds. Whether it is a whole number of `unit` is the caller's to judge, but no other is
/// advised.
pub(crate) fn bytes(
    context: &mut Context,
    node: &Node,
    key: &str,
    (low, high): (u64, u64),
    unit: u64,
    why: &str,
) -> Option<u64> {
    let text = match &node.value {
        Value::String(text) => text,
        Value::Integer(_) | Value::Float(_) => {
            let written = words::shown(context.texts.slice(&node.place));
            let whole = |bytes: u64| (low..=high).contains(&bytes) && bytes.is_multiple_of(unit);
            let fits = |with_unit: &str| parse_bytes(with_unit).is_ok_and(whole);
            let cure = with_units(key, &written, ["KiB", "MiB", "B"], fits).unwrap_or_else(|| {
                let (low, high) = (shown_bytes(low), shown_bytes(high));
                format!("write a size from {low} to {high}, such as {key} = \"4MiB\": {why}")
            });
            context.refuse(Problem::at(&node.place, format!("`{key}` has no unit")).label("a bare number").cure(cure));
            return None;
        }
        _ => {
            read::wrong_type(context, node, key, "a size in quotes", "\"4MiB\"");
            return None;
        }
    };
    let problem = match parse_bytes(text) {
        Ok(bytes) if (low..=high).contains(&bytes) => return Some(bytes),
        Ok(_) => {
            let (low, high) = (shown_bytes(low), shown_bytes(high));
            Problem::at(&node.place, format!("`{key}` cannot be {}", words::shown(text)))
                .label(format!("not within {low} to {high}"))
                .cure(format!("write a size from {low} to {high}: {why}"))
        }
        Err(why) => Problem::at(&node.place, format!("{} is no size", quoted(text)))
            .label(why)
            .cure("write a whole number and a unit without a space: \"4096B\", \"4KiB\", \"2MiB\", \"1GiB\""),
    };
    context.refuse(problem);
    None
}

/// Reads `4000KiB`: digits, then a unit, with nothing between. Sizes that are counted in thousands are refused: memory
/// comes in powers of two, and half of the readers of `4MB` would be wrong.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    if number.is_empty() {
        return Err(if text.starts_with('-') { "negative" } else { "does not begin with a number" }.to_owned());
    }
    if unit.is_empty() {
        return Err("the unit is missing: B, KiB, MiB or GiB".to_owned());
    }
    if unit.starts_with('.') {
        return Err("not a whole number".to_owned());
    }
    let Some((_, factor)) = SIZES.iter().find(|(name, _)| *name == unit) else {
        return Err(format!("unknown unit {}: it is B, KiB, MiB or GiB", quoted(unit)));
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*factor));
    bytes.ok_or_else(|| "more than any machine has".to_owned())
}

/// A size with the largest unit that leaves a whole number: `4000KiB`.
pub(crate) fn shown_bytes(bytes: u64) -> String {
    let unit = SIZES.iter().rev().find(|(_, factor)| bytes >= *factor && bytes.is_multiple_of(*factor));
    let (name, factor) = unit.unwrap_or(&SIZES[0]);
    format!("{}{name}", bytes / factor)
}

/// The units of a rate, and the passes a second in one.
pub(crate) const RATES: &[(&str, u64)] = &[("/s", 1), ("k/s", 1_000), ("M/s", 1_000_000)];

/// A rate within bounds, both in times a second, as the time from one to the next.
pub(crate) fn rate(context: &mut Context, node: &Node, key: &str, bounds: (u64, u64), why: &str) -> Option<Nanos> {
    let text = match &node.value {
        Value::String(text) => text,
        Value::Integer(_) | Value::Float(_) => {
            let written = words::shown(context.texts.slice(&node.place));
            let fits = |with_unit: &str| parse_rate(with_unit).is_ok_and(|rate| rate.is_within(bounds));
            let cure = with_units(key, &written, ["/s", "k/s", "M/s"], fits)
                .unwrap_or_else(|| format!("write {key} = \"50k/s\": {why}"));
            context.refuse(Problem::at(&node.place, format!("`{key}` has no unit")).label("a bare number").cure(cure));
            return None;
        }
        _ => {
            read::wrong_type(context, node, key, "a rate in quotes", "\"50k/s\"");
            return None;
        }
    };
    let problem = match parse_rate(text) {
        Ok(rate) if rate.is_within(bounds) => return Some(rate.period()),
        Ok(_) => {
            let (low, high) = (shown_rate(bounds.0), shown_rate(bounds.1));
            Problem::at(&node.place, format!("`{key}` cannot be {}", words::shown(text)))
                .label(format!("not within {low} to {high}"))
                .cure(format!("write a rate from {low} to {high}: {why}"))
        }
        Err(why) => Problem::at(&node.place, format!("{} is no rate", quoted(text)))
            .label(why)
            .cure("write a number and a unit without a space: \"500/s\", \"50k/s\", \"1.5M/s\""),
    };
    context.refuse(problem);
    None
}

/// So many times a second, exactly.
struct Rate {
    numerator: u128,
    denominator: u128,
}

impl Rate {
    fn is_within(&self, (low, high): (u64, u64)) -> bool {
        let times = |bound: u64| u128::from(bound) * self.denominator;
        (times(low)..=times(high)).contains(&self.numerator)
    }

    /// The time from one to the next, to the nearest nanosecond; of a rate of at least one a second.
    fn period(&self) -> Nanos {
        let twice = 2_000_000_000 * self.denominator / self.numerator.max(1);
        Nanos(u64::try_from(twice.div_ceil(2)).unwrap_or(u64::MAX))
    }
}

/// Reads `50k/s`: a decimal number, then a unit, with nothing between.
fn parse_rate(text: &str) -> Result<Rate, String> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    if number.is_empty() {
        return Err(if text.starts_with('-') { "negative" } else { "does not begin with a number" }.to_owned());
    }
    if unit.is_empty() {
        return Err("the unit is missing: /s, k/s or M/s".to_owned());
    }
    let Some((_, factor)) = RATES.iter().find(|(name, _)| *name == unit) else {
        return Err(format!("unknown unit {}: it is /s, k/s or M/s", quoted(unit)));
    };
    let (numerator, denominator) = decimal(number)?;
    Ok(Rate { numerator: numerator * u128::from(*factor), denominator })
}

fn shown_rate(times: u64) -> String {
    let unit = RATES.iter().rev().find(|(_, factor)| times >= *factor && times.is_multiple_of(*factor));
    let (name, factor) = unit.unwrap_or(&RATES[0]);
    format!("{}{name}", times / factor)
}

/// A percentage above 0 and below 100, as a share of 1.
pub(crate) fn percentage(context: &mut Context, node: &Node, key: &str) -> Option<f64> {
    let text = match &node.value {
        Value::String(text) => text,
        _ => {
            read::wrong_type(context, node, key, "a percentage in quotes", "\"5%\"");
            return None;
        }
    };
    let plain = |number: &&str| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let number = text.strip_suffix('%').filter(plain).and_then(|number| number.parse::<f64>().ok());
    let problem = match number {
        Some(number) if number > 0.0 && number < 100.0 => return Some(number / 100.0),
        Some(_) => Problem::at(&node.place, format!("`{key}` cannot be {}", quoted(text)))
            .label("not between 0% and 100%")
            .cure("write the width at which a ratio's interval is narrow enough, such as \"5%\""),
        None => Problem::at(&node.place, format!("{} is no percentage", quoted(text)))
            .label("expected a number and %")
            .cure(format!("write {key} = \"5%\"")),
    };
    context.refuse(problem);
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_exact_in_every_unit() {
        let read = |text| parse_duration(text).map(|nanos| nanos.0);
        assert_eq!(read("100ns"), Ok(100));
        assert_eq!(read("20us"), Ok(20_000));
        assert_eq!(read("20µs"), Ok(20_000));
        assert_eq!(read("1.5ms"), Ok(1_500_000));
        assert_eq!(read("0.000000001s"), Ok(1));
        assert_eq!(read("2min"), Ok(120_000_000_000));
        assert_eq!(read("1h"), Ok(3_600_000_000_000));
    }

    #[test]
    fn sizes_are_powers_of_two_and_shown_as_they_are_read() {
        for (text, bytes) in [("4096B", 4_096), ("4000KiB", 4_096_000), ("3MiB", 3 << 20), ("1GiB", 1 << 30)] {
            assert_eq!(parse_bytes(text), Ok(bytes));
            assert_eq!(parse_bytes(&shown_bytes(bytes)), Ok(bytes));
        }
        assert_eq!([4_096, 4_096_000, 1 << 30, 0].map(shown_bytes), ["4KiB", "4000KiB", "1GiB", "0B"]);
        let why = |text| parse_bytes(text).unwrap_err();
        assert_eq!(why("4096"), "the unit is missing: B, KiB, MiB or GiB");
        assert_eq!(why("4MB"), "unknown unit `MB`: it is B, KiB, MiB or GiB");
        assert_eq!(why("1.5MiB"), "not a whole number");
        assert_eq!(why("-4KiB"), "negative");
        assert_eq!(why("KiB"), "does not begin with a number");
        assert_eq!(why("99999999999GiB"), "more than any machine has");
    }

    #[test]
    fn what_is_no_duration_says_why() {
        let why = |text| parse_duration(text).unwrap_err();
        assert_eq!(why("100"), "the unit is missing: ns, us, ms, s, min or h");
        assert_eq!(why("100 ms"), "unknown unit ` ms`: it is ns, us, ms, s, min or h");
        assert_eq!(why("-1ms"), "negative");
        assert_eq!(why(""), "does not begin with a number");
        assert_eq!(why("1..5ms"), "`1..5` is no decimal number");
        assert_eq!(why("1.ms"), "`1.` is no decimal number");
        assert_eq!(why("0.5ns"), "finer than a nanosecond, the smallest unit here");
        assert_eq!(why("999999999999999999h"), "longer than 500 years");
    }
}

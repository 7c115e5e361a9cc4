//! How single values of the command line are read.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Seconds that `advise` may take: in fewer no layout would be measured often enough.
const BUDGET_S: RangeInclusive<u64> = 3..=3600;

/// Seconds that `attach` may watch: in fewer a phase of the watch would see too little.
const WATCHING_S: RangeInclusive<u64> = 1..=3600;

/// `--budget`.
pub(super) fn budget(text: &str) -> Result<Duration, String> {
    seconds(text, BUDGET_S, "60s", "from 3s, in which a few layouts can be measured, to 1h")
}

/// `attach --for`.
pub(super) fn watching_time(text: &str) -> Result<Duration, String> {
    seconds(text, WATCHING_S, "5s", "it must be from 1s to 1h")
}

/// A time of so many seconds.
fn seconds(text: &str, within: RangeInclusive<u64>, example: &str, bounds: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|error| format!("{error}; write {example}, or 2min"))?;
    match (Duration::from_secs(*within.start())..=Duration::from_secs(*within.end())).contains(&time) {
        true => Ok(time),
        false => Err(bounds.to_owned()),
    }
}

/// A name that a type can have in C, C++ and Rust.
pub(super) fn type_name(text: &str) -> Result<String, String> {
    let fits = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
    match fits && begins && text.len() <= 64 {
        true => Ok(text.to_owned()),
        false => {
            Err("a struct's name is of letters, digits and `_`, begins with a letter, and has 64 at most".to_owned())
        }
    }
}

/// `queue.h:12`.
pub(super) fn place(text: &str) -> Result<(String, u64), String> {
    let refused = || "expected a file and a line, such as queue.h:12".to_owned();
    let (file, line) = text.rsplit_once(':').filter(|(file, _)| !file.is_empty()).ok_or_else(refused)?;
    Ok((file.to_owned(), line.parse().map_err(|_| refused())?))
}

/// A number of bytes, `64` or `0x40`.
pub(super) fn offset(text: &str) -> Result<u64, String> {
    let read = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    };
    read.ok_or_else(|| "expected a number of bytes, such as 64 or 0x40".to_owned())
}

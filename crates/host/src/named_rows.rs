//! `key : value` rows, as `/proc/cpuinfo` has them.

/// The value of the first `key : value` row.
pub(crate) fn row<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let named = |line: &'a str| line.split_once(':').filter(|(name, _)| name.trim() == key);
    text.lines().find_map(named).map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
}

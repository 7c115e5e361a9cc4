//! The timeline of an arm as rows, read as it is written, whatever kinds of row it has.
//!
//! A row is an object with a time in it; a list of rows says by its key what they are. What stands around a row (the
//! worker whose rows they are, say) holds for it too.

use crate::export::points::Tag;
use serde_json::{Map, Number, Value};

/// What rows are called, before the key of their list.
const MEASUREMENT: &str = "lab_timeline";

/// Keys under which a row says when it was, without their unit, the first that is there. From the repetition's window's
/// opening on.
const INSTANTS: [&str; 6] = ["start", "begin", "at", "from", "time", "offset"];

/// Units of a time, and how many nanoseconds each is.
const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// Numbers that say whose a row is and not how much there was.
const IDENTITIES: [&str; 5] = ["worker", "block", "repetition", "cpu", "regime"];

/// Words that are long, and differ in every row.
const TEXTS: [&str; 5] = ["why", "cure", "text", "stack", "symbol"];

/// One row.
#[derive(Debug)]
pub(super) struct Row {
    /// What it is of: `lab_timeline_` and the key of its list.
    pub(super) measurement: String,
    /// Whose it is.
    pub(super) tags: Vec<Tag>,
    /// The rest.
    pub(super) figures: Map<String, Value>,
    /// When, after the window's opening.
    pub(super) offset_ns: i64,
}

/// What a timeline holds.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) rows: Vec<Row>,
    /// Parts that are no rows, in words.
    pub(super) unread: Vec<String>,
}

/// The rows of a timeline; none of `null`, which is how an arm without one reads.
pub(super) fn rows(timeline: &Value) -> Rows {
    let mut found = Rows::default();
    match timeline {
        Value::Null => {}
        Value::Object(_) | Value::Array(_) => found.read(timeline, MEASUREMENT, &Map::new()),
        _ => found.unread.push("a timeline that is no list".to_owned()),
    }
    found
}

impl Rows {
    fn read(&mut self, part: &Value, name: &str, around: &Map<String, Value>) {
        match part {
            Value::Array(list) if list.iter().all(Value::is_object) => {
                list.iter().for_each(|element| self.read(element, name, around));
            }
            Value::Object(own) => self.read_object(own, name, around),
            _ => self.unread.push(format!("`{name}`, a list that does not hold rows,")),
        }
    }

    fn read_object(&mut self, own: &Map<String, Value>, name: &str, around: &Map<String, Value>) {
        let mut known = around.clone();
        let (inner, scalars): (Vec<_>, Vec<_>) =
            own.iter().partition(|(_, value)| value.is_array() || value.is_object());
        known.extend(scalars.iter().map(|(key, value)| ((*key).clone(), (*value).clone())));
        match instant_ns(own) {
            Some(offset_ns) => {
                let mut figures = known;
                let tags = take_tags(&mut figures);
                self.rows.push(Row { measurement: name.to_owned(), tags, figures, offset_ns });
                let more = inner.iter().map(|(key, _)| format!("`{key}` of a row of `{name}`"));
                self.unread.extend(more.filter(|what| !self.unread.contains(what)).collect::<Vec<_>>());
            }
            None if inner.is_empty() => {
                let what = format!("a row of `{name}` without a time");
                if !self.unread.contains(&what) {
                    self.unread.push(what);
                }
            }
            None => inner.iter().for_each(|(key, part)| self.read(part, &format!("{MEASUREMENT}_{key}"), &known)),
        }
    }
}

/// When a row was. Of times that are given as a float the part of a nanosecond is cut off.
fn instant_ns(row: &Map<String, Value>) -> Option<i64> {
    INSTANTS.iter().find_map(|stem| {
        UNITS.iter().find_map(|(unit, ns)| {
            let number = row.get(&format!("{stem}_{unit}"))?.as_number()?;
            number.as_i64().and_then(|whole| whole.checked_mul(*ns as i64)).or_else(|| scaled(number, *ns))
        })
    })
}

fn scaled(number: &Number, ns: f64) -> Option<i64> {
    let time_ns = number.as_f64()? * ns;
    // Years away: no time within a run.
    (time_ns.abs() < 1e18).then_some(time_ns as i64)
}

fn take_tags(row: &mut Map<String, Value>) -> Vec<Tag> {
    let identity = |key: &str, value: &Value| match value {
        Value::String(_) => !TEXTS.contains(&key),
        Value::Number(_) => IDENTITIES.contains(&key),
        _ => false,
    };
    let keys: Vec<String> =
        row.iter().filter(|(key, value)| identity(key, value)).map(|(key, _)| key.clone()).collect();
    let taken = keys.into_iter().filter_map(|key| row.remove(&key).map(|value| (key, value)));
    taken
        .map(|(key, value)| match value {
            Value::String(text) => (key, text),
            other => (key, other.to_string()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_know_what_stands_around_them() {
        let found = rows(&json!([{
            "worker": 3, "role": "victim", "bucket_ns": 1_000_000,
            "buckets": [{"start_ms": 4, "max_ns": 9}, {"start_ms": 5.5, "max_ns": 8}],
            "calls": [{"begin_us": 7, "call": "punch", "why": "a long story"}],
        }]));
        assert!(found.unread.is_empty(), "{:?}", found.unread);
        let seen: Vec<(&str, i64)> = found.rows.iter().map(|row| (row.measurement.as_str(), row.offset_ns)).collect();
        let buckets = "lab_timeline_buckets";
        assert_eq!(seen, [(buckets, 4_000_000), (buckets, 5_500_000), ("lab_timeline_calls", 7_000)]);
        let tag = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        for row in &found.rows {
            assert!(row.tags.contains(&tag("worker", "3")) && row.tags.contains(&tag("role", "victim")), "{row:?}");
            assert_eq!(row.figures["bucket_ns"], 1_000_000);
        }
        assert!(found.rows[2].tags.contains(&tag("call", "punch")));
        assert_eq!(found.rows[2].figures["why"], "a long story");
    }

    #[test]
    fn what_is_no_row_is_said_once() {
        let found = rows(&json!({"buckets": [{"max_ns": 1}, {"max_ns": 2}], "ticks": [1, 2, 3]}));
        assert!(found.rows.is_empty());
        assert_eq!(found.unread.len(), 2, "{:?}", found.unread);
        assert!(found.unread[0].contains("`lab_timeline_buckets` without a time"));
        assert_eq!(rows(&json!("none")).unread, ["a timeline that is no list"]);
        assert!(rows(&Value::Null).unread.is_empty());
        assert!(rows(&json!({"at_s": 1e300, "x": 1})).rows.is_empty());
    }
}

//! The timeline of an arm as rows, whatever kinds of row it has.
//!
//! A row is an object with a time in it; a list of rows says by its key what they are. Whose they are (which worker's,
//! say) may stand around them. What else stands there is a row of its own, of the window's opening.

use crate::export::tag::Tag;
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
        Value::Object(_) | Value::Array(_) => found.read(timeline, MEASUREMENT, &[]),
        _ => found.leave_out("a timeline that is no list".to_owned()),
    }
    found
}

impl Rows {
    fn read(&mut self, part: &Value, name: &str, around: &[Tag]) {
        match part {
            Value::Array(list) if list.iter().all(Value::is_object) => {
                list.iter().for_each(|element| self.read(element, name, around));
            }
            Value::Object(own) => self.read_object(own, name, around),
            _ => self.leave_out(format!("`{name}`, a list that does not hold rows,")),
        }
    }

    fn read_object(&mut self, own: &Map<String, Value>, name: &str, around: &[Tag]) {
        let nested = |value: &Value| value.is_array() || value.is_object();
        let mut figures: Map<String, Value> = own.clone();
        figures.retain(|_, value| !nested(value));
        let tags: Vec<Tag> = around.iter().cloned().chain(take_tags(&mut figures)).collect();
        let inner: Vec<(&String, &Value)> = own.iter().filter(|(_, value)| nested(value)).collect();
        match instant_ns(own) {
            None if inner.is_empty() => self.leave_out(format!("a row of `{name}` without a time")),
            None => inner.iter().for_each(|(key, part)| self.read(part, &format!("{MEASUREMENT}_{key}"), &tags)),
            Some(_) => inner.iter().for_each(|(key, _)| self.leave_out(format!("`{key}` of a row of `{name}`"))),
        }
        if instant_ns(own).is_some() || !inner.is_empty() {
            let offset_ns = instant_ns(own).unwrap_or(0);
            self.rows.push(Row { measurement: name.to_owned(), tags, figures, offset_ns });
        }
    }

    /// Notes it once: lists are long, and each element is like the others.
    fn leave_out(&mut self, what: String) {
        if !self.unread.contains(&what) {
            self.unread.push(what);
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
        let found = rows(&json!({"block": 2, "bucket_ns": 1e6, "workers": [{
            "worker": 3, "role": "victim", "calls_left_out": 7,
            "buckets": [{"start_ns": 4e6, "max_ns": 9.5}, {"start_ms": 5.5, "max_ns": 8.0}],
            "calls": [{"begin_us": 7, "step": "punch shared", "why": "a long story"}],
        }]}));
        assert!(found.unread.is_empty(), "{:?}", found.unread);
        let mut seen: Vec<(&str, i64)> =
            found.rows.iter().map(|row| (row.measurement.as_str(), row.offset_ns)).collect();
        seen.sort_unstable();
        let buckets = "lab_timeline_buckets";
        let whole = [("lab_timeline", 0), (buckets, 4_000_000), (buckets, 5_500_000), ("lab_timeline_calls", 7_000)];
        assert_eq!(seen, [&whole[..], &[("lab_timeline_workers", 0)]].concat());
        let tag = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        for row in &found.rows {
            assert!(row.tags.contains(&tag("block", "2")), "{row:?}");
            let of_all = row.measurement == "lab_timeline";
            assert_ne!(row.tags.contains(&tag("worker", "3")) && row.tags.contains(&tag("role", "victim")), of_all);
            assert_eq!(row.figures.contains_key("bucket_ns"), of_all, "{row:?}");
            assert_eq!(row.figures.contains_key("calls_left_out"), row.measurement == "lab_timeline_workers");
        }
        let call = found.rows.iter().find(|row| row.measurement == "lab_timeline_calls").unwrap();
        assert!(call.tags.contains(&tag("step", "punch shared")));
        assert_eq!(call.figures["why"], "a long story");
    }

    #[test]
    fn what_is_no_row_is_said_once() {
        let found = rows(&json!({"buckets": [{"max_ns": 1}, {"max_ns": 2}], "ticks": [1, 2, 3]}));
        assert!(found.rows.iter().all(|row| row.figures.is_empty()));
        assert_eq!(found.unread.len(), 2, "{:?}", found.unread);
        assert!(found.unread[0].contains("`lab_timeline_buckets` without a time"));
        assert!(found.unread[1].contains("`lab_timeline_ticks`"));
        assert_eq!(rows(&json!("none")).unread, ["a timeline that is no list"]);
        assert!(rows(&Value::Null).unread.is_empty());
        assert!(rows(&json!({"at_s": 1e300, "x": 1})).rows.is_empty());
    }
}

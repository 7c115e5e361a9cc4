//! Points as a tidy table: a row for each figure or word of each point.

use crate::export::points::{Field, Point};
use std::io::{self, Write};

/// Tags that a run's points have, in the order of their columns; those that no point has are left out.
const TAGS: [&str; 15] = [
    "run",
    "scenario",
    "host",
    "arm",
    "kind",
    "variant",
    "role",
    "worker",
    "block",
    "regime",
    "lock",
    "lock_kind",
    "counter",
    "machine",
    "line",
];

/// Writes columns `measurement`, `time_ns` (since 1970, UTC), a column for each tag that some point has, `field` and
/// `value`. A cell of a tag that a point does not have is empty.
///
/// # Errors
/// What `out` answers.
pub(crate) fn write(points: &[Point], out: impl Write) -> io::Result<()> {
    table(points, out).map_err(|error| match error.into_kind() {
        // What the system said, by which a closed pipe is told from a full disk.
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    })
}

fn table(points: &[Point], out: impl Write) -> Result<(), csv::Error> {
    let columns = columns(points);
    let mut csv = csv::Writer::from_writer(out);
    let head = ["measurement", "time_ns"].into_iter().chain(columns.iter().copied()).chain(["field", "value"]);
    csv.write_record(head)?;
    for point in points {
        let cell = |column: &&str| point.tags.iter().find(|(name, _)| name == column).map_or("", |(_, value)| value);
        let tags: Vec<&str> = columns.iter().map(cell).collect();
        let time = point.time_ns.to_string();
        for (field, value) in &point.fields {
            let value = text(value);
            let row = [point.measurement.as_str(), &time].into_iter().chain(tags.iter().copied());
            csv.write_record(row.chain([field.as_str(), &value]))?;
        }
    }
    Ok(csv.flush()?)
}

/// The known tags in their order, then the others as they come.
fn columns(points: &[Point]) -> Vec<&str> {
    let mut columns: Vec<&str> = TAGS.to_vec();
    for (name, _) in points.iter().flat_map(|point| &point.tags) {
        if !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    columns.retain(|column| points.iter().any(|point| point.tags.iter().any(|(name, _)| name == column)));
    columns
}

fn text(value: &Field) -> String {
    match value {
        Field::Integer(count) => count.to_string(),
        Field::Float(figure) => figure.to_string(),
        Field::Flag(flag) => flag.to_string(),
        Field::Text(text) => text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn every_field_is_a_row_and_comes_back_as_it_was() {
        let point = |measurement: &str, tag: (&str, &str), fields: Vec<(&str, Field)>| Point {
            measurement: measurement.to_owned(),
            tags: vec![("run".to_owned(), "r".to_owned()), (tag.0.to_owned(), tag.1.to_owned())],
            fields: fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            time_ns: 5,
        };
        let odd = "a, \"b\"\nc";
        let points = [
            point("lab_x", ("sweep_workers", odd), vec![("n", Field::Integer(i64::MAX)), ("ns", Field::Float(1e-9))]),
            point("lab_y", ("arm", "packed"), vec![("why", Field::Text(odd.to_owned()))]),
        ];
        let mut bytes = Vec::new();
        write(&points, &mut bytes).unwrap();
        let mut csv = csv::Reader::from_reader(bytes.as_slice());
        let head = ["measurement", "time_ns", "run", "arm", "sweep_workers", "field", "value"];
        assert_eq!(csv.headers().unwrap().iter().collect::<Vec<_>>(), head);
        let rows: Vec<HashMap<String, String>> = csv.deserialize().collect::<Result<_, _>>().unwrap();
        let cells = |row: usize| head.map(|column| rows[row][column].clone());
        assert_eq!(cells(0), ["lab_x", "5", "r", "", odd, "n", "9223372036854775807"]);
        assert_eq!(cells(1), ["lab_x", "5", "r", "", odd, "ns", "0.000000001"]);
        assert_eq!(cells(2), ["lab_y", "5", "r", "packed", "", "why", odd]);
        assert_eq!(rows.len(), 3);
    }
}

//! Points in InfluxDB's line protocol.
//!
//! # References
//! InfluxDB 1.x and 2.x documentation, "Line protocol reference"; what its parser (`models/points.go`) makes of
//! backslashes, which the reference leaves open.

use crate::export::points::{Field, Point};
use std::fmt::Write;

/// The points, a line each, ended by a newline; times are nanoseconds.
pub(crate) fn lines(points: &[Point]) -> Vec<String> {
    points.iter().map(line).collect()
}

fn line(point: &Point) -> String {
    let mut line = String::new();
    put_name(&mut line, &point.measurement, &[',', ' ']);
    for (name, value) in &point.tags {
        line.push(',');
        put_name(&mut line, name, &[',', '=', ' ']);
        line.push('=');
        put_name(&mut line, value, &[',', '=', ' ']);
    }
    for (nth, (name, value)) in point.fields.iter().enumerate() {
        line.push(if nth == 0 { ' ' } else { ',' });
        put_name(&mut line, name, &[',', '=', ' ']);
        line.push('=');
        put_value(&mut line, value);
    }
    // Writing to a String does not fail.
    let _ = writeln!(line, " {}", point.time_ns);
    line
}

/// A name or a tag's value, with a backslash before what would end it. Two things cannot be written there in any way
/// and are replaced by what looks like them: a control character, such as a newline, by its picture (U+2400 and
/// following), and a backslash, which would take the meaning from what follows it, by the wide one (U+FF3C).
fn put_name(line: &mut String, name: &str, ends: &[char]) {
    for c in name.chars() {
        match c {
            '\\' => line.push('\u{ff3c}'),
            '\u{7f}' => line.push('\u{2421}'),
            '\0'..='\u{1f}' => line.extend(char::from_u32(0x2400 + u32::from(c))),
            c if ends.contains(&c) => line.extend(['\\', c]),
            c => line.push(c),
        }
    }
}

/// A text is kept as it is, newlines included.
fn put_value(line: &mut String, value: &Field) {
    // Writing to a String does not fail.
    let _ = match value {
        Field::Integer(count) => write!(line, "{count}i"),
        Field::Float(figure) => write!(line, "{figure}"),
        Field::Flag(flag) => write!(line, "{flag}"),
        Field::Text(text) => write!(line, "\"{}\"", text.replace('\\', r"\\").replace('"', "\\\"")),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_what_the_protocol_asks_for() {
        let owned = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let field = |name: &str, value: Field| (name.to_owned(), value);
        let point = Point {
            measurement: "lab arm,x=y".to_owned(),
            tags: vec![owned("arm", "a b,c=d\"e\nf\\"), owned("a key", "x")],
            fields: vec![
                field("count", Field::Integer(-3)),
                field("ns", Field::Float(0.1)),
                field("whole", Field::Float(5.0)),
                field("yes", Field::Flag(true)),
                field("why, then", Field::Text("a \"b\" \\ c\nd".to_owned())),
            ],
            time_ns: 7,
        };
        let expected = concat!(
            r"lab\ arm\,x=y,arm=a\ b\,c\=d",
            "\"e\u{240a}f\u{ff3c}",
            r",a\ key=x ",
            r#"count=-3i,ns=0.1,whole=5,yes=true,why\,\ then="a \"b\" \\ c"#,
            "\n",
            "d\" 7\n",
        );
        assert_eq!(line(&point), expected);
    }
}

//! Sound inputs out of shape: small changes, most of which leave a file readable and its values odd.

use crate::NAMES;
use crate::sound::Sound;
use proptest::sample::Index;
use serde_json::{Number, Value};
use std::ops::Range;

/// One change, as numbers that any input gives a meaning to: what kind, where, with what, how much.
pub type Move = (u8, Index, Index, Index);

/// Numbers that a reader mostly takes.
const SMALL: [&str; 12] = ["0", "1", "2", "3", "4", "7", "8", "16", "100", "128", "1000", "2.5"];

/// Numbers that readers trip over.
const NUMBERS: [&str; 22] = [
    "0",
    "1",
    "2",
    "3",
    "-1",
    "63",
    "64",
    "65",
    "255",
    "256",
    "4096",
    "65535",
    "65536",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "99999999999999999999999999999999999999999",
    "0.5",
    "1e308",
    "5e-324",
];

/// Values of a TOML key.
const VALUES: [&str; 24] = [
    "0",
    "-1",
    "1.5",
    "nan",
    "inf",
    "true",
    "[]",
    "{}",
    "''",
    "'$x'",
    "['add']",
    "[[0], [1]]",
    "{ pad = 3 }",
    "{ pad = 64, shift = 8 }",
    "'1h'",
    "'packed'",
    "'worker'",
    "'auto'",
    "99999999999999999999999999999999999999999",
    "{ offsets = { hits = [0, 0] } }",
    "2026-11-29",
    "{ a.b.c = 1 }",
    "'ns_per_op('",
    "'''\nx\n'''",
];

/// Characters that mean something to a reader of text.
const CHARACTERS: [&str; 20] = [
    "[", "]", "[[", "{", "}", "=", ",", ".", "\"", "'", "\n", "#", "$", "\\u001b", "\u{1b}", "\u{202e}", "\r", "\0",
    "µ", "-",
];

/// A text with changes made to it. Lines may come from `others`, texts of the same kind.
pub fn text(sound: &Sound, others: &[Sound], moves: &[Move]) -> Vec<u8> {
    let mut text = lossy(sound);
    for (what, at, with, much) in moves {
        text = match what % 10 {
            0 | 1 => {
                let numbers = runs(&text, |c| c.is_ascii_digit() || c == '.');
                replaced(&text, &numbers, at, pick(if what % 10 == 0 { &SMALL } else { &NUMBERS }, with))
            }
            2 => {
                let quoted = quoted(&text);
                let other = if quoted.is_empty() { String::new() } else { text[with.get(&quoted).clone()].to_owned() };
                replaced(&text, &quoted, at, &other)
            }
            3 => replaced(&text, &quoted(&text), at, &basic(pick(&NAMES, with))),
            4 => {
                let words = runs(&text, |c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
                let other = if words.is_empty() { String::new() } else { text[with.get(&words).clone()].to_owned() };
                replaced(&text, &words, at, &other)
            }
            5 => of_lines(&text, |lines| {
                let at = at.index(lines.len());
                if let Some((key, _)) = lines[at].split_once('=') {
                    lines[at] = format!("{key}= {}", pick(&VALUES, with));
                }
            }),
            6 => of_lines(&text, |lines| _ = lines.remove(at.index(lines.len()))),
            7 => of_lines(&text, |lines| {
                let (from, to) = (at.index(lines.len()), with.index(lines.len()));
                lines.swap(from, to);
            }),
            8 => of_lines(&text, |lines| {
                let other = lossy(with.get(others));
                let other: Vec<&str> = other.lines().collect();
                let at = at.index(lines.len());
                lines.insert(at, if other.is_empty() { String::new() } else { (*much.get(&other)).to_owned() });
            }),
            _ => damaged(&text, at, pick(&CHARACTERS, with), much.index(12)),
        };
    }
    text.into_bytes()
}

fn lossy(sound: &Sound) -> String {
    String::from_utf8_lossy(&sound.bytes).into_owned()
}

fn pick<'a>(from: &[&'a str], with: &Index) -> &'a str {
    from[with.index(from.len())]
}

/// A text as it stands between the quotes of a TOML basic string.
fn basic(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '"' | '\\' => format!("\\{c}"),
            c if c.is_control() => format!("\\u{:04X}", c as u32),
            c => c.to_string(),
        })
        .collect()
}

/// Where characters that fit stand in a row.
fn runs(text: &str, fits: impl Fn(char) -> bool) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, c) in text.char_indices().filter(|(_, c)| fits(*c)) {
        match found.last_mut() {
            Some(run) if run.end == at => run.end += c.len_utf8(),
            _ => found.push(at..at + c.len_utf8()),
        }
    }
    found
}

/// What stands between quotes, line by line.
fn quoted(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut begin = 0;
    for line in text.split_inclusive('\n') {
        let marks: Vec<usize> = line.match_indices('"').map(|(at, _)| begin + at).collect();
        found.extend(marks.chunks_exact(2).map(|pair| pair[0] + 1..pair[1]));
        begin += line.len();
    }
    found
}

fn replaced(text: &str, spans: &[Range<usize>], at: &Index, with: &str) -> String {
    if spans.is_empty() {
        return text.to_owned();
    }
    let span = at.get(spans).clone();
    format!("{}{with}{}", &text[..span.start], &text[span.end..])
}

fn of_lines(text: &str, change: impl FnOnce(&mut Vec<String>)) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if !lines.is_empty() {
        change(&mut lines);
    }
    lines.join("\n") + "\n"
}

fn damaged(text: &str, at: &Index, with: &str, length: usize) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    let from = at.index(characters.len() + 1);
    let to = (from + length).min(characters.len());
    characters.splice(from..to, with.chars());
    characters.into_iter().collect()
}

/// JSON with changes made to it: of eight, six leave a value's type as it was.
pub fn json(sound: &Value, moves: &[Move]) -> Vec<u8> {
    let mut value = sound.clone();
    for (what, at, with, much) in moves {
        let mut left = at.index(count(&value));
        change(&mut value, &mut left, (*what, with, much));
    }
    serde_json::to_vec(&value).expect("values have string keys")
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(count).sum::<usize>(),
        Value::Object(map) => map.values().map(count).sum(),
        _ => 0,
    }
}

/// Goes to the value whose turn it is, depth first, and changes it. Whether it was there.
fn change(value: &mut Value, left: &mut usize, by: (u8, &Index, &Index)) -> bool {
    if *left == 0 {
        bend_value(value, by);
        return true;
    }
    *left -= 1;
    match value {
        Value::Array(list) => list.iter_mut().any(|one| change(one, left, by)),
        Value::Object(map) => map.values_mut().any(|one| change(one, left, by)),
        _ => false,
    }
}

fn bend_value(value: &mut Value, (what, with, much): (u8, &Index, &Index)) {
    match (what % 8, &mut *value) {
        (7, _) => *value = other_type(with),
        (6, Value::Null) => *value = other_type(with),
        (6, _) => *value = Value::Null,
        (_, Value::Number(number)) => *number = odd_number(number, with),
        (_, Value::String(text)) => *text = pick(&NAMES, with).repeat(1 + much.index(64).saturating_sub(60) * 400),
        (_, Value::Bool(flag)) => *flag = !*flag,
        (0, Value::Array(list)) => list.clear(),
        (1, Value::Array(list)) => list.truncate(much.index(list.len() + 1)),
        (2, Value::Array(list)) => list.reverse(),
        // Not without end: a record's length is the sender's to pay.
        (_, Value::Array(list)) if (1..64).contains(&list.len()) => {
            let again = list[with.index(list.len())].clone();
            let times = 1 + much.index(24);
            list.extend(std::iter::repeat_n(again, times));
        }
        (0 | 1, Value::Object(map)) if !map.is_empty() => {
            let key = with.index(map.len());
            let key = map.keys().nth(key).cloned().unwrap_or_default();
            map.remove(&key);
        }
        (_, Value::Object(map)) => _ = map.insert(pick(&NAMES, with).to_owned(), other_type(much)),
        (_, Value::Null) => *value = other_type(with),
        (_, Value::Array(_)) => {}
    }
}

fn other_type(with: &Index) -> Value {
    let values = [
        Value::Null,
        Value::Bool(true),
        Value::from(0_u64),
        Value::from(u64::MAX),
        Value::from(-1),
        Value::from(1e308),
        Value::from(""),
        Value::from(NAMES[1]),
        Value::Array(Vec::new()),
        Value::Object(serde_json::Map::new()),
    ];
    with.get(&values).clone()
}

/// Another number of the same type: whole ones stay whole.
fn odd_number(number: &Number, with: &Index) -> Number {
    const WHOLE: [u64; 12] =
        [0, 1, 2, 63, 64, 4095, 65_536, u32::MAX as u64, 1 << 32, 1 << 53, i64::MAX as u64, u64::MAX];
    const REAL: [f64; 14] = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        1e-9,
        1e9,
        1e18,
        1e300,
        -1e300,
        f64::MAX,
        f64::MIN_POSITIVE,
        5e-324,
        1.0 + f64::EPSILON,
    ];
    match number.is_f64() {
        true => Number::from_f64(*with.get(&REAL)).unwrap_or_else(|| Number::from(0)),
        false if number.as_u64().is_some_and(|n| n <= u64::from(u32::MAX)) => {
            // Where a u32 is wanted, larger ones are refused at the door: most are to come in.
            Number::from(WHOLE[with.index(if with.index(4) == 0 { WHOLE.len() } else { 8 })])
        }
        false => Number::from(*with.get(&WHOLE)),
    }
}

/// Bytes with changes made to them, most of them where a reader looks.
pub fn bytes(sound: &Sound, moves: &[Move]) -> Vec<u8> {
    let mut bytes = sound.bytes.clone();
    for (what, at, with, much) in moves {
        if bytes.is_empty() {
            break;
        }
        let whole = 0..bytes.len();
        let part = if sound.read.is_empty() || what % 16 == 0 { &whole } else { with.get(&sound.read) };
        let part = part.start.min(bytes.len() - 1)..part.end.min(bytes.len());
        let at = part.start + at.index(part.len().max(1));
        match what / 16 {
            0..=5 => {
                bytes[at] = *much.get(&[0, 1, 2, 0x7f, 0x80, 0xfe, 0xff, bytes[at].wrapping_add(1), bytes[at] ^ 0x10])
            }
            6..=7 => put(&mut bytes, at, &u16::to_le_bytes(*much.get(&[0, 1, 8, 0x7fff, 0xff00, 0xffff]))),
            8..=9 => put(&mut bytes, at, &u32::to_le_bytes(*much.get(&[0, 1, 0x7fff_ffff, 0xffff_fff0, u32::MAX]))),
            10..=11 => {
                put(&mut bytes, at, &u64::to_le_bytes(*much.get(&[0, 1, 1 << 31, 1 << 32, 1 << 62, u64::MAX - 8])))
            }
            12 => put(&mut bytes, at, pick(&NAMES, much).as_bytes()),
            13 => {
                let from = much.index(bytes.len());
                let piece = bytes[from..(from + 16).min(bytes.len())].to_vec();
                put(&mut bytes, at, &piece);
            }
            14 => {
                let end = (at + much.index(64)).min(bytes.len());
                bytes[at..end].fill(0);
            }
            _ if much.index(8) == 0 => bytes.truncate(at),
            _ => bytes[at] ^= 1 << much.index(8),
        }
    }
    bytes
}

/// Writes over what stands there, as far as there is room.
fn put(bytes: &mut [u8], at: usize, piece: &[u8]) {
    let end = (at + piece.len()).min(bytes.len());
    bytes[at..end].copy_from_slice(&piece[..end - at]);
}

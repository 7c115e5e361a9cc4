//! The file: its syntax, its tables and their keys.

use super::{printed, unfolded};

#[test]
fn unknown_key_with_a_near_one() {
    let expected = unfolded(
        r#"error: unknown key `windw` in [measure]
 --> lab.toml:5:1
  |
5 | windw = "10ms"
  | ^^^^^ did you mean `window`?
  |
  = help: the keys of [measure] are `window`, `warm_up`, `repetitions`, `precision`, `budget`, `baselines`, \
          `headline`, `events`"#,
    );
    assert_eq!(printed(&[("window =", "windw =")], &[]), expected);
}

#[test]
fn unknown_key_of_another_section() {
    let expected = unfolded(
        r#"error: unknown key `oversubscribe` in [measure]
 --> lab.toml:6:1
  |
6 | oversubscribe = true
  | ^^^^^^^^^^^^^ a key of the top of the file
  |
  = help: TOML counts a key to the [section] above it: move it above the first [section]
  = help: the keys of [measure] are `window`, `warm_up`, `repetitions`, `precision`, `budget`, `baselines`, \
          `headline`, `events`"#,
    );
    assert_eq!(printed(&[("window = \"10ms\"", "window = \"10ms\"\noversubscribe = true")], &[]), expected);
}

#[test]
fn unknown_key_without_a_near_one() {
    let expected = r#"error: unknown key `priority` in [[role]]
  --> lab.toml:29:1
   |
29 | priority = 3
   | ^^^^^^^^ not a key of the schema
   |
   = help: the keys of [[role]] are `name`, `workers`, `threads`, `process`, `cpus`, `rate`, `latency`, `after`, `populate`, `loop`"#;
    assert_eq!(printed(&[("workers = 2", "workers = 2\npriority = 3")], &[]), expected);
}

#[test]
fn unknown_section() {
    let expected = unfolded(
        r#"error: unknown key `locks` in the top of the file
  --> lab.toml:16:2
   |
16 | [locks.m]
   |  ^^^^^ did you mean `lock`?
   |
   = help: the keys of the top of the file are `title`, `question`, `oversubscribe`, `placement`, `measure`, \
           `field`, `lock`, `region`, `variant`, `role`, `sweep`, `expect`"#,
    );
    assert_eq!(printed(&[("[lock.m]", "[locks.m]")], &[]), expected);
}

#[test]
fn unknown_field_key() {
    let expected = r#"error: unknown key `eech` in [field.hits]
  --> lab.toml:11:1
   |
11 | eech = "worker"
   | ^^^^ did you mean `each`?
   |
   = help: the keys of [field.hits] are `type`, `each`, `count`, `at`

error: `hits` is a single value
  --> lab.toml:29:19
   |
29 | loop = ["add hits[me]"]
   |                   ^^ it has no elements
   |
   = help: write "add hits", or make it an array with each = "worker" or count = 4"#;
    assert_eq!(printed(&[("each = \"worker\"", "eech = \"worker\"")], &[]), expected);
}

#[test]
fn measure_is_no_table() {
    let expected = r#"error: `measure` is an integer
 --> lab.toml:4:11
  |
4 | measure = 3
  |           ^ expected a table
  |
  = help: give it a section of its own: [measure]"#;
    assert_eq!(
        printed(&[("[measure]\nwindow = \"10ms\"\nwarm_up = \"2ms\"\nrepetitions = 4", "measure = 3")], &[]),
        expected
    );
}

#[test]
fn role_with_single_brackets() {
    let expected = r#"error: `role` is a table
  --> lab.toml:26:2
   |
26 | [role]
   |  ^^^^ expected a list of tables
   |
   = help: write [[role]] with double brackets, once for each role"#;
    assert_eq!(printed(&[("[[role]]", "[role]")], &[]), expected);
}

#[test]
fn field_without_name() {
    let expected = r#"error: `field` is a list
 --> lab.toml:9:1
  |
9 | [[field]]
  | ^^^^^^^^^ expected a table
  |
  = help: give it a section of its own: [field.NAME]

error: no field is named `hits`
  --> lab.toml:29:14
   |
29 | loop = ["add hits[me]"]
   |              ^^^^ not declared
   |
   = help: the fields are none; declare one with [field.NAME]"#;
    assert_eq!(printed(&[("[field.hits]", "[[field]]")], &[]), expected);
}

#[test]
fn title_with_an_escape() {
    let expected = r#"error: `title` has control characters
 --> lab.toml:1:9
  |
1 | title = "\u001b[31mLab"
  |         ^^^^^^^^^^^^^^^ a terminal would obey them
  |
  = help: use printable text only"#;
    assert_eq!(printed(&[("title = \"Lab\"", "title = \"\\u001b[31mLab\"")], &[]), expected);
}

#[test]
fn syntax_string_not_closed() {
    let expected = r#"error: not valid TOML: invalid basic string, expected `"`
 --> lab.toml:1:13
  |
1 | title = "Lab
  |             ^
  |
  = help: close the text with a double quote"#;
    assert_eq!(printed(&[("title = \"Lab\"", "title = \"Lab")], &[]), expected);
}

#[test]
fn syntax_key_twice() {
    let expected = r#"error: not valid TOML: duplicate key
 --> lab.toml:2:1
  |
2 | title = "What?"
  | ^^^^^ given a second time
  |
  = help: keep one of the two; a list of tables, such as [[variant]], takes double brackets"#;
    assert_eq!(printed(&[("question = \"What?\"", "title = \"What?\"")], &[]), expected);
}

#[test]
fn syntax_text_without_quotes() {
    let expected = r#"error: not valid TOML: string values must be quoted, expected literal string
 --> lab.toml:5:10
  |
5 | window = 10ms
  |          ^^^^
  |
  = help: put text in double quotes"#;
    assert_eq!(printed(&[("window = \"10ms\"", "window = 10ms")], &[]), expected);
}

#[test]
fn several_at_once() {
    let expected = unfolded(
        r#"error: unknown key `windw` in [measure]
 --> lab.toml:5:1
  |
5 | windw = "10ms"
  | ^^^^^ did you mean `window`?
  |
  = help: the keys of [measure] are `window`, `warm_up`, `repetitions`, `precision`, `budget`, `baselines`, `headline`, \
          `events`

error: `workers` cannot be 0
  --> lab.toml:28:11
   |
28 | workers = 0
   |           ^ not within 1 to 1024
   |
   = help: write a number from 1 to 1024: each is a process or a thread, pinned to a CPU"#,
    );
    assert_eq!(
        printed(
            &[("window = \"10ms\"", "windw = \"10ms\""), ("workers = 2", "workers = 0"), ("pad = 64", "pad = 65")],
            &[]
        ),
        expected
    );
}

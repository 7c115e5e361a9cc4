//! Fields, locks and where they are placed.

use super::{printed, unfolded};

#[test]
fn type_unknown() {
    let expected = r#"error: `type` cannot be `i64`
  --> lab.toml:10:8
   |
10 | type = "i64"
   |        ^^^^^ did you mean `u64`?
   |
   = help: `type` is `u8`, `u16`, `u32` or `u64`"#;
    assert_eq!(printed(&[("type = \"u64\"\neach", "type = \"i64\"\neach")], &[]), expected);
}

#[test]
fn type_missing() {
    let expected = r#"error: field `hits` has no type
 --> lab.toml:9:8
  |
9 | [field.hits]
  |        ^^^^ `type` is missing
  |
  = help: add type = "u64", or "u32", "u16", "u8""#;
    assert_eq!(printed(&[("type = \"u64\"\neach", "each")], &[]), expected);
}

#[test]
fn each_and_count() {
    let expected = r#"error: field `hits` has both `each` and `count`
  --> lab.toml:12:1
   |
11 | each = "worker"
   | ---- one element a worker
12 | count = 4
   | ^^^^^ a fixed number of elements
   |
   = help: keep one of the two"#;
    assert_eq!(printed(&[("each = \"worker\"", "each = \"worker\"\ncount = 4")], &[]), expected);
}

#[test]
fn count_of_zero() {
    let expected = r#"error: `count` cannot be 0
  --> lab.toml:11:9
   |
11 | count = 0
   |         ^ not within 1 to 65536
   |
   = help: write a number from 1 to 65536: an array has at least one element; a single value needs no count"#;
    assert_eq!(printed(&[("each = \"worker\"", "count = 0")], &[]), expected);
}

#[test]
fn each_unknown() {
    let expected = r#"error: `each` cannot be `role`
  --> lab.toml:11:8
   |
11 | each = "role"
   |        ^^^^^^ not one of `worker`
   |
   = help: `each` is `worker`"#;
    assert_eq!(printed(&[("each = \"worker\"", "each = \"role\"")], &[]), expected);
}

#[test]
fn at_without_declared() {
    let expected = r#"error: `at` of `hits` is never used
  --> lab.toml:12:6
   |
12 | at = 24
   |      ^^ only placement "declared" looks at it
   |
   = help: give a variant placement = "declared", or leave `at` out"#;
    assert_eq!(printed(&[("each = \"worker\"", "each = \"worker\"\nat = 24")], &[]), expected);
}

#[test]
fn lock_kind_unknown() {
    let expected = |written: &str, label: &str| {
        let marks = "^".repeat(written.len() + 2);
        unfolded(&format!(
            r#"error: `kind` cannot be `{written}`
  --> lab.toml:17:8
   |
17 | kind = "{written}"
   |        {marks} {label}
   |
   = help: `kind` is `pthread`, `pthread-adaptive`, `pthread-robust`, `pthread-pi`, `pthread-spin`, `pthread-rwlock`, \
           `semaphore`, `raw-sync`, `tas`, `ttas`, `ticket`, `mcs`, `clh`, `futex` or `seqlock`"#
        ))
    };
    let kind = |written: &str| printed(&[("\"pthread\"", &format!("\"{written}\""))], &[]);
    assert_eq!(kind("tickets"), expected("tickets", "did you mean `ticket`?"));
    assert_eq!(kind("peterson"), expected("peterson", "no such `kind`"));
}

#[test]
fn field_and_lock_of_one_name() {
    let expected = r#"error: `hits` names a field and a lock
  --> lab.toml:16:7
   |
 9 | [field.hits]
   |        ---- the field
...
16 | [lock.hits]
   |       ^^^^ the lock
   |
   = help: rename one: steps tell them apart by name"#;
    assert_eq!(printed(&[("[lock.m]", "[lock.hits]")], &[]), expected);
}

#[test]
fn field_name_with_hyphen() {
    let expected = r#"error: `grand-total` cannot name a field
  --> lab.toml:13:8
   |
13 | [field.grand-total]
   |        ^^^^^^^^^^^ has a character that names cannot have
   |
   = help: begin with a letter a-z and use only a-z, 0-9 and `_`"#;
    assert_eq!(printed(&[("[field.total]", "[field.grand-total]")], &[]), expected);
}

#[test]
fn pad_no_power_of_two() {
    let expected = r#"error: `pad` cannot be 48
  --> lab.toml:24:21
   |
24 | placement = { pad = 48 }
   |                     ^^ not a power of two
   |
   = help: lines and pages are powers of two: write 32 or 64; a cache line has 64 bytes"#;
    assert_eq!(printed(&[("pad = 64", "pad = 48")], &[]), expected);
}

#[test]
fn pad_too_small() {
    let expected = r#"error: `pad` cannot be 4
  --> lab.toml:24:21
   |
24 | placement = { pad = 4 }
   |                     ^ not within 8 to 4096
   |
   = help: write a number from 8 to 4096: a power of two of bytes that each element gets to itself"#;
    assert_eq!(printed(&[("pad = 64", "pad = 4")], &[]), expected);
}

#[test]
fn pad_alone() {
    let expected = unfolded(
        r#"error: placement `pad` needs a value
  --> lab.toml:24:13
   |
24 | placement = "pad"
   |             ^^^^^ a word alone
   |
   = help: the forms are "packed", "declared", "by-writer", "hot-cold", { pad = 64 }, { shift = 8 } or { offsets = { \
           a = 0, b = [64, 128] } }"#,
    );
    assert_eq!(printed(&[("{ pad = 64 }", "\"pad\"")], &[]), expected);
}

#[test]
fn placement_unknown() {
    let expected = r#"error: `placement` cannot be `by-writter`
  --> lab.toml:24:13
   |
24 | placement = "by-writter"
   |             ^^^^^^^^^^^^ did you mean `by-writer`?
   |
   = help: `placement` is `packed`, `declared`, `by-writer` or `hot-cold`"#;
    assert_eq!(printed(&[("{ pad = 64 }", "\"by-writter\"")], &[]), expected);
}

#[test]
fn placement_with_two_rules() {
    let expected = r#"error: a placement has one rule
  --> lab.toml:24:25
   |
24 | placement = { pad = 64, strategy = "declared" }
   |               ---       ^^^^^^^^ the second
   |               |
   |               the first
   |
   = help: keep one of `strategy`, `pad` and `offsets`; only `shift` stands beside any"#;
    assert_eq!(printed(&[("{ pad = 64 }", "{ pad = 64, strategy = \"declared\" }")], &[]), expected);
}

#[test]
fn shift_too_large() {
    let expected = unfolded(
        r#"error: `shift` cannot be 4096
  --> lab.toml:24:23
   |
24 | placement = { shift = 4096 }
   |                       ^^^^ not within 0 to 4095
   |
   = help: write a number from 0 to 4095: bytes added to a base that is aligned to a page, so that 4096 would be 0 \
           again"#,
    );
    assert_eq!(printed(&[("{ pad = 64 }", "{ shift = 4096 }")], &[]), expected);
}

#[test]
fn offsets_of_unknown_field() {
    let expected = r#"error: no field or lock `hit` to place
  --> lab.toml:24:27
   |
24 | placement = { offsets = { hit = [0, 64] } }
   |                           ^^^ did you mean `hits`?
   |
   = help: the fields and locks are `hits`, `total`, `m`"#;
    assert_eq!(printed(&[("{ pad = 64 }", "{ offsets = { hit = [0, 64] } }")], &[]), expected);
}

#[test]
fn offset_negative() {
    let expected = r#"error: `hits` cannot be -64
  --> lab.toml:24:38
   |
24 | placement = { offsets = { hits = [0, -64] } }
   |                                      ^^^ not within 0 to 16777215
   |
   = help: write a number from 0 to 16777215: bytes from the start of the fields, below 16 MiB"#;
    assert_eq!(printed(&[("{ pad = 64 }", "{ offsets = { hits = [0, -64] } }")], &[]), expected);
}

//! Every refusal as it is printed: what is wrong, where, the text underlined, and the cure.
//!
//! Each test edits one sound scenario; [`printed`] gives the message as a terminal without colour would show it.

const SOUND: &str = r#"title = "Lab"
question = "What?"

[measure]
window = "10ms"
warm_up = "2ms"
repetitions = 4

[field.hits]
type = "u64"
each = "worker"

[field.total]
type = "u64"

[lock.m]
kind = "pthread"

[[variant]]
name = "packed"

[[variant]]
name = "padded"
placement = { pad = 64 }

[[role]]
name = "counter"
workers = 2
loop = ["add hits[me]"]

[[expect]]
claim = "ns_per_op(packed) >= 3 * ns_per_op(padded)"
"#;

/// The message for the sound scenario after `edits` (text and its replacement) and under `flags` (path and value).
fn printed(edits: &[(&str, &str)], flags: &[(&str, &str)]) -> String {
    let mut text = SOUND.to_owned();
    for (from, to) in edits {
        assert!(text.contains(from), "the scenario has no {from:?}");
        text = text.replacen(from, to, 1);
    }
    let flags: Vec<(String, String)> =
        flags.iter().map(|(path, value)| (path.to_string(), value.to_string())).collect();
    scenario::parse_with("lab.toml", &text, &flags).expect_err("refused").render(false)
}

/// A message that is written here with its longest lines folded: `\` ends a line that goes on in the next, without the
/// spaces that begin it.
fn unfolded(text: &str) -> String {
    let mut parts = text.split("\\\n");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |whole, part| whole + part.trim_start_matches(' '))
}

#[test]
fn the_scenario_that_the_others_edit_is_sound() {
    let loaded = scenario::parse("lab.toml", SOUND).unwrap_or_else(|refusal| panic!("{}", refusal.render(false)));
    assert_eq!(loaded.plan.arms.len(), 2);
}

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
fn window_of_zero() {
    let expected = unfolded(
        r#"error: `window` cannot be 0ms
 --> lab.toml:5:10
  |
5 | window = "0ms"
  |          ^^^^^ not within 1ms to 1h
  |
  = help: write a duration from 1ms to 1h: a shorter window holds no two slices of half a millisecond, a longer \
          one is most likely a slip"#,
    );
    assert_eq!(printed(&[("\"10ms\"", "\"0ms\"")], &[]), expected);
}

#[test]
fn window_too_long() {
    let expected = unfolded(
        r#"error: `window` cannot be 2h
 --> lab.toml:5:10
  |
5 | window = "2h"
  |          ^^^^ not within 1ms to 1h
  |
  = help: write a duration from 1ms to 1h: a shorter window holds no two slices of half a millisecond, a longer \
          one is most likely a slip"#,
    );
    assert_eq!(printed(&[("\"10ms\"", "\"2h\"")], &[]), expected);
}

#[test]
fn window_without_unit() {
    let expected = r#"error: `window` has no unit
 --> lab.toml:5:10
  |
5 | window = 10
  |          ^^ a bare number
  |
  = help: write window = "10ms", or "10s""#;
    assert_eq!(printed(&[("\"10ms\"", "10")], &[]), expected);
}

#[test]
fn window_is_a_boolean() {
    let expected = r#"error: `window` is a boolean
 --> lab.toml:5:10
  |
5 | window = true
  |          ^^^^ expected a duration in quotes
  |
  = help: write window = "100ms""#;
    assert_eq!(printed(&[("\"10ms\"", "true")], &[]), expected);
}

#[test]
fn window_with_a_space() {
    let expected = r#"error: `10 ms` is no duration
 --> lab.toml:5:10
  |
5 | window = "10 ms"
  |          ^^^^^^^ unknown unit ` ms`: it is ns, us, ms, s, min or h
  |
  = help: write a number and a unit without a space: "100ms", "20us", "100ns", "1.5s""#;
    assert_eq!(printed(&[("\"10ms\"", "\"10 ms\"")], &[]), expected);
}

#[test]
fn window_with_unknown_unit() {
    let expected = r#"error: `10msec` is no duration
 --> lab.toml:5:10
  |
5 | window = "10msec"
  |          ^^^^^^^^ unknown unit `msec`: it is ns, us, ms, s, min or h
  |
  = help: write a number and a unit without a space: "100ms", "20us", "100ns", "1.5s""#;
    assert_eq!(printed(&[("\"10ms\"", "\"10msec\"")], &[]), expected);
}

#[test]
fn warm_up_negative() {
    let expected = r#"error: `-2ms` is no duration
 --> lab.toml:6:11
  |
6 | warm_up = "-2ms"
  |           ^^^^^^ negative
  |
  = help: write a number and a unit without a space: "100ms", "20us", "100ns", "1.5s""#;
    assert_eq!(printed(&[("\"2ms\"", "\"-2ms\"")], &[]), expected);
}

#[test]
fn repetitions_of_zero() {
    let expected = unfolded(
        r#"error: `repetitions` cannot be 0
 --> lab.toml:7:15
  |
7 | repetitions = 0
  |               ^ not within 1 to 10000
  |
  = help: write a number from 1 to 10000: each is one set of fresh processes; past ten thousand the machine's drift \
          outweighs them"#,
    );
    assert_eq!(printed(&[("repetitions = 4", "repetitions = 0")], &[]), expected);
}

#[test]
fn repetitions_as_word() {
    let expected = r#"error: `repetitions` is a string
 --> lab.toml:7:15
  |
7 | repetitions = "ten"
  |               ^^^^^ expected a whole number or "auto"
  |
  = help: write repetitions = 10, or "auto""#;
    assert_eq!(printed(&[("repetitions = 4", "repetitions = \"ten\"")], &[]), expected);
}

#[test]
fn precision_without_percent() {
    let expected = r#"error: `precision` is a decimal number
 --> lab.toml:7:13
  |
7 | precision = 0.05
  |             ^^^^ expected a percentage in quotes
  |
  = help: write precision = "5%""#;
    assert_eq!(printed(&[("repetitions = 4", "precision = 0.05")], &[]), expected);
}

#[test]
fn precision_out_of_range() {
    let expected = r#"error: `precision` cannot be `100%`
 --> lab.toml:7:13
  |
7 | precision = "100%"
  |             ^^^^^^ not between 0% and 100%
  |
  = help: write the width at which a ratio's interval is narrow enough, such as "5%""#;
    assert_eq!(printed(&[("repetitions = 4", "precision = \"100%\"")], &[]), expected);
}

#[test]
fn baseline_unknown() {
    let expected = r#"error: `baselines` cannot be `sole`
 --> lab.toml:7:14
  |
7 | baselines = ["sole"]
  |              ^^^^^^ did you mean `solo`?
  |
  = help: `baselines` is `solo`, `unshared` or `plain`"#;
    assert_eq!(printed(&[("repetitions = 4", "baselines = [\"sole\"]")], &[]), expected);
}

#[test]
fn headline_unknown() {
    let expected = r#"error: no role is named `countr`
 --> lab.toml:7:12
  |
7 | headline = "countr"
  |            ^^^^^^^^ did you mean `counter`?
  |
  = help: the roles are `counter`"#;
    assert_eq!(printed(&[("repetitions = 4", "headline = \"countr\"")], &[]), expected);
}

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
fn variant_name_empty() {
    let expected = r#"error: `` cannot name a variant
  --> lab.toml:20:8
   |
20 | name = ""
   |        ^^ empty
   |
   = help: begin with a letter a-z and use only a-z, 0-9, `_` and `-`"#;
    assert_eq!(printed(&[("name = \"packed\"", "name = \"\"")], &[]), expected);
}

#[test]
fn variant_name_reserved() {
    let expected = r#"error: `control` cannot name a variant: the run's control arm has that name
  --> lab.toml:23:8
   |
23 | name = "control"
   |        ^^^^^^^^^ reserved
   |
   = help: give it another name"#;
    assert_eq!(printed(&[("name = \"padded\"", "name = \"control\"")], &[]), expected);
}

#[test]
fn variant_name_twice() {
    let expected = r#"error: two variants are named `packed`
  --> lab.toml:23:8
   |
20 | name = "packed"
   |        -------- the first
...
23 | name = "packed"
   |        ^^^^^^^^ the second
   |
   = help: give each its own name"#;
    assert_eq!(printed(&[("name = \"padded\"", "name = \"packed\"")], &[]), expected);
}

#[test]
fn role_without_name() {
    let expected = r#"error: a [[role]] without a name
  --> lab.toml:26:1
   |
26 | [[role]]
   | ^^^^^^^^ `name` is missing
   |
   = help: add name = "…": results and claims call the role by it"#;
    assert_eq!(printed(&[("name = \"counter\"\n", "")], &[]), expected);
}

#[test]
fn role_without_loop() {
    let expected = r#"error: role `counter` has no loop
  --> lab.toml:27:8
   |
27 | name = "counter"
   |        ^^^^^^^^^ `loop` is missing
   |
   = help: give it steps, such as loop = ["add hits[me]"]"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "")], &[]), expected);
}

#[test]
fn role_without_steps() {
    let expected = r#"error: role `counter` has no steps
  --> lab.toml:29:8
   |
29 | loop = []
   |        ^^
   |
   = help: give it steps, such as loop = ["add hits[me]"]"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = []")], &[]), expected);
}

#[test]
fn scenario_without_role() {
    let expected = r#"error: the scenario has no role, so nothing would run
--> lab.toml
 = help: add a [[role]] with a name and a loop, such as loop = ["add hits[me]"]"#;
    assert_eq!(
        printed(&[("[[role]]\nname = \"counter\"\nworkers = 2\nloop = [\"add hits[me]\"]\n", "")], &[]),
        expected
    );
}

#[test]
fn workers_of_zero() {
    let expected = r#"error: `workers` cannot be 0
  --> lab.toml:28:11
   |
28 | workers = 0
   |           ^ not within 1 to 1024
   |
   = help: write a number from 1 to 1024: each is a process or a thread, pinned to a CPU"#;
    assert_eq!(printed(&[("workers = 2", "workers = 0")], &[]), expected);
}

#[test]
fn workers_huge() {
    let expected = r#"error: `workers` cannot be 99999999999999999999
  --> lab.toml:28:11
   |
28 | workers = 99999999999999999999
   |           ^^^^^^^^^^^^^^^^^^^^ not within 1 to 1024
   |
   = help: write a number from 1 to 1024: each is a process or a thread, pinned to a CPU"#;
    assert_eq!(printed(&[("workers = 2", "workers = 99999999999999999999")], &[]), expected);
}

#[test]
fn workers_in_quotes() {
    let expected = r#"error: `workers` is a string
  --> lab.toml:28:11
   |
28 | workers = "2"
   |           ^^^ expected a whole number
   |
   = help: write workers = 2"#;
    assert_eq!(printed(&[("workers = 2", "workers = \"2\"")], &[]), expected);
}

#[test]
fn cpus_unknown() {
    let expected = r#"error: `cpus` cannot be `same_core`
  --> lab.toml:29:8
   |
29 | cpus = "same_core"
   |        ^^^^^^^^^^^ did you mean `same-core`?
   |
   = help: `cpus` is `spread`, `same-core`, `same-llc` or `cross-socket`"#;
    assert_eq!(printed(&[("workers = 2", "workers = 2\ncpus = \"same_core\"")], &[]), expected);
}

#[test]
fn cpus_negative() {
    let expected = r#"error: `cpus` cannot be -1
  --> lab.toml:29:12
   |
29 | cpus = [0, -1]
   |            ^^ not within 0 to 8191
   |
   = help: write a number from 0 to 8191: CPUs as Linux numbers them; `nproc` counts those that are there"#;
    assert_eq!(printed(&[("workers = 2", "workers = 2\ncpus = [0, -1]")], &[]), expected);
}

#[test]
fn cpus_empty() {
    let expected = r#"error: the list of CPUs is empty
  --> lab.toml:29:8
   |
29 | cpus = []
   |        ^^
   |
   = help: list one CPU a worker, or write cpus = "spread""#;
    assert_eq!(printed(&[("workers = 2", "workers = 2\ncpus = []")], &[]), expected);
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

#[test]
fn step_unknown() {
    let expected = unfolded(
        r#"error: unknown step `ad`
  --> lab.toml:29:10
   |
29 | loop = ["ad hits[me]"]
   |          ^^ did you mean `add`?
   |
   = help: the verbs are load, store, bump, add, swap, cas, post, wait, flush, lock, unlock, rlock, runlock, touch, \
           reuse, punch, remove, dontneed, protect, map, unmap, free, work, sleep, pause, fence, yield, die"#,
    );
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [\"ad hits[me]\"]")], &[]), expected);
}

#[test]
fn step_empty() {
    let expected = unfolded(
        r#"error: this step lacks a verb
  --> lab.toml:29:9
   |
29 | loop = [""]
   |         ^^
   |
   = help: a step is a verb and its target, such as "add hits[me]"; the verbs are load, store, bump, add, swap, cas, \
           post, wait, flush, lock, unlock, rlock, runlock, touch, reuse, punch, remove, dontneed, \
           protect, map, unmap, free, work, sleep, pause, fence, yield, die"#,
    );
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [\"\"]")], &[]), expected);
}

#[test]
fn step_not_a_string() {
    let expected = r#"error: `loop` is an integer
  --> lab.toml:29:9
   |
29 | loop = [4]
   |         ^ expected a step in quotes
   |
   = help: write loop = ["add hits[me]"]"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [4]")], &[]), expected);
}

#[test]
fn loop_not_a_list() {
    let expected = r#"error: `loop` is a string
  --> lab.toml:29:8
   |
29 | loop = "add hits[me]"
   |        ^^^^^^^^^^^^^^ expected a list of steps
   |
   = help: write loop = ["add hits[me]"]"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = \"add hits[me]\"")], &[]), expected);
}

#[test]
fn field_unknown() {
    let expected = r#"error: no field is named `hit`
  --> lab.toml:29:14
   |
29 | loop = ["add hit[me]"]
   |              ^^^ did you mean `hits`?
   |
   = help: the fields are `hits`, `total`; declare one with [field.NAME]"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [\"add hit[me]\"]")], &[]), expected);
}

#[test]
fn field_unknown_behind_escapes() {
    let expected = r#"error: no field is named `hit`
  --> lab.toml:29:9
   |
29 | loop = ["add\thit[me]"]
   |         ^^^^^^^^^^^^^^ did you mean `hits`?
   |
   = help: the fields are `hits`, `total`; declare one with [field.NAME]"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [\"add\\thit[me]\"]")], &[]), expected);
}

#[test]
fn array_without_brackets() {
    let expected = r#"error: `hits` is an array
  --> lab.toml:29:14
   |
29 | loop = ["add hits"]
   |              ^^^^ which element?
   |
   = help: write hits[me], hits[next], hits[any], hits[all] or hits[0]"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [\"add hits\"]")], &[]), expected);
}

#[test]
fn scalar_with_brackets() {
    let expected = r#"error: `total` is a single value
  --> lab.toml:29:20
   |
29 | loop = ["add total[me]"]
   |                    ^^ it has no elements
   |
   = help: write "add total", or make it an array with each = "worker" or count = 4"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [\"add total[me]\"]")], &[]), expected);
}

#[test]
fn element_unknown() {
    let expected = r#"error: unknown element `mee`
  --> lab.toml:29:19
   |
29 | loop = ["add hits[mee]"]
   |                   ^^^ did you mean `me`?
   |
   = help: an element is `me`, `next`, `any`, `all` or a number from 0"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [\"add hits[mee]\"]")], &[]), expected);
}

#[test]
fn element_out_of_range() {
    let expected = r#"error: `hits` has no element 2
  --> lab.toml:29:19
   |
29 | loop = ["add hits[2]"]
   |                   ^ it has 2 elements, from 0
   |
   = help: elements are as many as workers of all roles: use a smaller number"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [\"add hits[2]\"]")], &[]), expected);
}

#[test]
fn element_missing() {
    let expected = r#"error: empty brackets
  --> lab.toml:29:19
   |
29 | loop = ["add hits[]"]
   |                   ^ which element?
   |
   = help: write hits[me]"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [\"add hits[]\"]")], &[]), expected);
}

#[test]
fn me_beyond_a_fixed_count() {
    let expected = r#"error: worker 1 has no element in `hits`
  --> lab.toml:29:19
   |
29 | loop = ["add hits[me]"]
   |                   ^^ `hits` has 1 element
   |
   = help: write each = "worker" in place of count, or a larger count"#;
    assert_eq!(printed(&[("each = \"worker\"", "count = 1")], &[]), expected);
}

#[test]
fn bracket_not_closed() {
    let expected = r#"error: this step lacks the closing bracket
  --> lab.toml:29:9
   |
29 | loop = ["add hits[me"]
   |         ^^^^^^^^^^^^^
   |
   = help: write hits[me]"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [\"add hits[me\"]")], &[]), expected);
}

#[test]
fn post_to_all() {
    let expected = r#"error: `post` needs one element, always the same
  --> lab.toml:29:20
   |
29 | loop = ["post hits[all]"]
   |                    ^^^ stands for several
   |
   = help: write `[me]`, `[next]` or a number: a wait must know which word it waits for"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [\"post hits[all]\"]")], &[]), expected);
}

#[test]
fn step_on_a_lock() {
    let expected = r#"error: `m` is a lock, not a field
  --> lab.toml:29:16
   |
29 | loop = ["store m"]
   |                ^ `store` needs a field
   |
   = help: write "lock m" and later "unlock m", or declare a field"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [\"store m\"]")], &[]), expected);
}

#[test]
fn lock_of_a_field() {
    let expected = r#"error: `total` is a field, not a lock
  --> lab.toml:29:15
   |
29 | loop = ["lock total"]
   |               ^^^^^ `lock` needs a lock
   |
   = help: declare a lock with [lock.NAME]; fields take `load`, `store`, `add` and the like"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [\"lock total\"]")], &[]), expected);
}

#[test]
fn lock_unknown() {
    let expected = r#"error: no lock is named `mm`
  --> lab.toml:29:15
   |
29 | loop = ["lock mm"]
   |               ^^ not declared
   |
   = help: the locks are `m`; declare one with [lock.NAME]"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [\"lock mm\"]")], &[]), expected);
}

#[test]
fn step_with_a_tail() {
    let expected = r#"error: unexpected `add` behind the step
  --> lab.toml:29:20
   |
29 | loop = ["add total add total"]
   |                    ^^^ the step ends before it
   |
   = help: write each step as a string of its own"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [\"add total add total\"]")], &[]), expected);
    let bracketed = printed(&[REGION, ("loop = [\"add hits[me]\"]", "loop = [\"touch heap[me]\"]")], &[]);
    assert!(bracketed.ends_with("help: only fields have elements: leave the brackets off `heap`"), "{bracketed}");
}

#[test]
fn work_without_unit() {
    let expected = r#"error: `100` is no duration
  --> lab.toml:29:15
   |
29 | loop = ["work 100"]
   |               ^^^ the unit is missing: ns, us, ms, s, min or h
   |
   = help: write "work 100ns""#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [\"work 100\"]")], &[]), expected);
}

#[test]
fn sleep_too_long() {
    let expected = r#"error: `sleep` cannot take 2s
  --> lab.toml:29:16
   |
29 | loop = ["sleep 2s"]
   |                ^^ not within 1ns to 1s
   |
   = help: a worker looks at the stop word between steps, so none may last longer than a second"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [\"sleep 2s\"]")], &[]), expected);
}

#[test]
fn every_of_zero() {
    let expected = r#"error: `every` cannot be 0
  --> lab.toml:29:16
   |
29 | loop = ["every 0 add total"]
   |                ^ not within 1 to 1000000
   |
   = help: write a number of passes; a larger one might not come up within a window"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [\"every 0 add total\"]")], &[]), expected);
}

#[test]
fn every_without_number() {
    let expected = r#"error: `add` is no number of passes
  --> lab.toml:29:16
   |
29 | loop = ["every add total"]
   |                ^^^ expected a whole number
   |
   = help: write "every 64 add hits[me]": the step runs in one pass of 64"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [\"every add total\"]")], &[]), expected);
}

#[test]
fn target_missing() {
    let expected = r#"error: this step lacks a target
  --> lab.toml:29:9
   |
29 | loop = ["add"]
   |         ^^^^^
   |
   = help: write "add NAME" with a field declared as [field.NAME]"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [\"add\"]")], &[]), expected);
}

#[test]
fn wait_that_nothing_ends() {
    let expected = r#"error: nothing changes `total`, so this wait would never end
  --> lab.toml:29:9
   |
29 | loop = ["wait total"]
   |         ^^^^^^^^^^^^ waits for ever
   |
   = help: let another role `post` `total`"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [\"wait total\"]")], &[]), expected);
}

#[test]
fn pass_longer_than_window() {
    let expected = r#"error: one pass takes at least 12ms, and the window is 10ms
  --> lab.toml:29:8
   |
29 | loop = ["work 6ms", "sleep 6ms"]
   |        ^^^^^^^^^^^^^^^^^^^^^^^^^ no pass would end within it
   |
   = help: shorten `work`, `sleep` and `pause`, or lengthen [measure] window"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [\"work 6ms\", \"sleep 6ms\"]")], &[]), expected);
}

#[test]
fn placeholder_without_value() {
    let expected = r#"error: `$think` has no value
  --> lab.toml:29:15
   |
29 | loop = ["work $think"]
   |               ^^^^^^ a placeholder that nothing fills
   |
   = help: list its values under [sweep]: think = ["10ns", "100ns"]"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [\"work $think\"]")], &[]), expected);
}

#[test]
fn placeholder_with_a_reserved_name() {
    let expected = r#"error: `$shift` has the name of a path that sweeps know
  --> lab.toml:29:15
   |
29 | loop = ["work $shift"]
   |               ^^^^^^ reserved
   |
   = help: choose another name than `workers`, `cpus`, `kind`, `placement`, `shift` or `oversubscribe`"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [\"work $shift\"]")], &[]), expected);
}

#[test]
fn placeholder_with_two_words() {
    let expected = r#"error: `10 ns` cannot stand for `$think`
  --> lab.toml:35:18
   |
35 | think = ["10ns", "10 ns"]
   |                  ^^^^^^^ not one plain word
   |
   = help: a placeholder stands for one word of a step; sweep "role.NAME.loop" to change whole steps"#;
    assert_eq!(
        printed(
            &[
                ("loop = [\"add hits[me]\"]", "loop = [\"work $think\"]"),
                (
                    "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"",
                    "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"\n\n[sweep]\nthink = [\"10ns\", \"10 ns\"]\n"
                )
            ],
            &[]
        ),
        expected
    );
}

#[test]
fn placeholder_value_refused_in_its_arm() {
    let expected = r#"error: `10` is no duration
  --> lab.toml:35:18
   |
29 | loop = ["work $think"]
   |               ------ the step that it fills
...
35 | think = ["10ns", "10"]
   |                  ^^^^ the unit is missing: ns, us, ms, s, min or h
   |
   = help: write "work 100ns""#;
    assert_eq!(
        printed(
            &[
                ("loop = [\"add hits[me]\"]", "loop = [\"work $think\"]"),
                (
                    "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"",
                    "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"\n\n[sweep]\nthink = [\"10ns\", \"10\"]\n"
                )
            ],
            &[]
        ),
        expected
    );
}

#[test]
fn set_of_an_unknown_role() {
    let expected = unfolded(
        r#"error: no path `role.countr.workers` to set
  --> lab.toml:27:1
   |
27 | "role.countr.workers" = 2
   | ^^^^^^^^^^^^^^^^^^^^^ did you mean `role.counter.workers`?
   |
   = help: the paths are `workers`, `cpus`, `kind`, `placement`, `shift`, `oversubscribe`, `role.counter.workers`, \
           `role.counter.threads`, `role.counter.process`, `role.counter.cpus`, `role.counter.rate`, `role.counter.latency`, \
           and 15 more"#,
    );
    assert_eq!(printed(&[("[[role]]", "[variant.set]\n\"role.countr.workers\" = 2\n\n[[role]]")], &[]), expected);
}

#[test]
fn set_of_a_whole_run_key() {
    let expected = r#"error: `measure.repetitions` holds for the whole run
  --> lab.toml:27:1
   |
27 | "measure.repetitions" = 2
   | ^^^^^^^^^^^^^^^^^^^^^ cannot differ between arms
   |
   = help: set it under [measure]; arms can have their own `window`, `warm_up`"#;
    assert_eq!(printed(&[("[[role]]", "[variant.set]\n\"measure.repetitions\" = 2\n\n[[role]]")], &[]), expected);
}

#[test]
fn set_of_the_placement() {
    let expected = r#"error: a variant's placement is a key of its own
  --> lab.toml:27:1
   |
27 | placement = "packed"
   | ^^^^^^^^^ set by another way
   |
   = help: write placement = … under [[variant]], above [variant.set]"#;
    assert_eq!(printed(&[("[[role]]", "[variant.set]\nplacement = \"packed\"\n\n[[role]]")], &[]), expected);
}

#[test]
fn set_twice() {
    let expected = r#"error: `role.counter.workers` is set twice
  --> lab.toml:28:14
   |
27 | workers = 1
   | ------- the first
28 | role.counter.workers = 1
   |              ^^^^^^^ the second
   |
   = help: keep one of the two"#;
    assert_eq!(
        printed(&[("[[role]]", "[variant.set]\nworkers = 1\nrole.counter.workers = 1\n\n[[role]]")], &[]),
        expected
    );
}

#[test]
fn set_to_a_wrong_type() {
    let expected = r#"error: `workers` is a string
  --> lab.toml:27:26
   |
27 | "role.counter.workers" = "two"
   |                          ^^^^^ expected a whole number
   |
   = help: write workers = 2"#;
    assert_eq!(
        printed(&[("[[role]]", "[variant.set]\n\"role.counter.workers\" = \"two\"\n\n[[role]]")], &[]),
        expected
    );
}

#[test]
fn sweep_without_a_list() {
    let expected = r#"error: `workers` is an integer
  --> lab.toml:35:11
   |
35 | workers = 2
   |           ^ expected a list of values
   |
   = help: write workers = [1, 2]"#;
    assert_eq!(
        printed(
            &[(
                "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"",
                "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"\n\n[sweep]\nworkers = 2\n"
            )],
            &[]
        ),
        expected
    );
}

#[test]
fn sweep_of_nothing() {
    let expected = r#"error: the sweep of `workers` is empty
  --> lab.toml:35:11
   |
35 | workers = []
   |           ^^ no value
   |
   = help: list at least one value"#;
    assert_eq!(
        printed(
            &[(
                "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"",
                "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"\n\n[sweep]\nworkers = []\n"
            )],
            &[]
        ),
        expected
    );
}

#[test]
fn sweep_of_a_value_twice() {
    let expected = r#"error: this value stands in the sweep's list twice
  --> lab.toml:35:18
   |
35 | workers = [1, 2, 1]
   |            -     ^ the second
   |            |
   |            the first
   |
   = help: keep one: both would make the same arm"#;
    assert_eq!(
        printed(
            &[(
                "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"",
                "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"\n\n[sweep]\nworkers = [1, 2, 1]\n"
            )],
            &[]
        ),
        expected
    );
}

#[test]
fn sweep_of_an_unknown_path() {
    let expected = unfolded(
        r#"error: no path `worker` to set
  --> lab.toml:35:1
   |
35 | worker = [1, 2]
   | ^^^^^^ did you mean `workers`?
   |
   = help: the paths are `workers`, `cpus`, `kind`, `placement`, `shift`, `oversubscribe`, `role.counter.workers`, \
           `role.counter.threads`, `role.counter.process`, `role.counter.cpus`, `role.counter.rate`, `role.counter.latency`, \
           and 15 more"#,
    );
    assert_eq!(
        printed(
            &[(
                "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"",
                "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"\n\n[sweep]\nworker = [1, 2]\n"
            )],
            &[]
        ),
        expected
    );
}

#[test]
fn sweep_of_a_placement_beside_others() {
    let expected = r#"error: `placement` is swept, and a variant has its own
  --> lab.toml:35:1
   |
24 | placement = { pad = 64 }
   |             ------------ a variant's own
...
35 | placement = ["packed", "declared"]
   | ^^^^^^^^^ the sweep
   |
   = help: leave one out: the arms of a sweep differ in what it lists"#;
    assert_eq!(
        printed(
            &[(
                "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"",
                "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"\n\n\
                 [sweep]\nplacement = [\"packed\", \"declared\"]\n"
            )],
            &[]
        ),
        expected
    );
}

#[test]
fn sweep_with_too_many_arms() {
    let expected = r#"error: the sweep makes 320 arms
  --> lab.toml:34:2
   |
34 | [sweep]
   |  ^^^^^ more than 256
   |
   = help: its lists multiply, and with the variants: shorten them, or split the scenario in several files"#;
    assert_eq!(
        printed(
            &[(
                "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"",
                "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"\n\n\
                 [sweep]\nshift = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]\nworkers = \
                 [1, 2, 3, 4, 5, 6, 7, 8]\n"
            )],
            &[]
        ),
        expected
    );
}

#[test]
fn kind_of_no_lock() {
    let expected = r#"error: `kind` alone means the kind of the only lock
  --> lab.toml:33:1
   |
33 | kind = ["pthread"]
   | ^^^^ this scenario has no lock
   |
   = help: declare one with [lock.NAME]"#;
    assert_eq!(
        printed(
            &[
                ("[lock.m]\nkind = \"pthread\"\n", ""),
                (
                    "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"",
                    "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"\n\n[sweep]\nkind = [\"pthread\"]\n"
                )
            ],
            &[]
        ),
        expected
    );
}

#[test]
fn claim_missing() {
    let expected = r#"error: an [[expect]] without a claim
  --> lab.toml:31:1
   |
31 | [[expect]]
   | ^^^^^^^^^^ `claim` is missing
   |
   = help: a claim reads: metric(arm) >= 3 * metric(arm), or metric(arm) <= 100"#;
    assert_eq!(
        printed(&[("claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"", "when = \"cpus >= 2\"")], &[]),
        expected
    );
}

#[test]
fn claim_of_an_unknown_metric() {
    let expected = unfolded(
        r#"error: unknown metric `ns_per_opp`
  --> lab.toml:32:10
   |
32 | claim = "ns_per_opp(packed) >= 3"
   |          ^^^^^^^^^^ did you mean `ns_per_op`?
   |
   = help: the metrics are ns_per_op, ops_per_second, fairness_jain, contention_solo, contention_unshared, \
           latency_p50_ns, latency_p99_ns, latency_p999_ns, latency_max_ns, batch_p50_ns, batch_p99_ns, \
           batch_p999_ns, batch_max_ns, contended_share, handoffs_per_op, \
           wait_p50_ns, wait_p99_ns, wait_p999_ns, wait_max_ns, hold_p50_ns, hold_p99_ns, hold_p999_ns, hold_max_ns, \
           bytes, and COUNTER_per_op or COUNTER_per_second with a counter of cycles, instructions, stalled_cycles, \
           l1d_loads, l1d_load_misses, transfers_cluster, transfers_local, transfers_remote, transfers_write, \
           transfers_write_remote, l1d_invalidations, upgrades, llc_loads, llc_load_misses, cache_references, \
           cache_misses, dtlb_load_misses, context_switches, context_switches_voluntary, context_switches_involuntary, \
           cpu_migrations, page_faults, page_faults_major, task_clock, futex_calls, tlb_flushes, stolen_ns, \
           throttled_ns, tlb_shootdowns, tlb_flushes_remote, tlb_flushes_local, tlb_flushes_local_mm, \
           tlb_flushes_sent, call_function_interrupts, call_function_single_interrupts, csd_queued, ipis_sent, \
           ipis_sent_mask"#,
    );
    assert_eq!(
        printed(
            &[("claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"", "claim = \"ns_per_opp(packed) >= 3\"")],
            &[]
        ),
        expected
    );
}

#[test]
fn claim_of_an_unknown_counter() {
    let expected = unfolded(
        r#"error: unknown metric `llc_load_miss_per_op`
  --> lab.toml:32:10
   |
32 | claim = "llc_load_miss_per_op(packed) >= 3"
   |          ^^^^^^^^^^^^^^^^^^^^ did you mean `llc_load_misses_per_op`?
   |
   = help: the metrics are ns_per_op, ops_per_second, fairness_jain, contention_solo, contention_unshared, \
           latency_p50_ns, latency_p99_ns, latency_p999_ns, latency_max_ns, batch_p50_ns, batch_p99_ns, \
           batch_p999_ns, batch_max_ns, contended_share, handoffs_per_op, \
           wait_p50_ns, wait_p99_ns, wait_p999_ns, wait_max_ns, hold_p50_ns, hold_p99_ns, hold_p999_ns, hold_max_ns, \
           bytes, and COUNTER_per_op or COUNTER_per_second with a counter of cycles, instructions, stalled_cycles, \
           l1d_loads, l1d_load_misses, transfers_cluster, transfers_local, transfers_remote, transfers_write, \
           transfers_write_remote, l1d_invalidations, upgrades, llc_loads, llc_load_misses, cache_references, \
           cache_misses, dtlb_load_misses, context_switches, context_switches_voluntary, context_switches_involuntary, \
           cpu_migrations, page_faults, page_faults_major, task_clock, futex_calls, tlb_flushes, stolen_ns, \
           throttled_ns, tlb_shootdowns, tlb_flushes_remote, tlb_flushes_local, tlb_flushes_local_mm, \
           tlb_flushes_sent, call_function_interrupts, call_function_single_interrupts, csd_queued, ipis_sent, \
           ipis_sent_mask"#,
    );
    assert_eq!(
        printed(
            &[(
                "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"",
                "claim = \"llc_load_miss_per_op(packed) >= 3\""
            )],
            &[]
        ),
        expected
    );
}

#[test]
fn claim_of_an_unknown_arm() {
    let expected = r#"error: no arm is named `packd`
  --> lab.toml:32:20
   |
32 | claim = "ns_per_op(packd) >= 3"
   |                    ^^^^^ did you mean `packed`?
   |
   = help: the arms are `packed`, `padded`, `control`, `solo:counter`, `unshared:packed`"#;
    assert_eq!(
        printed(
            &[("claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"", "claim = \"ns_per_op(packd) >= 3\"")],
            &[]
        ),
        expected
    );
}

#[test]
fn claim_of_a_baseline_left_out() {
    let expected = r#"error: there will be no arm `solo:counter`
  --> lab.toml:33:41
   |
33 | claim = "ns_per_op(packed) >= ns_per_op(solo:counter)"
   |                                         ^^^^^^^^^^^^ [measure] baselines leaves `solo` out
   |
   = help: the arms are `packed`, `padded`, `control`, `unshared:packed`"#;
    assert_eq!(
        printed(
            &[
                (
                    "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"",
                    "claim = \"ns_per_op(packed) >= ns_per_op(solo:counter)\""
                ),
                ("repetitions = 4", "repetitions = 4\nbaselines = [\"unshared\"]")
            ],
            &[]
        ),
        expected
    );
}

#[test]
fn claim_of_another_variants_baseline() {
    let expected = r#"error: there will be no arm `unshared:padded`
  --> lab.toml:32:20
   |
32 | claim = "ns_per_op(unshared:padded) <= 3"
   |                    ^^^^^^^^^^^^^^^ baselines are made of the first variant alone
   |
   = help: the arms are `packed`, `padded`, `control`, `solo:counter`, `unshared:packed`"#;
    assert_eq!(
        printed(
            &[(
                "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"",
                "claim = \"ns_per_op(unshared:padded) <= 3\""
            )],
            &[]
        ),
        expected
    );
}

#[test]
fn claim_of_an_unknown_role() {
    let expected = r#"error: no role is named `reader`
  --> lab.toml:32:28
   |
32 | claim = "ns_per_op(packed, reader) <= 3"
   |                            ^^^^^^ `ns_per_op` is a metric of a role
   |
   = help: the roles are `counter`"#;
    assert_eq!(
        printed(
            &[("claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"", "claim = \"ns_per_op(packed, reader) <= 3\"")],
            &[]
        ),
        expected
    );
}

#[test]
fn claim_on_two_locks() {
    let expected = r#"error: `contended_share` is a metric of a lock
  --> lab.toml:34:26
   |
34 | claim = "contended_share(packed) <= 0.5"
   |                          ^^^^^^ this scenario has 2 locks
   |
   = help: name the lock behind a comma, as in contended_share(ARM, n)"#;
    assert_eq!(
        printed(
            &[
                (
                    "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"",
                    "claim = \"contended_share(packed) <= 0.5\""
                ),
                ("[lock.m]\n", "[lock.n]\n\n[lock.m]\n")
            ],
            &[]
        ),
        expected
    );
}

#[test]
fn claim_of_equality() {
    let expected = r#"error: unknown relation `==`
  --> lab.toml:32:28
   |
32 | claim = "ns_per_op(packed) == 3"
   |                            ^^ expected a relation
   |
   = help: it is one of >= <= > <; equality is never claimed, since figures are intervals"#;
    assert_eq!(
        printed(
            &[("claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"", "claim = \"ns_per_op(packed) == 3\"")],
            &[]
        ),
        expected
    );
}

#[test]
fn claim_of_two_numbers() {
    let expected = r#"error: a claim needs a metric here
  --> lab.toml:32:10
   |
32 | claim = "3 >= 2"
   |          ^^^^^^ expected a metric
   |
   = help: a claim reads: metric(arm) >= 3 * metric(arm), or metric(arm) <= 100"#;
    assert_eq!(
        printed(&[("claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"", "claim = \"3 >= 2\"")], &[]),
        expected
    );
}

#[test]
fn claim_with_the_factor_behind() {
    let expected = r#"error: unexpected `* 3` behind the claim
  --> lab.toml:32:49
   |
32 | claim = "ns_per_op(packed) >= ns_per_op(padded) * 3"
   |                                                 ^^^ the claim ends before it
   |
   = help: write the factor first: 3 * metric(arm); one claim an [[expect]]"#;
    assert_eq!(
        printed(
            &[(
                "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"",
                "claim = \"ns_per_op(packed) >= ns_per_op(padded) * 3\""
            )],
            &[]
        ),
        expected
    );
}

#[test]
fn claim_not_closed() {
    let expected = r#"error: this bracket is not closed
  --> lab.toml:32:19
   |
32 | claim = "ns_per_op(packed >= 3"
   |                   ^^^^^^^^^^^^ no `)`
   |
   = help: a claim reads: metric(arm) >= 3 * metric(arm), or metric(arm) <= 100"#;
    assert_eq!(
        printed(
            &[("claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"", "claim = \"ns_per_op(packed >= 3\"")],
            &[]
        ),
        expected
    );
}

#[test]
fn claim_of_no_arm() {
    let expected = r#"error: `ns_per_op` lacks its arm
  --> lab.toml:32:20
   |
32 | claim = "ns_per_op >= 3"
   |                    ^ expected (arm)
   |
   = help: write ns_per_op(ARM)"#;
    assert_eq!(
        printed(&[("claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"", "claim = \"ns_per_op >= 3\"")], &[]),
        expected
    );
}

#[test]
fn claim_of_a_bad_number() {
    let expected = r#"error: `-3` is no number to compare with
  --> lab.toml:32:31
   |
32 | claim = "ns_per_op(packed) >= -3"
   |                               ^^ not a number
   |
   = help: write a number of 0 or more, such as 3, 0.95 or 1e6, in the metric's own unit"#;
    assert_eq!(
        printed(
            &[("claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"", "claim = \"ns_per_op(packed) >= -3\"")],
            &[]
        ),
        expected
    );
}

#[test]
fn when_of_an_unknown_fact() {
    let expected = r#"error: unknown fact `llcs` of the host
  --> lab.toml:33:8
   |
33 | when = "llcs >= 2"
   |        ^^^^^^^^^^^ not a fact
   |
   = help: a condition reads: llc_groups >= 2, with cpus, llc_groups, sockets or nodes, of >= <= > <"#;
    assert_eq!(
        printed(
            &[(
                "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"",
                "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"\nwhen = \"llcs >= 2\""
            )],
            &[]
        ),
        expected
    );
}

#[test]
fn when_without_number() {
    let expected = r#"error: `two` is no number to compare with
  --> lab.toml:33:8
   |
33 | when = "cpus >= two"
   |        ^^^^^^^^^^^^^ expected a whole number
   |
   = help: a condition reads: llc_groups >= 2, with cpus, llc_groups, sockets or nodes, of >= <= > <"#;
    assert_eq!(
        printed(
            &[(
                "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"",
                "claim = \"ns_per_op(packed) >= 3 * ns_per_op(padded)\"\nwhen = \"cpus >= two\""
            )],
            &[]
        ),
        expected
    );
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

#[test]
fn flag_out_of_bounds() {
    let expected = r#"error: `workers` cannot be 5000
 |
 | --workers 5000
 |           ^^^^ not within 1 to 1024
 |
 = help: write a number from 1 to 1024: each is a process or a thread, pinned to a CPU"#;
    assert_eq!(printed(&[], &[("workers", "5000")]), expected);
}

#[test]
fn flag_of_wrong_type() {
    let expected = r#"error: `cpus` is an integer
 |
 | --cpus 4
 |        ^ expected `spread`, `same-core`, `same-llc`, `cross-socket`, or a list of CPU numbers
 |
 = help: give the flag a value that a scenario could have: cpus = "spread", or [0, 1]"#;
    assert_eq!(printed(&[], &[("role.counter.cpus", "4")]), expected);
}

#[test]
fn flag_that_is_no_toml() {
    let expected = r#"error: `two` is no value for --workers
 |
 | --workers two
 |           ^^^
 |
 = help: give it a number, a word in quotes, or a list in brackets"#;
    assert_eq!(printed(&[], &[("workers", "two")]), expected);
}

#[test]
fn flag_that_breaks_a_step() {
    let expected = r#"error: `hits` has no element 1
  --> lab.toml:29:19
   |
29 | loop = ["add hits[1]"]
   |                   ^ it has 1 element, from 0
   |
   = help: elements are as many as workers of all roles: use a smaller number"#;
    assert_eq!(printed(&[("loop = [\"add hits[me]\"]", "loop = [\"add hits[1]\"]")], &[("workers", "1")]), expected);
}

#[test]
fn flag_of_an_unknown_role() {
    let expected = unfolded(
        r#"error: no path `role.countr.workers` to set
 |
 | --workers 1
 | ^^^^^^^^^ did you mean `role.counter.workers`?
 |
 = help: the paths are `workers`, `cpus`, `kind`, `placement`, `shift`, `oversubscribe`, `role.counter.workers`, \
         `role.counter.threads`, `role.counter.process`, `role.counter.cpus`, `role.counter.rate`, `role.counter.latency`, \
         and 15 more"#,
    );
    assert_eq!(printed(&[], &[("role.countr.workers", "1")]), expected);
}

#[test]
fn events_that_are_none() {
    let expected = r#"error: unknown modifier `p` of `cycles:p`
 --> lab.toml:8:36
  |
8 | events = ["cache-misses, faults", "cycles:p,r1"]
  |                                    ^^^^^^^^
  |
  = help: a worker counts in user mode (:u), in the kernel (:k) or in both (nothing)"#;
    let events = "repetitions = 4\nevents = [\"cache-misses, faults\", \"cycles:p,r1\"]";
    assert_eq!(printed(&[("repetitions = 4", events)], &[]), expected);
}

#[test]
fn an_event_in_the_list_twice() {
    let expected = r#"error: two events would be called `faults`
 --> lab.toml:8:22
  |
8 | events = "faults,r1, faults"
  |                      ^^^^^^
  |
  = help: keep one, or name them apart with name=, as in cpu/event=0xd1,umask=0x01,name=l1_hits/"#;
    assert_eq!(printed(&[("repetitions = 4", "repetitions = 4\nevents = \"faults,r1, faults\"")], &[]), expected);
}

#[test]
fn an_event_that_every_run_counts() {
    let expected = r#"error: `instructions` is a counter that every run has
 --> lab.toml:8:12
  |
8 | events = ['instructions']
  |            ^^^^^^^^^^^^
  |
  = help: leave it out: it counts user mode; the kernel's share is another event, instructions:k"#;
    assert_eq!(printed(&[("repetitions = 4", "repetitions = 4\nevents = ['instructions']")], &[]), expected);
}

#[test]
fn events_of_the_wrong_type() {
    let expected = r#"error: `events` is an integer
 --> lab.toml:8:11
  |
8 | events = [7]
  |           ^ expected an event of perf's, or several
  |
  = help: write events = ["cache-misses", "cpu/event=0xd1,umask=0x1,name=l1_hits/"]"#;
    assert_eq!(printed(&[("repetitions = 4", "repetitions = 4\nevents = [7]")], &[]), expected);
}

#[test]
fn a_flag_of_events_that_are_none() {
    let expected = r#"error: `cpu/event=1` needs two slashes
 |
 | --events "cpu/event=1"
 |           ^^^^^^^^^^^
 |
 = help: write PMU/term,term=value/"#;
    assert_eq!(printed(&[], &[("measure.events", "\"cpu/event=1\"")]), expected);
}

#[test]
fn claim_on_an_event_without_a_name() {
    let edits = [
        ("repetitions = 4", "repetitions = 4\nevents = [\"cpu/event=1,name=l1_hits/\"]"),
        ("ns_per_op(packed) >= 3 * ns_per_op(padded)", "l1_hit_per_op(packed) >= 3"),
    ];
    let message = printed(&edits, &[]);
    assert!(
        message.contains("did you mean `l1_hits_per_op`?") && message.contains("ipis_sent_mask, l1_hits"),
        "{message}"
    );
    assert!(!message.contains("l1_hits, l1_hits"), "{message}");
}

const REGION: (&str, &str) = ("[lock.m]", "[region.heap]\nsize = \"4MiB\"\n\n[lock.m]");

/// The sound scenario with a region, whose size is this.
fn sized(size: &str) -> String {
    printed(&[("[lock.m]", &format!("[region.heap]\nsize = {size}\n\n[lock.m]"))], &[])
}

#[test]
fn region_that_no_step_names() {
    let expected = r#"error: region `heap` is never used
  --> lab.toml:16:9
   |
16 | [region.heap]
   |         ^^^^ no role names it, so no process would map it
   |
   = help: give a role the step "touch heap", or leave the region out"#;
    assert_eq!(printed(&[REGION], &[]), expected);
}

#[test]
fn region_without_size() {
    let expected = r#"error: region `heap` has no size
  --> lab.toml:16:9
   |
16 | [region.heap]
   |         ^^^^ `size` is missing
   |
   = help: add size = "4MiB""#;
    assert_eq!(printed(&[("[lock.m]", "[region.heap]\n\n[lock.m]")], &[]), expected);
}

#[test]
fn region_size_without_unit() {
    let expected = r#"error: `size` has no unit
  --> lab.toml:17:8
   |
17 | size = 4096
   |        ^^^^ a bare number
   |
   = help: write size = "4096KiB", or "4096B""#;
    assert_eq!(sized("4096"), expected);
    for none in ["0", "4.5", "-1"] {
        assert!(
            sized(none).ends_with(
                "help: write a size from 4KiB to 1GiB, such as size = \"4MiB\": memory of each \
            process that uses it, or of all together"
            ),
            "{}",
            sized(none)
        );
    }
    assert!(sized("5000").ends_with("help: write size = \"5000KiB\""), "no whole pages otherwise: {}", sized("5000"));
    let window = |number: &str| printed(&[("\"10ms\"", number)], &[]);
    assert!(
        window("0").contains("help: write a duration from 1ms to 1h, such as window = \"100ms\""),
        "{}",
        window("0")
    );
    assert!(window("1.5").ends_with("help: write window = \"1.5ms\", or \"1.5s\""), "{}", window("1.5"));
}

#[test]
fn region_size_in_units_of_a_thousand() {
    let expected = r#"error: `4MB` is no size
  --> lab.toml:17:8
   |
17 | size = "4MB"
   |        ^^^^^ unknown unit `MB`: it is B, KiB, MiB or GiB
   |
   = help: write a whole number and a unit without a space: "4096B", "4KiB", "2MiB", "1GiB""#;
    assert_eq!(sized("\"4MB\""), expected);
}

#[test]
fn region_size_out_of_bounds() {
    let expected = r#"error: `size` cannot be 2GiB
  --> lab.toml:17:8
   |
17 | size = "2GiB"
   |        ^^^^^^ not within 4KiB to 1GiB
   |
   = help: write a size from 4KiB to 1GiB: memory of each process that uses it, or of all together"#;
    assert_eq!(sized("\"2GiB\""), expected);
    assert!(sized("\"0KiB\"").starts_with("error: `size` cannot be 0KiB"));
}

#[test]
fn region_of_broken_pages() {
    let expected = r#"error: region `heap` ends in the middle of a page
  --> lab.toml:17:8
   |
17 | size = "6KiB"
   |        ^^^^^^ 6144 bytes are no whole number of pages of 4096
   |
   = help: write a multiple of 4KiB, such as "8KiB""#;
    assert_eq!(sized("\"6KiB\""), expected);
}

#[test]
fn region_of_an_unknown_key() {
    let message = sized("\"4KiB\"\nhuge = \"2MiB\"");
    assert!(message.starts_with("error: unknown key `huge` in [region.heap]"), "{message}");
    assert!(message.contains("the keys of [region.heap] are `size`, `shared`, `pages`"), "{message}");
}

#[test]
fn region_and_field_of_one_name() {
    let expected = r#"error: `hits` names a field and a region
  --> lab.toml:16:9
   |
 9 | [field.hits]
   |        ---- the field
...
16 | [region.hits]
   |         ^^^^ the region
   |
   = help: rename one: steps tell them apart by name"#;
    assert_eq!(printed(&[("[lock.m]", "[region.hits]\nsize = \"4KiB\"\n[lock.m]")], &[]), expected);
}

#[test]
fn touch_of_what_is_no_region() {
    let steps = |steps: &str| printed(&[REGION, ("loop = [\"add hits[me]\"]", &format!("loop = [{steps}]"))], &[]);
    let expected = r#"error: `total` is a field, not a region
  --> lab.toml:32:16
   |
32 | loop = ["touch total"]
   |                ^^^^^ `touch` needs a region
   |
   = help: declare a region, memory in pages, with [region.NAME]"#;
    assert_eq!(steps("\"touch total\""), expected);
    let expected = r#"error: no region is named `haep`
  --> lab.toml:32:16
   |
32 | loop = ["touch haep"]
   |                ^^^^ did you mean `heap`?
   |
   = help: the regions are `heap`; declare one with [region.NAME]"#;
    assert_eq!(steps("\"touch haep\""), expected);
    let expected = r#"error: this step lacks a region
  --> lab.toml:32:9
   |
32 | loop = ["touch"]
   |         ^^^^^^^
   |
   = help: write "touch NAME" with a region declared as [region.NAME]"#;
    assert_eq!(steps("\"touch\""), expected);
}

/// The sound scenario with a region of 1 MiB, of these further keys, whose first role makes these steps.
fn paging(keys: &str, steps: &str) -> String {
    let region = format!("[region.heap]\nsize = \"1MiB\"\n{keys}\n[lock.m]");
    printed(&[("[lock.m]", &region), ("loop = [\"add hits[me]\"]", &format!("loop = [{steps}]"))], &[])
}

#[test]
fn region_of_unknown_pages() {
    let expected = r#"error: `pages` cannot be `2MB`
  --> lab.toml:18:9
   |
18 | pages = "2MB"
   |         ^^^^^ did you mean `2MiB`?
   |
   = help: `pages` is `4KiB`, `transparent` or `2MiB`"#;
    assert_eq!(paging("pages = \"2MB\"", "\"touch heap\""), expected);
    let message = paging("pages = \"2MiB\"", "\"touch heap\"");
    assert!(message.contains("1048576 bytes are no whole number of pages of 2097152"), "{message}");
    assert!(message.ends_with("write a multiple of 2MiB, such as \"2MiB\""), "{message}");
}

#[test]
fn region_that_is_shared_and_transparent() {
    let expected = r#"error: region `heap` is shared, and its pages transparent
  --> lab.toml:19:9
   |
19 | pages = "transparent"
   |         ^^^^^^^^^^^^^ shared memory is reserved before it is mapped, in small pages
   |
   = help: write pages = "2MiB", or leave `shared` out"#;
    assert_eq!(paging("shared = true\npages = \"transparent\"", "\"touch heap\""), expected);
}

#[test]
fn punch_of_private_memory() {
    let expected = r#"error: `punch` does not go with region `heap`
  --> lab.toml:32:16
   |
32 | loop = ["punch heap"]
   |                ^^^^ private memory: there is nobody else to take it from
   |
   = help: write shared = true under [region.heap], or give it back with "dontneed heap""#;
    assert_eq!(paging("", "\"punch heap\""), expected);
    for (keys, steps, label) in [
        ("", "\"remove heap\"", "private memory"),
        ("shared = true", "\"map heap\"", "shared memory: it is there for all processes before the window"),
        ("shared = true", "\"free heap\"", "shared memory"),
        ("pages = \"transparent\"", "\"free heap\"", "`malloc` chooses its pages itself"),
    ] {
        let message = paging(keys, steps);
        assert!(message.contains(label) && message.contains("= help: "), "{message}");
    }
}

#[test]
fn size_of_a_memory_step() {
    let expected = r#"error: `touch` cannot do 2MiB of region `heap`
  --> lab.toml:32:21
   |
32 | loop = ["touch heap 2MiB"]
   |                     ^^^^ not within 4KiB to 1MiB
   |
   = help: write a smaller size, or a larger one under [region.heap]"#;
    assert_eq!(paging("", "\"touch heap 2MiB\""), expected);
    for (step, parts) in [
        ("touch heap 6KiB", ["6KiB end in the middle of a page", "write a multiple of 4KiB"]),
        ("touch heap 0KiB", ["not within 4KiB to 1MiB", "leave the size out for all of the region"]),
        ("touch heap 64KB", ["`64KB` is no size", "unknown unit `KB`"]),
        ("touch heap 64KiB chunk 24KiB", ["64KiB are no whole number of chunks of 24KiB", "a size that divides what"]),
        ("touch heap 64KiB chunk 128KiB", ["cannot do 128KiB", "not within 4KiB to 64KiB"]),
        ("touch heap 96KiB", ["region `heap` is no whole number of 96KiB", "a pass would go across its end"]),
        ("touch heap 192KiB chunk 12KiB", ["no whole number of 12KiB", "a chunk would go across its end"]),
        ("touch heap chunk", ["lacks the size of a chunk", "touch heap chunk 4KiB pause 10us"]),
        ("touch heap chnk 4KiB", ["unexpected `chnk` behind the region", "did you mean `chunk`?"]),
        ("touch heap pause", ["lacks a duration", "touch heap chunk 4KiB pause 10us"]),
        ("touch heap pause 2s", ["`pause` cannot take 2s", "not within 1ns to 1s"]),
        ("touch heap pause 1us chunk 4KiB", ["unexpected `chunk` behind the step", "string of its own"]),
        (
            "touch heap chunk 4KiB pause 100us",
            ["one pass takes at least 25600us", "shorten `work`, `sleep` and `pause`"],
        ),
    ] {
        let message = paging("", &format!("\"{step}\""));
        parts.iter().for_each(|part| assert!(message.contains(part), "no {part} in {message}"));
    }
    let huge = paging("pages = \"2MiB\"\nshared = true", "\"punch heap 4KiB\"").replace("1MiB", "2MiB");
    assert!(huge.contains("no whole number of pages"), "{huge}");
}

#[test]
fn process_of_a_role_that_is_not_before_it() {
    let second = |keys: &str, first: &str| {
        let role = format!("[[role]]\nname = \"culprit\"\n{keys}\nloop = [\"pause\"]\n\n[[expect]]");
        printed(&[("workers = 2", first), ("[[expect]]", &role)], &[])
    };
    let expected = r#"error: role `culprit` cannot join the process of role `countr`
  --> lab.toml:33:11
   |
33 | process = "countr"
   |           ^^^^^^^^ not the role before it
   |
   = help: write process = "counter", or put role `culprit` behind the one that it joins"#;
    assert_eq!(second("process = \"countr\"", "workers = 2"), expected);
    let two = second("process = \"counter\"", "workers = 2");
    assert!(two.contains("role `counter` has 2 processes") && two.contains("give it one: threads = 2"), "{two}");
    let both = second("process = \"counter\"\nworkers = 2\nthreads = 2", "workers = 1");
    assert!(both.contains("leave `threads` out"), "{both}");
    let first = printed(&[("workers = 2", "process = \"counter\"")], &[]);
    assert!(first.contains("there is none before it"), "{first}");
}

#[test]
fn populate_of_what_is_no_region() {
    let populate = |value: &str| {
        let keys = format!("populate = {value}\nloop = [\"touch heap\"]");
        printed(&[REGION, ("loop = [\"add hits[me]\"]", &keys)], &[])
    };
    let expected = r#"error: no region is named `haep`
  --> lab.toml:32:13
   |
32 | populate = ["haep"]
   |             ^^^^^^ did you mean `heap`?
   |
   = help: the regions are `heap`; declare one with [region.NAME]"#;
    assert_eq!(populate("[\"haep\"]"), expected);
    assert!(populate("\"heap\"").contains("`populate` is"), "{}", populate("\"heap\""));
    let twice = populate("[\"heap\", \"heap\"]");
    assert!(twice.starts_with("error: `heap` is named twice") && twice.contains("name each region once"), "{twice}");
}

#[test]
fn region_where_a_field_or_a_lock_is_needed() {
    let steps = |steps: &str| printed(&[REGION, ("loop = [\"add hits[me]\"]", &format!("loop = [{steps}]"))], &[]);
    let expected = r#"error: `heap` is a region, not a field
  --> lab.toml:32:14
   |
32 | loop = ["add heap"]
   |              ^^^^ `add` needs a field
   |
   = help: write "touch heap", or declare a field"#;
    assert_eq!(steps("\"add heap\""), expected);
    let expected = r#"error: `heap` is a region, not a lock
  --> lab.toml:32:15
   |
32 | loop = ["lock heap"]
   |               ^^^^ `lock` needs a lock
   |
   = help: declare a lock with [lock.NAME]; regions take `touch`, `punch` and the like"#;
    assert_eq!(steps("\"lock heap\""), expected);
}

#[test]
fn after_as_long_as_the_window() {
    let expected = r#"error: role `counter` begins 10ms after the window opens, which lasts 10ms
  --> lab.toml:29:9
   |
29 | after = "10ms"
   |         ^^^^^^ it would never work
   |
   = help: make `after` 9ms or shorter, or lengthen [measure] window"#;
    let late = |after: &str| format!("workers = 2\nafter = \"{after}\"");
    assert_eq!(printed(&[("workers = 2", &late("10ms"))], &[]), expected);
    let expected = r#"error: role `counter` begins 9900us after the window opens, which lasts 10ms
  --> lab.toml:29:9
   |
29 | after = "9.9ms"
   |         ^^^^^^^ 100us are left, and figures are made of slices of half a millisecond: two are the least
   |
   = help: make `after` 9ms or shorter, or lengthen [measure] window"#;
    assert_eq!(printed(&[("workers = 2", &late("9.9ms"))], &[]), expected);
    let flagged = printed(&[("workers = 2", &late("9ms"))], &[("measure.window", "\"9.999ms\"")]);
    assert!(flagged.contains("999us are left"), "{flagged}");
    let short = printed(&[("workers = 2", &late("1us"))], &[("measure.window", "\"1ms\"")]);
    assert!(short.contains("help: lengthen [measure] window, or leave `after` out"), "{short}");
    let flagged = printed(&[("workers = 2", "workers = 2\nafter = \"9ms\"")], &[("measure.window", "\"5ms\"")]);
    assert!(
        flagged.starts_with("error: role `counter` begins 9ms after the window opens, which lasts 5ms"),
        "{flagged}"
    );
}

#[test]
fn pass_longer_than_what_after_leaves() {
    let expected = r#"error: one pass takes at least 6ms, and the window is 10ms, of which the first 5ms are over
  --> lab.toml:30:8
   |
30 | loop = ["work 6ms"]
   |        ^^^^^^^^^^^^ no pass would end within it
   |
   = help: shorten `work`, `sleep` and `pause`, or lengthen [measure] window"#;
    let late = ("workers = 2", "workers = 2\nafter = \"5ms\"");
    assert_eq!(printed(&[late, ("loop = [\"add hits[me]\"]", "loop = [\"work 6ms\"]")], &[]), expected);
}

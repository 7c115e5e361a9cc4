//! `[measure]`: times, repetitions, baselines, and the user's events.

use super::{printed, unfolded};

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

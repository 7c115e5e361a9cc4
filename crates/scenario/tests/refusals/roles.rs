//! Variants and roles: names, workers, CPUs, when they begin.

use super::printed;

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

//! Values from the command line.

use super::{printed, unfolded};

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
fn a_flag_of_events_that_are_none() {
    let expected = r#"error: `cpu/event=1` needs two slashes
 |
 | --events "cpu/event=1"
 |           ^^^^^^^^^^^
 |
 = help: write PMU/term,term=value/"#;
    assert_eq!(printed(&[], &[("measure.events", "\"cpu/event=1\"")]), expected);
}

//! Overrides and sweeps.

use super::{printed, unfolded};

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

//! Steps, and what stands in their placeholders.

use super::regions::REGION;
use super::{printed, unfolded};

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

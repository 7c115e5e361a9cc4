//! Regions, and the steps on them.

use super::printed;

pub(super) const REGION: (&str, &str) = ("[lock.m]", "[region.heap]\nsize = \"4MiB\"\n\n[lock.m]");

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

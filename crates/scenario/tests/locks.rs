//! What is refused of locks, of roles that die, and of threads and rates: each with line, column and cure, before
//! anything runs. The first half is found by parsing, the second by binding.

use plan::{Cpu, CpuId, Topology, bind};

fn two_cpus() -> Topology {
    let cpu = |id| Cpu { id: CpuId(id), core: id, llc: 0, node: 0, socket: 0, usable: true };
    Topology { cpus: vec![cpu(0), cpu(1)] }
}

/// The message for a scenario of `kind` locks `m` and `n`, a field, and a second role of these keys and this loop.
fn refused(kind: &str, keys: &str, steps: &str) -> String {
    let text = text(kind, keys, steps);
    match scenario::parse("lab.toml", &text) {
        Err(refusal) => refusal.render(false),
        Ok(loaded) => {
            let error = bind(&loaded.plan, &two_cpus(), 1).expect_err("refused");
            loaded.source.refuse(&error).render(false)
        }
    }
}

/// Keys stand in line 12, steps in line 13 from column 9; they may close their list and go on with other sections.
fn text(kind: &str, keys: &str, steps: &str) -> String {
    format!(
        "[lock.m]\nkind = '{kind}'\n[lock.n]\n[field.x]\ntype = 'u64'\n[[role]]\nname = 'first'\nloop = ['load x']\n\
         [[role]]\nname = 'second'\nworkers = 4\n{keys}\nloop = [{steps}]\n"
    )
}

fn assert_refused(kind: &str, keys: &str, steps: &str, line: u32, column: u32, said: &str, cure: &str) {
    let shown = refused(kind, keys, steps);
    assert!(shown.contains(&format!("--> lab.toml:{line}:{column}\n")), "{shown}");
    assert!(shown.contains(said), "{said}:\n{shown}");
    assert!(shown.contains(&format!("= help: {cure}")), "{cure}:\n{shown}");
}

#[test]
fn timeouts_have_bounds_and_a_spelling() {
    let step = |steps: &str, column, said, cure| assert_refused("pthread", "", steps, 13, column, said, cure);
    let bounds = "a shorter wait would be over before the clock could tell";
    step("'lock m timeout 999ns', 'unlock m'", 25, "`timeout` cannot take 999ns", bounds);
    step("'rlock m timeout 1001ms', 'runlock m'", 26, "not within 1us to 1s", bounds);
    step("'lock m timeout 0ms', 'unlock m'", 25, "`timeout` cannot take 0ns", bounds);
    step("'lock m timeout 0', 'unlock m'", 25, "`0` is no duration", "write \"lock NAME timeout 1ms\"");
    step("'lock m timeout -1ms', 'unlock m'", 25, "`-1ms` is no duration", "write \"lock NAME timeout 1ms\"");
    step("'lock m timeout 5', 'unlock m'", 25, "the unit is missing", "write \"lock NAME timeout 1ms\"");
    step("'rlock m timeout', 'runlock m'", 9, "this step lacks a duration", "write \"rlock NAME timeout 1ms\"");
    step("'lock m timout 1ms', 'unlock m'", 17, "did you mean `timeout`?", "write \"lock NAME timeout 1ms\"");
    step("'lock m', 'unlock m timeout 1ms'", 29, "unexpected `timeout`", "only `lock` and `rlock` wait");
    step("'lock m 1ms', 'unlock m'", 17, "unexpected `1ms` behind the step", "write each step as a string of its own");
    step("'rlok m', 'runlock m'", 10, "did you mean `rlock`?", "the verbs are");
    step("'die m'", 14, "unexpected `m` behind the step", "write each step");
}

#[test]
fn threads_divide_the_workers() {
    let key = |keys: &str, said, cure| assert_refused("pthread", keys, "'load x'", 12, 11, said, cure);
    let cure =
        "`workers` counts the threads of all processes: make `threads` `1`, `2` or `4`, or `workers` a multiple of 3";
    key("threads = 3", "role `second` has 4 workers, and its processes 3 threads each", cure);
    key("threads = 0", "not within 1 to 64", "write a number from 1 to 64");
    key("threads = 65", "not within 1 to 64", "write a number from 1 to 64");
    // Where a point of a sweep does not divide them, its value is at fault.
    let swept = "'load x']\n[sweep]\n'role.second.threads' = [2, 3]\n#";
    let said = "role `second` has 4 workers, and its processes 3 threads each";
    assert_refused("pthread", "", swept, 15, 29, said, cure);
}

#[test]
fn rates_have_units_and_bounds() {
    let key = |keys: &str, said, cure| assert_refused("pthread", keys, "'load x'", 12, 8, said, cure);
    let bounds = "write a rate from 1/s to 10M/s";
    key("rate = '0/s'", "not within 1/s to 10M/s", bounds);
    key("rate = '0.5/s'", "`rate` cannot be 0.5/s", bounds);
    key("rate = '10.1M/s'", "`rate` cannot be 10.1M/s", bounds);
    key("rate = 50", "`rate` has no unit", "write rate = \"50/s\", or \"50k/s\"");
    key("rate = 0", "`rate` has no unit", "write rate = \"50k/s\"");
    key("rate = '50k'", "unknown unit `k`: it is /s, k/s or M/s", "write a number and a unit without a space");
    key("rate = '50'", "the unit is missing", "write a number and a unit without a space");
    key("rate = '1.k/s'", "`1.` is no decimal number", "write a number and a unit without a space");
    key("rate = '-1/s'", "negative", "write a number and a unit without a space");
    key("rate = true", "expected a rate in quotes", "write rate = \"50k/s\"");
    key("rate = '10/s'", "role `second` begins a pass each 100ms, and the window is 100ms", "raise `rate`");
}

#[test]
fn an_open_loop_has_latencies() {
    let cure = "leave `latency` out: `rate` implies it";
    let said = "a role with `rate` records each pass's latency";
    assert_refused("pthread", "latency = false\nrate = '1k/s'", "'load x'", 12, 11, said, cure);
    assert_refused("pthread", "latency = 1", "'load x'", 12, 11, "expected true or false", "write latency = true");
}

#[test]
fn plain_is_the_name_of_an_arm() {
    let text = format!("{}[[variant]]\nname = 'plain'\n", text("pthread", "", "'load x'"));
    let shown = scenario::parse("lab.toml", &text).expect_err("refused").render(false);
    assert!(shown.contains("--> lab.toml:15:8\n") && shown.contains("`plain` cannot name a variant"), "{shown}");
}

#[test]
fn what_is_taken_is_released_once_and_alike() {
    let step = |steps: &str, column, said, cure| assert_refused("pthread-rwlock", "", steps, 13, column, said, cure);
    step("'unlock m'", 9, "releases `m`, which this pass does not hold", "put `lock m` before it");
    step("'runlock m'", 9, "releases `m`, which this pass does not hold", "put `rlock m` before it");
    step("'lock m', 'lock m'", 19, "takes `m`, which this pass holds already", "put `unlock m` before it");
    step("'lock m', 'every 2 lock m'", 19, "would run in some passes only", "lock and unlock in every pass");
    step("'lock m', 'every 2 unlock m'", 19, "would run in some passes only", "lock and unlock in every pass");
    step("'lock mm', 'unlock mm'", 15, "no lock is named `mm`", "the locks are `m`, `n`");
    step("'rlock m', 'runlock mm'", 29, "no lock is named `mm`", "the locks are `m`, `n`");
    step("'lock x', 'unlock x'", 15, "`x` is a field, not a lock", "declare a lock with [lock.NAME]");
    step("'lock m', 'unlock x'", 27, "`x` is a field, not a lock", "declare a lock with [lock.NAME]");
    step("'bump m'", 15, "`m` is a lock, not a field", "write \"lock m\" and later \"unlock m\"");
    step("'rlock m', 'lock m'", 20, "takes `m`, which this pass holds already", "put `runlock m` before it");
    step("'lock m'", 9, "takes `m`, and the pass ends without releasing it", "add `unlock m` to the loop");
    step("'rlock m'", 9, "takes `m`, and the pass ends without releasing it", "add `runlock m` to the loop");
    step("'lock m', 'runlock m'", 19, "but `lock m` took it as its owner", "write `unlock m`");
    step("'rlock m', 'unlock m'", 20, "but `rlock m` took it as its reader", "write `runlock m`");
    step("'lock m timeout 1ms'", 9, "has no `unlock m` behind it", "add `unlock m` to the loop");
}

#[test]
fn a_kind_that_cannot_time_out_is_refused_in_whichever_arm_has_it() {
    let steps = "'lock m timeout 1ms', 'unlock m'";
    let cure = "leave `timeout` out, or use a kind that can: `pthread`,";
    assert_refused("clh", "", steps, 13, 9, "`m` is of kind `clh` in arm `base`, whose waiters cannot leave", cure);
    let swept = format!("{steps}]\n[sweep]\n'lock.m.kind' = ['futex', 'raw-sync']\n#");
    let said = "`m` is of kind `raw-sync` in arm `base@lock.m.kind=raw-sync`";
    assert_refused("pthread", "", &swept, 13, 9, said, cure);
}

#[test]
fn a_sequence_locks_reader_that_writes_is_refused_in_whichever_arm_has_it() {
    let steps = "'rlock m', 'add x', 'runlock m'";
    let cure = "put it behind `runlock m`, take `lock m`, or use `pthread-rwlock`";
    assert_refused("seqlock", "", steps, 13, 20, "step `add x` writes between `rlock m` and `runlock m`", cure);
    let variants = "[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\n[variant.set]\n'lock.m.kind' = 'seqlock'";
    let said = "of kind `seqlock` in arm `b`";
    assert_refused("pthread", "", &format!("{steps}]\n{variants}\n#"), 13, 20, said, cure);
}

#[test]
fn who_dies_does_so_inside_the_window_in_its_last_step() {
    let late = "after = '20ms'";
    let step = |keys, steps: &str, column, said, cure| assert_refused("pthread", keys, steps, 13, column, said, cure);
    step(
        "",
        "'lock m', 'die'",
        19,
        "would end the process in the warm-up",
        "say when the role begins: after = \"20ms\"",
    );
    step("after = '0ms'", "'every 9 die'", 9, "would end the process in the warm-up", "say when the role begins");
    step(late, "'die', 'load x'", 9, "the steps behind it never run", "put it last, or write `every N die`");
    step(late, "'lock m timeout 1ms', 'die'", 9, "has no `unlock m` behind it", "add `unlock m` to the loop");
    step(
        late,
        "'die']\n[measure]\nheadline = 'second'\n#",
        9,
        "leaves no figures, and this role's are the arm's headline",
        "name another role in [measure] headline",
    );
}

#[test]
fn claims_on_who_leaves_no_figures_are_refused() {
    let claiming = |claim: &str| {
        let dying = text("pthread", "after = '20ms'", "'lock m', 'die'");
        let text = format!("{dying}[[expect]]\nclaim = '{claim}'\n");
        scenario::parse("lab.toml", &text).expect_err("refused").render(false)
    };
    let role = claiming("ns_per_op(base, second) <= 1");
    assert!(role.contains("--> lab.toml:15:26\n") && role.contains("role `second` ends its own process"), "{role}");
    let solo = claiming("ns_per_op(solo:second) <= 1");
    assert!(solo.contains("--> lab.toml:15:20\n") && solo.contains("it leaves no figures"), "{solo}");
}

/// Every kind binds with what it can do, and spinning ones also where workers share CPUs: the run tells what that
/// costs.
#[test]
fn every_kind_is_accepted_with_what_it_can_do() {
    for kind in plan::LockKind::ALL {
        let timeout = if kind.times_out() { " timeout 1us" } else { "" };
        let steps = format!("'lock m{timeout}', 'add x', 'unlock m', 'rlock m{timeout}', 'load x', 'runlock m'");
        let text = format!("oversubscribe = true\n{}", text(kind.name(), "threads = 2\nrate = '2k/s'", &steps));
        let loaded = scenario::parse("lab.toml", &text).unwrap_or_else(|refusal| panic!("{}", refusal.render(false)));
        let bound = bind(&loaded.plan, &two_cpus(), 1);
        let bound = bound.unwrap_or_else(|error| panic!("{}", loaded.source.refuse(&error).render(false)));
        assert!(bound.arms.iter().all(|arm| arm.program.is_ok()), "{}", kind.name());
        assert_eq!(bound.arms.iter().any(|arm| arm.arm.name == "plain"), kind.is_tried_first(), "{}", kind.name());
    }
}

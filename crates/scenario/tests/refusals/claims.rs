//! Claims, and the conditions under which they are made.

use super::{printed, unfolded};

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

//! The rules about locks, each firing and not firing.

use crate::testkit::{Bench, Spot, access, acquire, lock_observation, release};
use crate::times::tally;
use plan::{LockKind, Nanos, Op, OpKind};
use record::{Diagnosis, LockObservation, Observation, Reading, Severity};

fn of<'d>(found: &'d [Diagnosis], kind: &str) -> Option<&'d Diagnosis> {
    found.iter().find(|d| d.kind == kind)
}

/// The kinds of a run in which every observation deals with lock `m` so.
fn diagnosed(bench: &mut Bench, dealings: impl Fn(&Observation) -> LockObservation) -> Vec<Diagnosis> {
    bench.at_lock(dealings);
    bench.analyse().diagnosis
}

/// A worker's dealings: contended waits and sampled holds of 100 ms at a lock.
fn dealings(acquisitions: u64, waits: &[u64], contended: u64, holds: &[u64]) -> LockObservation {
    LockObservation {
        contended,
        kept_waits: tally(waits.iter().copied()),
        all_waits: tally(waits.iter().copied()),
        holds: tally(holds.iter().copied()),
        longest_gap_ns: 1e5,
        ..lock_observation("m", acquisitions, &[], &[])
    }
}

fn evidence(one: &Diagnosis, name: &str) -> f64 {
    one.evidence.iter().find(|e| e.name.contains(name)).and_then(|e| e.value).unwrap()
}

/// As two tellers at a pthread mutex are on two virtual CPUs: a fifth waits, some of them asleep, and the lock seldom
/// changes hands.
fn teller(_: &Observation) -> LockObservation {
    let waits: Vec<u64> = [vec![312; 980], vec![4127; 19], vec![190_123]].concat();
    let holds: Vec<u64> = [vec![71; 990], vec![148; 9], vec![9_203]].concat();
    LockObservation {
        handoffs: 60_000,
        longest_run: 48_123,
        longest_gap_ns: 4e6,
        ..dealings(900_000, &waits, 180_000, &holds)
    }
}

#[test]
fn two_tellers_at_a_mutex_are_no_case() {
    let spots = vec![Spot::lock("m", 0, &[0, 1]), Spot::data("balance", 64, &[0, 1], &[])];
    let mut bench = Bench::new(&["together", "apart"]).with_lock("m");
    for arm in ["together", "apart", "control"] {
        bench = bench.with_layout(arm, spots.clone());
    }
    bench.run(10, |arm, block| (if arm == "apart" { 108.0 } else { 110.0 }) + f64::from(block % 3));
    let found = diagnosed(&mut bench, teller);
    assert_eq!(found.iter().map(|d| d.kind.as_str()).collect::<Vec<_>>(), ["none"]);
}

/// `fast` waits 100 µs at a time for `slow`, which holds for as long; in `short` it does not.
fn slow_holder() -> Bench {
    let mut bench = Bench::with_roles(&["long", "short"], &["fast", "slow"]).with_lock("m");
    bench.run(10, |arm, _| if arm == "short" { 1000.0 } else { 4000.0 });
    bench
}

fn slow_or_fast(o: &Observation) -> LockObservation {
    match (o.role.as_str(), o.arm.as_str()) {
        ("slow", "short") => dealings(700, &[90; 20], 20, &[200; 12]),
        ("slow", _) => dealings(700, &[90; 20], 20, &[100_000; 12]),
        (_, "short") => dealings(100_000, &[150; 600], 600, &[80; 1600]),
        _ => dealings(30_000, &[&[90; 100][..], &[98_000; 700][..]].concat(), 800, &[80; 500]),
    }
}

#[test]
fn one_role_that_holds_long_is_named_with_its_share_and_its_cure() {
    let found = diagnosed(&mut slow_holder(), slow_or_fast);
    let one = of(&found, "long_hold").unwrap();
    assert_eq!((one.roles.as_slice(), one.fields.as_slice()), (&["slow".to_owned()][..], &["m".to_owned()][..]));
    assert_eq!(one.arms, ["long", "control"].map(str::to_owned)[..1]);
    assert!(one.text.contains("`slow` holds `m` for 100") && one.text.contains("p50"), "{}", one.text);
    assert!(evidence(one, "share of all waiting") > 90.0, "{:?}", one.evidence);
    let computed = one.evidence.iter().filter(|e| e.source.starts_with("modelled, "));
    assert_eq!(computed.count(), 2, "the share and the cost are estimates: {:?}", one.evidence);
    assert!(one.evidence.iter().all(|e| e.source == "measured" || e.source.starts_with("modelled, ")));
    let gain = one.expected_gain.as_ref().unwrap();
    assert_eq!((gain.arm.as_str(), gain.ratio.median), ("short", 4.0));
    assert_eq!(one.severity, Severity::High, "fast loses 70 of its 100 ms");
}

#[test]
fn long_holds_that_explain_little_of_the_waiting_are_not_its_cause() {
    let rare = |o: &Observation| match o.role.as_str() {
        // One long hold in the window, beside 70 ms of waiting.
        "slow" => dealings(12, &[90; 2], 2, &[&[80; 11][..], &[100_000][..]].concat()),
        _ => dealings(30_000, &[&[90; 100][..], &[98_000; 700][..]].concat(), 800, &[80; 500]),
    };
    assert_eq!(of(&diagnosed(&mut slow_holder(), rare), "long_hold"), None);
    let alike = |_: &Observation| dealings(1000, &[98_000; 700], 700, &[100_000; 16]);
    assert_eq!(of(&diagnosed(&mut slow_holder(), alike), "long_hold"), None, "holds that are all alike: a busy lock");
    // 10 ns where the data are in the owner's cache, 300 where they come from another's.
    let fetched = |o: &Observation| {
        let holds = if o.role == "slow" { [[10; 3].as_slice(), &[300; 15]].concat() } else { vec![10; 18] };
        dealings(200_000, &[[150; 900].as_slice(), &[600; 100]].concat(), 60_000, &holds)
    };
    assert_eq!(of(&diagnosed(&mut slow_holder(), fetched), "long_hold"), None, "a line's way is no long hold");
}

/// A lone role of which one hold in fifty is long.
#[test]
fn a_role_alone_can_hold_long_now_and_then() {
    let mut bench = Bench::new(&["a"]).with_lock("m");
    bench.run(10, |_, _| 5000.0);
    let holds: Vec<u64> = [vec![100; 980], vec![100_000; 20]].concat();
    let found =
        diagnosed(&mut bench, |_| dealings(20_000, &[&[90; 400][..], &[80_000; 390][..]].concat(), 790, &holds));
    let one = of(&found, "long_hold").unwrap();
    assert_eq!((one.roles.as_slice(), one.expected_gain.as_ref()), (&["counter".to_owned()][..], None));
    assert!(one.text.contains("p99"), "{}", one.text);
}

/// All wait, nobody holds: each acquisition is a handoff. In `barging` hardly any is.
fn queued(wait_ns: u64, hold_ns: u64) -> impl Fn(&Observation) -> LockObservation {
    move |o| match o.arm.as_str() {
        "barging" => LockObservation { handoffs: 10_000, ..dealings(600_000, &[300; 600], 60_000, &[20; 900]) },
        _ => LockObservation {
            handoffs: 190_000,
            ..dealings(200_000, &vec![wait_ns; 900], 198_000, &vec![hold_ns; 900])
        },
    }
}

/// A lock of that kind in a queue, and one of `pthread` that is taken again. So many context switches were asked for.
fn two_kinds(queueing: LockKind, switches: Option<u64>) -> Bench {
    let kind = move |arm: &str| if arm == "barging" { LockKind::Pthread } else { queueing };
    let mut bench = Bench::new(&["queue", "barging"]).with_lock_kinds("m", kind);
    bench.run(10, |arm, _| if arm == "barging" { 160.0 } else { 500.0 });
    for o in &mut bench.observations {
        let reading = switches.map(|value| Reading::Counted { value });
        o.counters.extend(reading.map(|reading| ("context_switches_voluntary".to_owned(), reading)));
    }
    bench
}

/// The kinds of what is found where each is passed on after a hold of 20 ns.
fn passing_on(kind: LockKind, switches: Option<u64>) -> Vec<String> {
    let found = diagnosed(&mut two_kinds(kind, switches), queued(400, 20));
    found.into_iter().map(|d| d.kind).collect()
}

#[test]
fn sleepers_that_a_hardly_held_lock_is_passed_to_are_a_convoy() {
    let found = diagnosed(&mut two_kinds(LockKind::PthreadPi, Some(150_000)), queued(400, 20));
    let one = of(&found, "convoy").unwrap();
    assert_eq!(one.arms, ["queue"]);
    assert!(evidence(one, "time that `m` is held") < 10.0);
    assert!((evidence(one, "sleeps for each contended") - 0.758).abs() < 0.001, "150 of 198 thousand");
    assert_eq!(one.expected_gain.as_ref().unwrap().arm, "barging");
    assert!(one.text.contains("99 %") && one.text.contains("400 ns") && one.text.contains("woken"), "{}", one.text);
}

/// Strict order makes every release a handoff: that is no convoy, but it has its price.
#[test]
fn spinners_that_a_hardly_held_lock_is_passed_to_are_a_costly_handoff() {
    let found = diagnosed(&mut two_kinds(LockKind::Mcs, Some(0)), queued(400, 20));
    assert_eq!(of(&found, "convoy"), None);
    let one = of(&found, "costly_handoff").unwrap();
    assert_eq!((one.arms.as_slice(), one.severity), (&["queue".to_owned()][..], Severity::High));
    assert_eq!(evidence(one, "one-way transfer of a line"), 54.0);
    assert!(one.text.contains("serves by arrival") && one.text.contains("95 %"), "{}", one.text);
    assert_eq!(one.expected_gain.as_ref().unwrap().arm, "barging");
    let unordered = diagnosed(&mut two_kinds(LockKind::Tas, None), queued(400, 20));
    assert!(!of(&unordered, "costly_handoff").unwrap().text.contains("serves by arrival"));
}

#[test]
fn whether_waiters_slept_is_told_by_what_was_counted_and_else_by_the_kind() {
    assert_eq!(passing_on(LockKind::PthreadPi, None), ["convoy"]);
    assert_eq!(passing_on(LockKind::Ticket, None), ["costly_handoff"]);
    assert_eq!(passing_on(LockKind::PthreadAdaptive, Some(19_000)), ["costly_handoff"], "it spun: 19 of 198 slept");
    assert_eq!(passing_on(LockKind::PthreadAdaptive, Some(20_000)), ["convoy"]);
    assert_eq!(passing_on(LockKind::Clh, Some(500_000)), ["costly_handoff"], "the loop sleeps, its lock never");
}

#[test]
fn a_busy_lock_and_one_that_is_taken_again_pass_nothing_on() {
    for kind in [LockKind::PthreadPi, LockKind::Ticket] {
        let busy = diagnosed(&mut two_kinds(kind, None), queued(400, 390));
        let taken_again =
            |o: &Observation| LockObservation { handoffs: 20_000, contended: 198_000, ..queued(400, 20)(o) };
        let again = diagnosed(&mut two_kinds(kind, None), taken_again);
        for found in [busy, again] {
            assert_eq!((of(&found, "convoy"), of(&found, "costly_handoff")), (None, None), "{kind:?}");
        }
    }
}

/// Spinners that share CPUs wait for the scheduler, which is a case of its own.
#[test]
fn a_queue_of_spinners_on_one_cpu_is_no_costly_handoff() {
    let mut bench = two_kinds(LockKind::Ticket, None);
    bench.programs(|_, program| program.shares_cpu = true);
    assert_eq!(of(&diagnosed(&mut bench, queued(400, 20)), "costly_handoff"), None);
}

/// Two tellers at one balance, and the same on copies of their own. `unlocked`: worker 1 touches it without the lock.
fn one_balance(unlocked: bool, unshared_ns: f64) -> Bench {
    let spots = vec![Spot::lock("m", 0, &[0, 1]), Spot::data("balance", 64, &[0, 1], &[])];
    let mut bench = Bench::new(&["one"]).with_unshared().with_lock("m");
    bench = bench.with_layout("one", spots.clone()).with_layout("unshared:one", spots);
    bench.programs(|_, program| {
        program.workers.iter_mut().for_each(|w| w.ops = vec![acquire(0), access(64), release(0)]);
        if unlocked {
            program.workers[1].ops = vec![access(64), acquire(0), release(0)];
        }
    });
    bench.run(10, |arm, _| if arm.starts_with("unshared") { unshared_ns } else { 120.0 });
    bench
}

#[test]
fn data_under_one_lock_moves_with_it_and_what_costs_is_the_lock() {
    let found = diagnosed(&mut one_balance(false, 20.0), teller);
    assert_eq!(found.iter().map(|d| d.kind.as_str()).collect::<Vec<_>>(), ["lock_contention"]);
    let one = &found[0];
    assert_eq!(one.fields, ["m", "balance"]);
    assert_eq!((one.severity, one.expected_gain.as_ref()), (Severity::High, None));
    assert!(one.text.contains("20 % of the acquisitions find it held"), "{}", one.text);
    assert!(one.text.contains("`balance`, touched under it alone, moves with it"), "{}", one.text);
    assert!(one.text.contains("6.00 times") && one.text.contains("`unshared:one`"), "{}", one.text);
}

#[test]
fn a_kind_that_suits_the_work_better_is_the_gain_of_a_contended_lock() {
    let kind = |arm: &str| if arm == "seqlock" { LockKind::Seqlock } else { LockKind::Pthread };
    let mut bench = Bench::new(&["mutex", "seqlock"]).with_unshared().with_lock_kinds("m", kind);
    let lock = vec![Spot::lock("m", 0, &[0, 1])];
    for arm in ["mutex", "seqlock", "unshared:mutex"] {
        bench = bench.with_layout(arm, lock.clone());
    }
    bench.run(10, |arm, _| match arm {
        "mutex" | "control" => 120.0,
        "seqlock" => 40.0,
        _ => 20.0,
    });
    let found = diagnosed(&mut bench, teller);
    let one = of(&found, "lock_contention").unwrap();
    assert_eq!((one.arms.as_slice(), one.fields.as_slice()), (&["mutex".to_owned()][..], &["m".to_owned()][..]));
    assert_eq!(one.expected_gain.as_ref().map(|g| (g.arm.as_str(), g.ratio.median)), Some(("seqlock", 3.0)));
    assert!(one.cure.contains("as `seqlock` does"), "{}", one.cure);
}

#[test]
fn data_that_one_worker_touches_without_the_lock_is_truly_shared() {
    let found = diagnosed(&mut one_balance(true, 20.0), teller);
    assert_eq!(found.iter().map(|d| d.kind.as_str()).collect::<Vec<_>>(), ["true_sharing"]);
    assert_eq!(found[0].fields, ["balance"]);
}

#[test]
fn a_lock_that_costs_nothing_or_has_a_reason_of_its_own_is_not_called_contended() {
    let cheap = diagnosed(&mut one_balance(false, 119.0), teller);
    assert_eq!(cheap.iter().map(|d| d.kind.as_str()).collect::<Vec<_>>(), ["none"]);
    assert!(cheap[0].text.contains("under a lock alone (`balance`) moves with that lock"), "{}", cheap[0].text);
    assert!(!cheap[0].text.contains("hand each other"), "{}", cheap[0].text);
    let idle = |o: &Observation| LockObservation { contended: 0, ..teller(o) };
    assert_eq!(of(&diagnosed(&mut one_balance(false, 20.0), idle), "lock_contention"), None);
    let found = diagnosed(&mut one_balance(false, 20.0), queued(400, 20));
    assert_eq!(found.iter().map(|d| d.kind.as_str()).collect::<Vec<_>>(), ["convoy"], "how they wait says more");
}

fn uneven(o: &Observation) -> LockObservation {
    let fair = o.arm == "fair";
    let acquisitions = if fair || o.worker == 0 { 100_000 } else { 5_000 };
    LockObservation { longest_run: 61_000, ..dealings(acquisitions, &[300; 50], 50, &[20; 80]) }
}

fn grabbing() -> Bench {
    let mut bench = Bench::new(&["grabbing", "fair"]).with_lock("m");
    bench.run(10, |_, _| 1.0);
    for o in &mut bench.observations {
        o.ns_per_op = Some(if o.arm == "fair" || o.worker == 0 { 1000.0 } else { 20_000.0 });
    }
    bench
}

#[test]
fn equal_loops_with_unequal_shares_are_unfair() {
    let found = diagnosed(&mut grabbing(), uneven);
    let one = of(&found, "unfair").unwrap();
    assert_eq!((one.arms.as_slice(), one.severity), (&["grabbing".to_owned()][..], Severity::High));
    assert!(one.text.contains("61000 in a row"), "{}", one.text);
    assert!((evidence(one, "Jain") - 0.55).abs() < 0.01);
    let gain = one.expected_gain.as_ref().unwrap();
    assert_eq!((gain.arm.as_str(), gain.ratio.median), ("fair", 20.0), "the slowest worker's");
}

#[test]
fn unequal_loops_and_locks_that_nobody_waits_at_are_not_unfair() {
    let mut unequal = grabbing();
    unequal.programs(|_, program| program.workers[1].steps.push("work 10us".into()));
    assert_eq!(of(&diagnosed(&mut unequal, uneven), "unfair"), None);
    let idle = |o: &Observation| LockObservation { contended: 0, ..uneven(o) };
    assert_eq!(of(&diagnosed(&mut grabbing(), idle), "unfair"), None);
    let third = |o: &Observation| dealings(if o.worker == 0 { 100 } else { 40 }, &[300; 50], 50, &[20; 80]);
    assert_eq!(of(&diagnosed(&mut grabbing(), third), "unfair"), None, "1 : 0.4 has an index of 0.84");
}

fn gap(ms: f64) -> impl Fn(&Observation) -> LockObservation {
    move |o| LockObservation {
        longest_gap_ns: if o.worker == 1 && o.arm != "calm" { ms * 1e6 } else { 2e5 },
        ..dealings(100_000, &[300; 50], 50, &[20; 80])
    }
}

fn pair() -> Bench {
    let mut bench = Bench::new(&["greedy", "calm"]).with_lock("m");
    bench.run(10, |arm, _| if arm == "calm" { 500.0 } else { 1000.0 });
    bench
}

#[test]
fn a_worker_without_the_lock_for_long_is_starved() {
    let found = diagnosed(&mut pair(), gap(40.0));
    let one = of(&found, "starved").unwrap();
    assert!(one.text.contains("40.0 ms") && one.text.contains("worker 1"), "{}", one.text);
    assert_eq!(one.expected_gain.as_ref().unwrap().arm, "calm");
    assert_eq!(one.severity, Severity::Medium, "40 of 100 ms");
}

#[test]
fn gaps_that_evictions_or_the_loop_itself_explain_starve_nobody() {
    assert_eq!(of(&diagnosed(&mut pair(), gap(9.0)), "starved"), None, "no longer than an eviction");
    let mut evicted = pair();
    evicted.observations.iter_mut().for_each(|o| o.lost_ns = 35e6);
    assert_eq!(of(&diagnosed(&mut evicted, gap(40.0)), "starved"), None);
    let mut sleeper = pair();
    let sleep = Op { every: 1, step: 0, kind: OpKind::Sleep(Nanos(20_000_000)) };
    sleeper.programs(|_, program| program.workers[1].ops.push(sleep.clone()));
    assert_eq!(of(&diagnosed(&mut sleeper, gap(40.0)), "starved"), None);
    let mut late = pair();
    late.programs(|_, program| program.workers[1].after = Nanos(35_000_000));
    assert_eq!(of(&diagnosed(&mut late, gap(40.0)), "starved"), None);
    let once = |o: &Observation| if o.block < 3 { gap(40.0)(o) } else { gap(0.1)(o) };
    assert_eq!(of(&diagnosed(&mut pair(), once), "starved"), None, "three repetitions of ten");
    let both = |o: &Observation| LockObservation { longest_gap_ns: 40e6, ..gap(40.0)(o) };
    assert_eq!(of(&diagnosed(&mut pair(), both), "starved"), None, "nobody had it meanwhile");
}

/// Spinning and sleeping workers that share CPUs.
fn crowded(spinning_ns: f64) -> Bench {
    let kind = |arm: &str| if arm == "futex" { LockKind::Futex } else { LockKind::Ticket };
    let mut bench = Bench::new(&["ticket", "futex"]).with_lock_kinds("m", kind);
    bench.programs(|_, program| program.shares_cpu = true);
    bench.run(10, |arm, _| if arm == "futex" { 300.0 } else { spinning_ns });
    bench
}

fn crowd(_: &Observation) -> LockObservation {
    LockObservation { spins: 90_000, ..dealings(100_000, &[300; 50], 50, &[20; 80]) }
}

#[test]
fn spinning_with_more_workers_than_cpus_is_told_with_what_sleeping_gains() {
    let found = diagnosed(&mut crowded(9000.0), crowd);
    let one = of(&found, "oversubscribed").unwrap();
    assert_eq!((one.arms.as_slice(), one.severity), (&["ticket".to_owned()][..], Severity::High));
    let gain = one.expected_gain.as_ref().unwrap();
    assert_eq!((gain.arm.as_str(), gain.ratio.median), ("futex", 30.0));
    assert_eq!(evidence(one, "turns spun"), 1800.0);
}

#[test]
fn spinners_with_a_cpu_each_or_no_slower_than_sleepers_are_no_case() {
    let mut roomy = crowded(9000.0);
    roomy.programs(|_, program| program.shares_cpu = false);
    assert_eq!(of(&diagnosed(&mut roomy, crowd), "oversubscribed"), None);
    assert_eq!(of(&diagnosed(&mut crowded(290.0), crowd), "oversubscribed"), None, "the sleepers are no faster");
}

/// Without a variant that sleeps, waiting itself has to be the cost.
#[test]
fn spinning_alone_needs_its_waits_to_be_a_case() {
    let alone = |waits: &[u64], contended| {
        let mut bench = Bench::new(&["ticket"]).with_lock_kinds("m", |_| LockKind::Ticket);
        bench.programs(|_, program| program.shares_cpu = true);
        bench.run(10, |_, _| 9000.0);
        diagnosed(&mut bench, |_| dealings(10_000, waits, contended, &[20; 80]))
    };
    let found = alone(&[4_000_000; 15], 15);
    assert_eq!(of(&found, "oversubscribed").unwrap().expected_gain, None);
    assert_eq!(of(&alone(&[300; 15], 15), "oversubscribed"), None);
}

/// Lock `m` beside a word that the loop touches under it or without it; `apart` has the word elsewhere.
fn beside(without_lock: bool, apart_ns: f64) -> Bench {
    let spots = |word: u64| vec![Spot::lock("m", 0, &[0, 1]), Spot::data("tally", word, &[0, 1], &[])];
    // 64 bytes from 8 on: the lock ends, and the word lies, in the second line.
    let near = vec![Spot::lock("m", 8, &[0, 1]), Spot::data("tally", 72, &[0, 1], &[])];
    let mut bench = Bench::new(&["near", "apart"]).with_lock("m");
    bench = bench.with_layout("near", near).with_layout("apart", spots(128));
    bench.programs(|arm, program| {
        let touch = access(if arm == "apart" { 128 } else { 72 });
        program.locks[0].offset = if arm == "apart" { 0 } else { 8 };
        let ops = match without_lock {
            true => vec![acquire(0), release(0), touch],
            false => vec![acquire(0), touch, release(0)],
        };
        program.workers.iter_mut().for_each(|w| w.ops.clone_from(&ops));
    });
    bench.run(10, |arm, _| if arm == "apart" { apart_ns } else { 90.0 });
    bench
}

#[test]
fn data_touched_without_the_lock_in_its_line_is_told_with_what_parting_them_gains() {
    let found = diagnosed(&mut beside(true, 60.0), crowd);
    let one = of(&found, "lock_word_shares_line").unwrap();
    assert_eq!(
        (one.arms.as_slice(), one.fields.as_slice()),
        (&["near".to_owned()][..], &["m", "tally"].map(str::to_owned)[..])
    );
    assert_eq!(one.expected_gain.as_ref().map(|g| (g.arm.as_str(), g.ratio.median)), Some(("apart", 1.5)));
    assert_eq!(evidence(one, "offset of `tally`"), 72.0);
    assert!(one.text.contains("`tally` lies"), "{}", one.text);
}

#[test]
fn data_that_only_the_owner_touches_or_that_costs_nothing_may_lie_beside_the_lock() {
    assert_eq!(of(&diagnosed(&mut beside(false, 60.0), crowd), "lock_word_shares_line"), None);
    assert_eq!(of(&diagnosed(&mut beside(true, 90.0), crowd), "lock_word_shares_line"), None);
}

/// Lock `m` of worker 0 and lock `n` of worker 1, on one line in `near`.
fn two_locks(ops_of_first: &[Op]) -> Bench {
    let spots = |second: u64| vec![Spot::lock("m", 8, &[0]), Spot::lock("n", second, &[1])];
    let mut bench = Bench::new(&["near", "apart"]).with_lock("m").with_lock("n");
    bench = bench.with_layout("near", spots(72)).with_layout("apart", spots(128));
    bench.programs(|arm, program| {
        (program.locks[0].offset, program.locks[1].offset) = (8, if arm == "apart" { 128 } else { 72 });
        program.workers[0].ops = ops_of_first.to_vec();
        program.workers[1].ops = vec![acquire(1), release(1)];
    });
    bench.run(10, |arm, _| if arm == "apart" { 30.0 } else { 90.0 });
    bench
}

#[test]
fn another_lock_in_the_line_is_told_though_nobody_waits() {
    let idle = |o: &Observation| LockObservation { contended: 0, ..crowd(o) };
    let found = diagnosed(&mut two_locks(&[acquire(0), release(0)]), idle);
    let one = of(&found, "lock_word_shares_line").unwrap();
    assert_eq!(
        (one.arms.as_slice(), one.fields.as_slice()),
        (&["near".to_owned()][..], &["m", "n"].map(str::to_owned)[..])
    );
    assert!(
        one.text.contains("takes the line from the other") && one.text.contains("nobody ever waits"),
        "{}",
        one.text
    );
    assert_eq!(one.expected_gain.as_ref().map(|g| g.arm.as_str()), Some("apart"));
}

#[test]
fn a_dead_owner_is_told_with_the_role_that_dies() {
    let mut bench =
        Bench::with_roles(&["robust"], &["mortal", "heir"]).with_lock_kinds("m", |_| LockKind::PthreadRobust);
    let die = Op { every: 1, step: 0, kind: OpKind::Die };
    bench.programs(|_, program| program.workers[0].ops.push(die.clone()));
    bench.run(10, |_, _| 100.0);
    let heir = |o: &Observation| LockObservation { owner_died: u64::from(o.role == "heir"), ..teller(o) };
    let found = diagnosed(&mut bench, heir);
    let one = of(&found, "owner_died").unwrap();
    assert_eq!((one.roles.as_slice(), evidence(one, "owner dead")), (&["mortal".to_owned()][..], 10.0));
    assert!(one.cure.contains("pthread_mutex_consistent"));
    assert_eq!(of(&diagnosed(&mut pair(), teller), "owner_died"), None);
}

#[test]
fn the_price_of_timing_is_the_first_variant_over_its_plain_twin() {
    let mut bench = Bench::new(&["a", "b"]).with_plain().with_lock("m");
    bench.run(10, |arm, _| match arm {
        "plain" => 50.0,
        "b" => 80.0,
        _ => 60.0,
    });
    let price = bench.analyse().method.lock_timing.unwrap();
    assert!((price.median - 1.2).abs() < 1e-9, "{price:?}");
    assert_eq!(two_kinds(LockKind::Pthread, None).analyse().method.lock_timing, None);
}

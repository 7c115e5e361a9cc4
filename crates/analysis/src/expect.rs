//! The scenario's claims, judged on intervals: a claim holds or fails where the whole interval lies on one side.

use crate::interval::exact;
use crate::term::{Missing, name, paired, quotient, value};
use crate::view::View;
use crate::words::{count, interval};
use plan::expect::{Against, Expect, HostFact, Relation, When};
use record::{ArmSummary, ExpectOutcome, ExpectState, Interval};

/// One outcome a claim, in the plan's order.
pub(crate) fn judge(view: &View, arms: &[ArmSummary]) -> Vec<ExpectOutcome> {
    view.plan.expects.iter().map(|claim| outcome(view, arms, claim)).collect()
}

fn outcome(view: &View, arms: &[ArmSummary], claim: &Expect) -> ExpectOutcome {
    let judged = match &claim.when {
        Some(when) if !in_force(view, when) => Err(Missing::NotApplicable(condition(view, when))),
        _ => compare(view, arms, claim),
    };
    let (state, seen, why) = match judged {
        Ok(seen) => seen,
        Err(Missing::NotApplicable(why)) => (ExpectState::NotApplicable, None, why),
        Err(Missing::Unresolved(why)) => (ExpectState::Undecided, None, why),
    };
    ExpectOutcome { claim: claim.text.clone(), state, seen, why }
}

type Judged = (ExpectState, Option<Interval>, String);

fn compare(view: &View, arms: &[ArmSummary], claim: &Expect) -> Result<Judged, Missing> {
    let left = value(view, arms, &claim.left);
    if let (Err(Missing::Unresolved(_)), Against::Scaled { term, .. }) = (&left, &claim.right) {
        // More blocks would settle the left-hand side, but not a right-hand side that cannot be had.
        value(view, arms, term)?;
    }
    let left = left?;
    let one = name(&claim.left);
    let (factor, term) = match &claim.right {
        Against::Number(number) => {
            let why = format!("{one} is {}; the claim is {} {number}", interval(left.interval), claim.op);
            return Ok((side(claim.op, left.interval, exact(*number)), Some(left.interval), why));
        }
        Against::Scaled { factor, term } => (*factor, term),
    };
    let right = value(view, arms, term)?;
    let other = name(term);
    if let Some((ratio, blocks)) = paired(view, (&claim.left, &left), (term, &right), &claim.text) {
        let why = format!(
            "{one} is {} times {other} over {}; the claim is {} {factor}",
            interval(ratio),
            count(blocks, "block"),
            claim.op
        );
        return Ok((side(claim.op, ratio, exact(factor)), Some(ratio), why));
    }
    let scaled = scale(right.interval, factor);
    let why = format!(
        "{one} is {}, {factor} * {other} is {}; compared end to end, since they do not pair by block",
        interval(left.interval),
        interval(scaled)
    );
    Ok((side(claim.op, left.interval, scaled), quotient(left.interval, right.interval), why))
}

/// Where the whole of `left` lies as against the whole of `right`.
fn side(op: Relation, left: Interval, right: Interval) -> ExpectState {
    let (holds, fails) = match op {
        Relation::AtLeast => (left.low >= right.high, left.high < right.low),
        Relation::MoreThan => (left.low > right.high, left.high <= right.low),
        Relation::AtMost => (left.high <= right.low, left.low > right.high),
        Relation::LessThan => (left.high < right.low, left.low >= right.high),
    };
    match (holds, fails) {
        (true, _) => ExpectState::Holds,
        (_, true) => ExpectState::Fails,
        _ => ExpectState::Undecided,
    }
}

fn scale(i: Interval, factor: f64) -> Interval {
    let ends = (i.low * factor, i.high * factor);
    Interval { median: i.median * factor, low: ends.0.min(ends.1), high: ends.0.max(ends.1) }
}

fn host_fact(view: &View, fact: HostFact) -> usize {
    match fact {
        HostFact::Cpus => view.topology.cpus.iter().filter(|c| c.usable).count(),
        HostFact::LlcGroups => view.topology.llc_groups(),
        HostFact::Sockets => view.topology.sockets(),
        HostFact::Nodes => view.topology.nodes(),
    }
}

fn in_force(view: &View, when: &When) -> bool {
    let (seen, number) = (host_fact(view, when.fact) as u64, when.number);
    match when.op {
        Relation::AtLeast => seen >= number,
        Relation::AtMost => seen <= number,
        Relation::MoreThan => seen > number,
        Relation::LessThan => seen < number,
    }
}

fn condition(view: &View, when: &When) -> String {
    format!("it is claimed where `{}`; here it is {}", when.text, host_fact(view, when.fact))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::{Bench, lock_observation};
    use ExpectState::{Fails, Holds, NotApplicable, Undecided};
    use plan::EventSpec;
    use plan::expect::{Metric, Quantile, Term};
    use record::{LockObservation, Observation, Reading};

    fn term(metric: Metric, arm: &str) -> Term {
        Term { metric, arm: arm.into(), of: None }
    }

    fn against(left: Term, op: Relation, factor: f64, right: Term) -> Expect {
        let right = Against::Scaled { factor, term: right };
        Expect { text: "a claim".into(), left, op, right, when: None }
    }

    fn number(left: Term, op: Relation, number: f64) -> Expect {
        Expect { text: "a claim".into(), left, op, right: Against::Number(number), when: None }
    }

    fn bench() -> Bench {
        let mut bench = Bench::new(&["packed", "padded-64"]).with_solo().with_unshared();
        bench.run(10, |arm, block| match arm {
            "packed" | "control" => 20.0 + f64::from(block % 3),
            _ => 2.0,
        });
        bench
    }

    fn judged(mut bench: Bench, claim: Expect) -> ExpectOutcome {
        bench.plan.expects = vec![claim];
        bench.analyse().expect.remove(0)
    }

    #[test]
    fn ratios_hold_fail_or_stay_undecided_by_their_interval() {
        let claim = |factor| {
            let right = term(Metric::NsPerOp, "padded-64");
            judged(bench(), against(term(Metric::NsPerOp, "packed"), Relation::AtLeast, factor, right))
        };
        assert_eq!(claim(3.0).state, Holds);
        assert_eq!(claim(12.0).state, Fails);
        assert_eq!(claim(10.6).state, Undecided);
        // 10 to 11 about 10.5, stretched by 1.5.
        assert!((claim(3.0).seen.unwrap().low - 9.76).abs() < 0.01);
        let why = claim(3.0).why;
        assert!(why.contains("ns_per_op(packed) is 10.5") && why.contains("10 blocks"), "{why}");
    }

    #[test]
    fn every_relation_has_its_strict_and_its_loose_edge() {
        let at = exact(5.0);
        let states = |number: f64| {
            [Relation::AtLeast, Relation::MoreThan, Relation::AtMost, Relation::LessThan]
                .map(|op| side(op, at, exact(number)))
        };
        assert_eq!(states(5.0), [Holds, Fails, Holds, Fails]);
        assert_eq!(states(4.0), [Holds, Holds, Fails, Fails]);
        assert_eq!(states(6.0), [Fails, Fails, Holds, Holds]);
    }

    #[test]
    fn numbers_baselines_and_bytes_are_judged() {
        let at_least = |metric, n| judged(bench(), number(term(metric, "packed"), Relation::AtLeast, n)).state;
        assert_eq!(at_least(Metric::ContentionSolo, 5.0), Holds);
        assert_eq!(at_least(Metric::ContentionUnshared, 50.0), Fails);
        assert_eq!(at_least(Metric::Bytes, 16.0), Holds);
        assert_eq!(at_least(Metric::FairnessJain, 0.99), Holds);
        assert_eq!(at_least(Metric::OpsPerSecond, 200e6), Fails);
    }

    #[test]
    fn sides_that_do_not_pair_are_compared_end_to_end() {
        let claim = against(term(Metric::Bytes, "padded-64"), Relation::AtLeast, 8.0, term(Metric::Bytes, "packed"));
        let seen = judged(bench(), claim);
        assert_eq!((seen.state, seen.seen.unwrap().median), (Holds, 8.0));
        assert!(seen.why.contains("end to end"), "{}", seen.why);
    }

    #[test]
    fn what_this_host_lacks_is_not_applicable() {
        let when = When { text: "llc_groups >= 2".into(), fact: HostFact::LlcGroups, op: Relation::AtLeast, number: 2 };
        let claim = Expect { when: Some(when), ..number(term(Metric::NsPerOp, "packed"), Relation::AtLeast, 1.0) };
        let seen = judged(bench(), claim);
        assert_eq!(seen.state, NotApplicable);
        assert!(seen.why.contains("here it is 1"), "{}", seen.why);

        let mut refused = bench();
        refused.bound.arms[1].program = Err(plan::NotApplicable { why: "needs 4 CPUs".into() });
        let seen = judged(refused, number(term(Metric::NsPerOp, "padded-64"), Relation::AtLeast, 1.0));
        assert_eq!(seen.state, NotApplicable);
        assert!(seen.why.contains("needs 4 CPUs"));

        let lockless = judged(bench(), number(term(Metric::Wait(Quantile::P99), "packed"), Relation::AtLeast, 1.0));
        assert_eq!(lockless.state, NotApplicable);
    }

    /// `--only` and `--workers` leave claims that name arms which are gone.
    #[test]
    fn a_claim_on_an_absent_arm_is_not_applicable_on_either_side_of_an_unresolved_one() {
        let ns = |arm| term(Metric::NsPerOp, arm);
        let unresolved = || {
            let mut bench = bench();
            let noisy = |o: &&mut Observation| o.arm == "padded-64" && o.block > 1;
            bench.observations.iter_mut().filter(noisy).for_each(|o| o.spoiled.push("lost_time".into()));
            bench
        };
        for claim in [
            number(ns("gone"), Relation::AtLeast, 1.0),
            against(ns("packed"), Relation::AtLeast, 3.0, ns("gone")),
            against(ns("padded-64"), Relation::AtLeast, 3.0, ns("gone")),
            against(ns("gone"), Relation::AtLeast, 3.0, ns("padded-64")),
        ] {
            let seen = judged(unresolved(), claim);
            assert_eq!(seen.state, NotApplicable);
            assert_eq!((seen.seen, seen.why.as_str()), (None, "arm `gone` is not part of this run"));
        }
        let absent_only = {
            let mut bench = bench();
            bench.plan.expects = vec![against(ns("packed"), Relation::AtLeast, 3.0, ns("gone"))];
            bench.analyse()
        };
        assert!(absent_only.conclusive);
    }

    #[test]
    fn what_is_not_sampled_is_not_applicable_and_never_a_number() {
        for (metric, said) in [
            (
                Metric::Latency(Quantile::P99),
                "latency_p99_ns(packed) was not measured: role `counter` is a closed loop that does not time",
            ),
            (
                Metric::Batch(Quantile::P999),
                "batch_p999_ns(packed) was not measured: role `counter` has no step `touch`",
            ),
            (Metric::Hold(Quantile::P50), "no hold of `m` in `packed` was timed: one acquisition in 251 is"),
        ] {
            let seen = judged(bench().with_lock("m"), number(term(metric, "packed"), Relation::AtMost, 1e9));
            assert_eq!((seen.state, seen.seen), (NotApplicable, None));
            assert!(seen.why.starts_with(said), "{}", seen.why);
        }
    }

    #[test]
    fn what_a_plain_arm_does_not_time_is_not_applicable_there() {
        let claim = |metric| {
            let mut bench = Bench::new(&["packed"]).with_plain().with_lock("m");
            bench.run(6, |_, _| 20.0);
            bench.at_lock(|_| lock_observation("m", 100, &[], &[]));
            judged(bench, number(term(metric, "plain"), Relation::AtMost, 0.5))
        };
        let shares = claim(Metric::ContendedShare);
        assert_eq!(shares.state, NotApplicable);
        assert!(shares.why.contains("neither tried first nor timed"), "{}", shares.why);
        assert_eq!(claim(Metric::HandoffsPerOp).state, Holds, "the owner record is kept there too");
    }

    #[test]
    fn latency_claims_are_judged_per_repetition() {
        let claim = |op, n| {
            let mut bench = bench();
            for worker in bench.bound.arms.iter_mut().flat_map(|a| &mut a.program).flat_map(|p| &mut p.workers) {
                worker.latency = true;
            }
            for o in &mut bench.observations {
                let stall = if o.block == 0 { 1_000_000 } else { 900 };
                o.response = crate::times::tally([700, 800, stall].into_iter());
            }
            judged(bench, number(term(Metric::Latency(Quantile::Max), "packed"), op, n))
        };
        assert_eq!(claim(Relation::AtMost, 1e9).state, Holds);
        assert_eq!(claim(Relation::LessThan, 800.0).state, Fails);
        assert_eq!(claim(Relation::AtMost, 1e9).seen.map(|i| i.median), Some(900.0), "the median repetition's");
    }

    #[test]
    fn an_uncounted_reading_is_not_applicable_and_a_counted_one_is_judged() {
        let claim = |reading: Reading| {
            let mut bench = bench();
            for o in &mut bench.observations {
                o.passes = 100;
                o.counters.insert("llc_load_misses".into(), reading.clone());
            }
            judged(bench, number(term(Metric::CounterPerOp("llc_load_misses".into()), "packed"), Relation::AtMost, 0.5))
        };
        assert_eq!(claim(Reading::Counted { value: 10 }).state, Holds);
        assert_eq!(claim(Reading::Counted { value: 90 }).state, Fails);
        let missing = claim(Reading::Unsupported { why: "no PMU".into() });
        assert_eq!(missing.state, NotApplicable);
        assert!(missing.why.contains("no PMU"), "{}", missing.why);
    }

    /// Every name a claim can hold: the lab's own, and a user's event that looks like one.
    #[test]
    fn a_claim_about_what_this_machine_cannot_count_is_not_applicable_with_the_reading_s_reason() {
        let lab = plan::event::COUNTERS.map(|(name, _)| name);
        for name in lab.into_iter().chain(["r01d1", "far_fills"]) {
            for per in [Metric::CounterPerOp, Metric::CounterPerSecond] {
                let mut bench = bench();
                bench.plan.measure.events = EventSpec::list("r01d1,cpu/event=1,name=far_fills/").expect("events");
                let denied = Reading::Denied { why: "paranoid is 4".into(), cure: "sudo sysctl".into() };
                bench.observations.iter_mut().for_each(|o| drop(o.counters.insert(name.into(), denied.clone())));
                let seen = judged(bench, number(term(per(name.into()), "packed"), Relation::AtMost, 0.5));
                assert_eq!((seen.state, seen.seen), (NotApplicable, None), "{name}");
                assert_eq!(seen.why, format!("`{name}` was not counted: paranoid is 4; sudo sysctl"));
            }
        }
        let nobody =
            judged(bench(), number(term(Metric::CounterPerOp("upgrades".into()), "packed"), Relation::AtMost, 0.5));
        assert_eq!(nobody.state, NotApplicable, "{}", nobody.why);
    }

    #[test]
    fn a_claim_on_an_event_that_a_flag_replaced_says_so() {
        let mut bench = bench();
        bench.plan.measure.events = EventSpec::list("faults").expect("an event");
        let seen = judged(bench, number(term(Metric::CounterPerOp("my_sw".into()), "packed"), Relation::AtMost, 0.5));
        assert_eq!(seen.state, NotApplicable);
        assert!(seen.why.contains("`my_sw`") && seen.why.contains("`--events` replaced"), "{}", seen.why);
    }

    #[test]
    fn an_unresolved_arm_leaves_its_claim_undecided() {
        let mut bench = bench();
        let noisy = |o: &&mut Observation| o.arm == "padded-64" && o.block > 1;
        bench.observations.iter_mut().filter(noisy).for_each(|o| o.spoiled.push("lost_time".into()));
        let seen = judged(bench, number(term(Metric::NsPerOp, "padded-64"), Relation::AtLeast, 1.0));
        assert_eq!(seen.state, Undecided);
        assert!(seen.why.contains("2 repetitions counted") && seen.why.contains("lost_time"), "{}", seen.why);
    }

    #[test]
    fn lock_claims_are_judged_per_repetition() {
        let claim = |metric, op, n| {
            let mut bench = bench().with_lock("m");
            for o in &mut bench.observations {
                let holds = crate::times::tally([200; 9].into_iter());
                o.locks.push(LockObservation { holds, ..lock_observation("m", 100, &[1000; 25], &[1000; 25]) });
            }
            judged(bench, number(term(metric, "packed"), op, n)).state
        };
        assert_eq!(claim(Metric::Wait(Quantile::P99), Relation::AtMost, 1010.0), Holds);
        assert_eq!(claim(Metric::Wait(Quantile::Max), Relation::LessThan, 900.0), Fails);
        assert_eq!(claim(Metric::Hold(Quantile::P50), Relation::AtMost, 200.0), Holds);
        assert_eq!(claim(Metric::Hold(Quantile::P999), Relation::LessThan, 200.0), Fails);
        assert_eq!(claim(Metric::ContendedShare, Relation::AtMost, 0.25), Holds);
        assert_eq!(claim(Metric::HandoffsPerOp, Relation::MoreThan, 0.5), Fails);
    }
}

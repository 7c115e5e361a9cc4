//! The third gate of a grading: how much of what a reference gains a student's file recovers, on the host at hand.
//!
//! Nothing is held against an absolute time. The starter and the reference say what there is to gain here, the starter
//! run a second time says what this machine makes of no change at all, and the share recovered is what counts, by the
//! end of its interval that is the worse for whoever claims something: its lower end to pass, its upper end to fail.

use crate::figures::Series;
use crate::view::View;
use crate::{interval, regime, summary, term, words};
use plan::expect::{Metric, Term};
use plan::{ArmKind, Bound, Plan, Topology};
use record::{CountedEvent, Effect, GateCheck, GateState, Interval, Observation};

/// What is asked of a run with a starter, a student's arm and a reference, the starter first among its variants.
#[derive(Clone, Debug, PartialEq)]
pub struct EffectQuestion<'a> {
    /// The figure; less is better.
    pub metric: &'a Metric,
    /// Whose: a role's or a lock's name.
    pub of: Option<&'a str>,
    /// The arms: starter, the student's, reference.
    pub arms: [&'a str; 3],
    /// Share whose lower bound passes.
    pub wanted: f64,
}

/// The figures of an effect, made of the observations as [`analyse`](crate::analyse) makes those of a claim.
pub fn effect(
    plan: &Plan,
    bound: &Bound,
    topology: &Topology,
    events: &[CountedEvent],
    observations: &mut [Observation],
    seed: u64,
    question: &EffectQuestion,
) -> Effect {
    let regimes = regime::assign(bound, observations);
    let view = View::new(plan, bound, topology, events, observations, &regimes, seed);
    let arms = summary::arms(&view);
    let figure = |arm: &str| {
        let (metric, of) = (question.metric.clone(), question.of.map(str::to_owned));
        term::figure(&view, &arms, &Term { metric, arm: arm.to_owned(), of })
    };
    let [starter, yours, reference] = question.arms.map(figure);
    let control = bound.arms.iter().find(|arm| arm.arm.kind == ArmKind::Control).and_then(|arm| figure(&arm.arm.name));
    // Regimes are states of the machine: figures of different ones say nothing of each other.
    let numbers: Vec<_> = question.arms.iter().map(|arm| regimes.by_arm.get(*arm)).collect();
    let one_state = numbers.windows(2).all(|pair| pair[0] == pair[1]);
    let ratio = |left: &Option<(Interval, Series)>, right: &Option<(Interval, Series)>, name: &str| {
        let (left, right) = (left.as_ref()?, right.as_ref()?);
        view.ratio_of(&left.1, &right.1, name).filter(|_| one_state)
    };
    let blocks = match (&starter, &yours, &reference) {
        (Some(starter), Some(yours), Some(reference)) if one_state => blocks(&starter.1, &yours.1, &reference.1),
        _ => Vec::new(),
    };
    let interval_of = |figure: &Option<(Interval, Series)>| figure.as_ref().map(|(interval, _)| *interval);
    Effect {
        metric: question.metric.to_string(),
        of: question.of.map(str::to_owned),
        starter: interval_of(&starter),
        yours: interval_of(&yours),
        reference: interval_of(&reference),
        starter_to_reference: ratio(&starter, &reference, "effect/gain"),
        starter_to_itself: ratio(&control, &starter, "effect/itself"),
        recovered: interval::share(&blocks, &mut interval::dice(seed, "effect/recovered")),
        wanted: question.wanted,
        blocks: blocks.len() as u32,
    }
}

fn blocks(starter: &Series, yours: &Series, reference: &Series) -> Vec<(f64, f64, f64)> {
    let all = starter.iter().filter_map(|(block, a)| Some((*a, *yours.get(block)?, *reference.get(block)?)));
    all.collect()
}

/// What the figures say: whether this machine tells starter and reference apart, whether it tells the starter from
/// itself, and whether enough is recovered. The first two ask the host, the third the student.
pub fn judge_effect(effect: &Effect) -> Vec<GateCheck> {
    let check = |what: &str, (state, why): (GateState, String)| GateCheck { what: what.to_owned(), state, why };
    vec![
        check("this machine shows what there is to gain", shows(effect)),
        check("the starter does not differ from itself", itself(effect)),
        check("enough of it is recovered", recovers(effect)),
    ]
}

const TOO_FEW: &str = "too few repetitions are sound for a figure";

fn shows(effect: &Effect) -> (GateState, String) {
    let Some(gain) = effect.starter_to_reference else { return (GateState::Undecided, TOO_FEW.to_owned()) };
    // What the machine makes of no change is no gain.
    let itself = effect.starter_to_itself.map_or(0.0, |itself| itself.high.max(1.0 / itself.low) - 1.0);
    let seen = format!("the starter takes {} times as long as the reference", words::interval(gain));
    match gain.low > 1.0 + itself {
        true => (GateState::Passes, seen),
        false => {
            let why = format!("{seen}, and up to {} times as long as itself", words::figure(1.0 + itself));
            (GateState::HostUnsuitable, why)
        }
    }
}

fn itself(effect: &Effect) -> (GateState, String) {
    let Some(itself) = effect.starter_to_itself else { return (GateState::Undecided, TOO_FEW.to_owned()) };
    let seen = format!("run again it takes {} times as long", words::interval(itself));
    match itself.low <= 1.0 && 1.0 <= itself.high {
        true => (GateState::Passes, seen),
        false => (GateState::HostUnsuitable, format!("{seen}: this machine is too restless just now")),
    }
}

fn recovers(effect: &Effect) -> (GateState, String) {
    let Some(share) = effect.recovered else { return (GateState::Undecided, TOO_FEW.to_owned()) };
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let (seen, low, high) = (percent(share.median), percent(share.low), percent(share.high));
    let seen = format!("{seen} ({low} to {high}) of what the reference gains; {} is asked for", percent(effect.wanted));
    match () {
        () if share.low >= effect.wanted => (GateState::Passes, seen),
        () if share.high < effect.wanted => (GateState::Fails, seen),
        () => (GateState::Undecided, seen),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::Bench;

    const ARMS: [&str; 3] = ["starter", "yours", "reference"];

    /// Ten blocks in which the arms take so many nanoseconds, and the control what it takes.
    fn seen(ns: [f64; 3], control: f64) -> (Effect, Vec<GateState>) {
        let mut bench = Bench::new(&ARMS);
        bench.run(10, |arm, block| {
            let noise = 1.0 + 0.01 * f64::from((block * 7 + arm.len() as u32 * 3) % 11);
            noise * ARMS.iter().position(|name| *name == arm).map_or(control, |index| ns[index])
        });
        let question = EffectQuestion { metric: &Metric::NsPerOp, of: None, arms: ARMS, wanted: 0.5 };
        let effect = bench.effect(&question);
        let states = judge_effect(&effect).into_iter().map(|check| check.state).collect();
        (effect, states)
    }

    use GateState::{Fails, HostUnsuitable, Passes, Undecided};

    #[test]
    fn a_repair_passes_and_a_no_op_does_not() {
        let (effect, states) = seen([20.0, 2.0, 2.0], 20.0);
        assert_eq!(states, [Passes; 3], "{effect:?}");
        assert_eq!((effect.blocks, effect.metric.as_str()), (10, "ns_per_op"));
        assert_eq!(seen([20.0, 20.0, 2.0], 20.0).1, [Passes, Passes, Fails]);
        assert_eq!(seen([20.0, 30.0, 2.0], 20.0).1, [Passes, Passes, Fails], "worse than before");
        assert_eq!(seen([20.0, 11.0, 2.0], 20.0).1, [Passes, Passes, Undecided], "at the bar");
    }

    #[test]
    fn a_machine_that_shows_no_difference_is_unsuitable_whatever_the_file_is() {
        for yours in [20.0, 2.0] {
            let (effect, states) = seen([20.0, yours, 20.0], 20.0);
            assert_eq!(states[0], HostUnsuitable, "{effect:?}");
        }
    }

    #[test]
    fn a_machine_that_tells_a_file_from_itself_is_unsuitable() {
        let (effect, states) = seen([20.0, 2.0, 2.0], 26.0);
        assert_eq!(states, [Passes, HostUnsuitable, Passes], "{effect:?}");
        // As much as there is to gain: then that is no gain either.
        assert_eq!(seen([20.0, 2.0, 18.0], 26.0).1[..2], [HostUnsuitable; 2]);
    }

    #[test]
    fn too_few_sound_repetitions_decide_nothing() {
        let mut bench = Bench::new(&ARMS);
        bench.run(2, |_, _| 20.0);
        let question = EffectQuestion { metric: &Metric::NsPerOp, of: None, arms: ARMS, wanted: 0.5 };
        let effect = bench.effect(&question);
        assert_eq!(effect.recovered, None);
        assert!(judge_effect(&effect).iter().all(|check| check.state == Undecided), "{effect:?}");
    }
}

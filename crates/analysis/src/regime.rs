//! Regimes: which repetitions ran on the same machine, as far as the time of a line between CPUs and the speed of the
//! cores can tell, since a hypervisor changes both unseen.
//!
//! The rule: pool the transfer times before and after every repetition, sort, split where neighbours differ by over
//! 1.4 ×; the same for core speed, and for the contended probe by 1.15 ×; a repetition's regime is the three classes.
//! The contended probe is there because transfer time alone is blind: two CPUs 25 ns apart ran one packed `bump` loop
//! at 1.2, 1.5, 2.1, 3.5 and 4.8 ns a pass, each for minutes, while the hand-over stayed at 25 ns (twelve runs with 2
//! virtual CPUs of an AMD EPYC, family 26). Five things make the rule hold on real data:
//!
//! * *Half a reading.* Where evictions left the contended probe without a reading on one side of a repetition, the
//!   other side's stands for both; with neither, the repetition has no regime and is spoiled.
//! * *Chains.* A handful of stray values (a probe during which the CPU moved) can bridge two classes by steps of less
//!   than 1.4 ×. With 20 values or more, those with hardly any company (fewer than 5 % of all, or two, within ×1.4
//!   around them) neither found nor link classes; each then joins the class within 1.4 × of it, or is a class of its
//!   own.
//! * *Tiny classes.* A class of one value is allowed and strands nothing: its repetition is spoiled (the other end lies
//!   elsewhere) or counted under another regime, and the headline is chosen by what the arms have in it.
//! * *Other CPUs, other distances.* Transfer times are pooled over the arms that run on the same set of CPUs. Two
//!   sockets are farther apart than two siblings whatever the hypervisor does, and a sweep over workers or CPUs would
//!   otherwise have no regime that holds all its arms. Each set has its headline regime; the run's is the first
//!   variant's.
//! * *Baselines* have half as many blocks, so they decide on the headline only between equals.

use crate::FEWEST_BLOCKS;
use crate::classes::Classes;
use crate::stats::median_of;
use plan::{ArmKind, Bound, CpuId};
use record::{CostProbe, Observation, Regime};
use std::collections::{BTreeMap, BTreeSet};

/// Neighbours in the sorted values that differ by more than this lie in different classes.
const SPLIT: f64 = 1.4;

/// The same for the contended probe: its readings within one state scatter by 2 to 8 %, states lie 15 % and more apart.
const CONTENDED_SPLIT: f64 = 1.15;

/// The reasons that this stage gives.
const REGIME_CHANGED: &str = "regime_changed";
const NO_REGIME: &str = "no_regime";

/// The regimes of a run, and which one each arm is judged in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Regimes {
    /// Ascending by transfer time, then core speed; a regime's place is its number.
    pub(crate) list: Vec<Regime>,
    /// The run's headline regime: the first variant's.
    pub(crate) run: Option<u32>,
    /// The headline regime by arm; an arm without sound repetitions is missing.
    pub(crate) by_arm: BTreeMap<String, u32>,
    /// Arms whose headline regime is of another core speed than the run's, because they have none of the same.
    pub(crate) other_speed: Vec<String>,
}

/// One repetition, as far as regimes go.
struct Repetition {
    arm: String,
    members: Vec<usize>,
    /// The probes between CPUs; `None` where no two workers run on different CPUs.
    line: Option<Line>,
    core_loop_ns: f64,
    /// CPUs of the arm, an index into the sets seen.
    cpus: usize,
}

/// The probes of one line between CPUs, before and after a repetition.
#[derive(Copy, Clone)]
struct Line {
    /// The slowest pair's transfer time.
    transfer: (f64, f64),
    /// The contended probe; `None` where evictions left no reading.
    contended: Option<(f64, f64)>,
}

/// A regime before it has a number: CPUs with transfer and contended class, core class.
type Key = (Option<(usize, (usize, usize))>, usize);

/// Gives every sound observation its regime, spoils repetitions that straddle two, and chooses the headlines.
/// Forgets what an earlier call had set.
pub(crate) fn assign(bound: &Bound, observations: &mut [Observation]) -> Regimes {
    for observation in observations.iter_mut() {
        observation.regime = None;
        observation.spoiled.retain(|reason| reason != REGIME_CHANGED && reason != NO_REGIME);
    }
    let mut repetitions = sound_repetitions(bound, observations);
    let core = Classes::of(repetitions.iter().map(|r| r.core_loop_ns).collect(), SPLIT);
    let line = line_classes(&repetitions);
    repetitions.retain(|repetition| {
        let reason = repetition.line.and_then(|seen| line[&repetition.cpus].spoils(seen));
        if let Some(reason) = reason {
            repetition.members.iter().for_each(|m| observations[*m].spoiled.push(reason.to_owned()));
        }
        reason.is_none()
    });
    let key = |r: &Repetition| -> Key {
        (r.line.map(|seen| (r.cpus, line[&r.cpus].class(seen))), core.class(r.core_loop_ns))
    };
    let keyed: Vec<(Key, Repetition)> = repetitions.into_iter().map(|r| (key(&r), r)).collect();
    let headlines = Headlines::choose(bound, &keyed);
    number(&keyed, &headlines, observations)
}

/// The repetitions that nothing has spoiled so far. Only they speak for regimes.
fn sound_repetitions(bound: &Bound, observations: &[Observation]) -> Vec<Repetition> {
    let cpus_of = |arm: &str| -> BTreeSet<CpuId> {
        let program = bound.arms.iter().find(|a| a.arm.name == arm).and_then(|a| a.program.as_ref().ok());
        program.map(|p| p.workers.iter().map(|w| w.cpu).collect()).unwrap_or_default()
    };
    let mut grouped: BTreeMap<(&str, u32), Vec<usize>> = BTreeMap::new();
    for (index, observation) in observations.iter().enumerate().filter(|(_, o)| o.spoiled.is_empty()) {
        grouped.entry((&observation.arm, observation.block)).or_default().push(index);
    }
    let mut sets: Vec<BTreeSet<CpuId>> = Vec::new();
    let mut repetitions = Vec::new();
    for ((arm, _), members) in grouped {
        let set = cpus_of(arm);
        let cpus = sets.iter().position(|s| *s == set).unwrap_or_else(|| {
            sets.push(set);
            sets.len() - 1
        });
        let first = &observations[members[0]];
        repetitions.push(Repetition {
            arm: arm.to_owned(),
            line: first.transfer_before_ns.zip(first.transfer_after_ns).map(|transfer| Line {
                transfer,
                contended: either_side(first.contended_before_ns, first.contended_after_ns),
            }),
            core_loop_ns: first.core_loop_ns,
            cpus,
            members,
        });
    }
    repetitions
}

fn either_side(before: Option<f64>, after: Option<f64>) -> Option<(f64, f64)> {
    Some((before.or(after)?, after.or(before)?))
}

fn line_classes(repetitions: &[Repetition]) -> BTreeMap<usize, LineClasses> {
    let mut pooled: BTreeMap<usize, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for (cpus, line) in repetitions.iter().filter_map(|r| Some((r.cpus, r.line?))) {
        let (transfer, contended) = pooled.entry(cpus).or_default();
        transfer.extend([line.transfer.0, line.transfer.1]);
        contended.extend(line.contended.iter().flat_map(|(before, after)| [*before, *after]));
    }
    let classes = |(transfer, contended)| LineClasses {
        transfer: Classes::of(transfer, SPLIT),
        contended: Classes::of(contended, CONTENDED_SPLIT),
    };
    pooled.into_iter().map(|(cpus, values)| (cpus, classes(values))).collect()
}

/// The classes of one set of CPUs.
struct LineClasses {
    transfer: Classes,
    contended: Classes,
}

impl LineClasses {
    /// Why these readings put their repetition into no regime, if they do not.
    fn spoils(&self, seen: Line) -> Option<&'static str> {
        let straddles = |classes: &Classes, (before, after)| classes.class(before) != classes.class(after);
        match seen.contended {
            None => Some(NO_REGIME),
            Some(contended) => (straddles(&self.transfer, seen.transfer) || straddles(&self.contended, contended))
                .then_some(REGIME_CHANGED),
        }
    }

    fn class(&self, seen: Line) -> (usize, usize) {
        let contended = seen.contended.map_or(0, |(before, _)| self.contended.class(before));
        (self.transfer.class(seen.transfer.0), contended)
    }
}

/// The headline regime of each set of CPUs, and the run's.
struct Headlines {
    by_cpus: BTreeMap<usize, Key>,
    run: Option<Key>,
}

impl Headlines {
    fn choose(bound: &Bound, keyed: &[(Key, Repetition)]) -> Headlines {
        let first = bound.arms.iter().filter(|a| a.arm.kind == ArmKind::Variant).find_map(|variant| {
            keyed.iter().find(|(key, r)| r.arm == variant.arm.name && key.0.is_some()).map(|(_, r)| r.cpus)
        });
        let sets: BTreeSet<usize> = keyed.iter().filter_map(|(key, _)| key.0.map(|k| k.0)).collect();
        let first = first.or_else(|| sets.first().copied());
        let run = match first {
            Some(cpus) => best(bound, keyed, |key| key.0.is_some_and(|k| k.0 == cpus), None),
            // Nowhere did two workers run on two CPUs: core speed alone tells regimes apart.
            None => best(bound, keyed, |_| true, None),
        };
        let of_set = |cpus: usize| {
            let chosen = best(bound, keyed, |key| key.0.is_some_and(|k| k.0 == cpus), run.map(|key| key.1));
            chosen.map(|key| (cpus, key))
        };
        let mut by_cpus: BTreeMap<usize, Key> = sets.iter().filter_map(|cpus| of_set(*cpus)).collect();
        by_cpus.extend(first.zip(run));
        Headlines { by_cpus, run }
    }

    /// The regime in which a repetition's arm is judged; one without a transfer time goes by core speed.
    fn of(&self, repetition: &Repetition) -> Option<Key> {
        match repetition.line {
            Some(_) => self.by_cpus.get(&repetition.cpus).copied(),
            None => self.run,
        }
    }
}

/// Among the regimes that `eligible` admits, the one with most repetitions in its scarcest arm. Baselines, the number
/// of arms with enough blocks and the total decide between equals; `speed`, where given, is preferred where it leaves
/// every arm enough.
fn best(
    bound: &Bound,
    keyed: &[(Key, Repetition)],
    eligible: impl Fn(&Key) -> bool,
    speed: Option<usize>,
) -> Option<Key> {
    let mut counts: BTreeMap<Key, BTreeMap<&str, usize>> = BTreeMap::new();
    for (key, repetition) in keyed.iter().filter(|(key, _)| eligible(key)) {
        *counts.entry(*key).or_default().entry(&repetition.arm).or_default() += 1;
    }
    let arms: BTreeSet<&str> = counts.values().flat_map(|c| c.keys().copied()).collect();
    let compared = |name: &str| {
        let kind = bound.arms.iter().find(|a| a.arm.name == name).map(|a| &a.arm.kind);
        matches!(kind, Some(ArmKind::Variant | ArmKind::Control))
    };
    let score = |key: &Key| {
        let count = |arm: &&str| counts[key].get(*arm).copied().unwrap_or(0);
        let scarcest = arms.iter().filter(|a| compared(a)).map(count).min().unwrap_or(0);
        let scarcest_baseline = arms.iter().filter(|a| !compared(a)).map(count).min().unwrap_or(0);
        let enough = if scarcest >= FEWEST_BLOCKS { scarcest } else { 0 };
        let same_speed = enough > 0 && speed == Some(key.1);
        let resolved = arms.iter().filter(|a| count(a) >= FEWEST_BLOCKS).count();
        (same_speed, enough, resolved, scarcest, scarcest_baseline, counts[key].values().sum::<usize>())
    };
    // Of full equals the nearer regime, so that the choice does not hang on the order of a map.
    counts.keys().rev().max_by_key(|key| score(key)).copied()
}

/// Numbers the regimes, writes the numbers into the observations and counts what is in each.
fn number(keyed: &[(Key, Repetition)], headlines: &Headlines, observations: &mut [Observation]) -> Regimes {
    let multi: BTreeSet<Key> = keyed.iter().map(|(key, _)| *key).filter(|key| key.0.is_some()).collect();
    // A repetition without transfer time belongs to the headline if its core is as fast, else to any such regime.
    let home = |key: Key| match (key.0, headlines.run) {
        (None, Some(run)) if run.1 == key.1 => run,
        (None, _) => multi.iter().find(|m| m.1 == key.1).copied().unwrap_or(key),
        _ => key,
    };
    let mut members: BTreeMap<Key, Vec<&Repetition>> = BTreeMap::new();
    for (key, repetition) in keyed {
        members.entry(home(*key)).or_default().push(repetition);
    }
    let mut list: Vec<(Key, Regime)> = members.iter().map(|(key, all)| (*key, describe(all, observations))).collect();
    list.sort_by(|(_, a), (_, b)| {
        let transfer = |r: &Regime| r.transfer_ns.unwrap_or(0.0);
        let contended = |r: &Regime| r.contended_ns.unwrap_or(0.0);
        let by_line = transfer(a).total_cmp(&transfer(b)).then(contended(a).total_cmp(&contended(b)));
        by_line.then(a.core_loop_ns.total_cmp(&b.core_loop_ns))
    });
    let number_of: BTreeMap<Key, u32> = list.iter().zip(0..).map(|((key, _), n)| (*key, n)).collect();
    let mut by_arm = BTreeMap::new();
    let mut other_speed = BTreeSet::new();
    for (key, repetition) in keyed {
        let regime = number_of[&home(*key)];
        repetition.members.iter().for_each(|m| observations[*m].regime = Some(regime));
        if let Some(headline) = headlines.of(repetition) {
            by_arm.insert(repetition.arm.clone(), number_of[&headline]);
            if headlines.run.is_some_and(|run| run.1 != headline.1) {
                other_speed.insert(repetition.arm.clone());
            }
        }
    }
    Regimes {
        run: headlines.run.map(|key| number_of[&key]),
        list: list.into_iter().zip(0..).map(|((_, regime), number)| Regime { number, ..regime }).collect(),
        by_arm,
        other_speed: other_speed.into_iter().collect(),
    }
}

fn describe(repetitions: &[&Repetition], observations: &[Observation]) -> Regime {
    let both = |of: fn(&Line) -> Option<(f64, f64)>| {
        median_of(repetitions.iter().filter_map(|r| of(&r.line?)).flat_map(|(before, after)| [before, after]))
    };
    Regime {
        number: 0,
        transfer_ns: both(|line| Some(line.transfer)),
        contended_ns: both(|line| line.contended),
        core_loop_ns: median_of(repetitions.iter().map(|r| r.core_loop_ns)).unwrap_or(0.0),
        costs: CostProbe::median(repetitions.iter().flat_map(|r| &r.members).map(|m| &observations[*m].costs)),
        repetitions: repetitions.len() as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::{Bench, observation};

    #[test]
    fn an_outlier_strands_neither_its_class_nor_the_run() {
        let mut bench = Bench::new(&["packed", "padded-64"]);
        bench.run(10, |arm, _| if arm == "packed" { 20.0 } else { 2.0 });
        let hit = |o: &&mut Observation| o.arm == "packed" && o.block == 3;
        bench.observations.iter_mut().filter(hit).for_each(|o| o.transfer_after_ns = Some(900.0));
        let regimes = assign(&bench.bound, &mut bench.observations);
        assert_eq!(regimes.list.len(), 1);
        assert_eq!(regimes.run, Some(0));
        let spoiled: Vec<_> = bench.observations.iter().filter(|o| !o.spoiled.is_empty()).collect();
        assert_eq!(spoiled.len(), 2);
        assert!(spoiled.iter().all(|o| o.spoiled == ["regime_changed"] && o.block == 3 && o.regime.is_none()));
    }

    #[test]
    fn assigning_again_forgets_what_was_set_before() {
        let mut bench = Bench::new(&["packed", "padded-64"]);
        bench.run(4, |_, _| 2.0);
        bench.observations[0].transfer_after_ns = Some(900.0);
        bench.observations[1].transfer_after_ns = Some(900.0);
        let first = assign(&bench.bound, &mut bench.observations);
        let observations = bench.observations.clone();
        assert_eq!(assign(&bench.bound, &mut bench.observations), first);
        assert_eq!(bench.observations, observations);
    }

    #[test]
    fn the_headline_is_the_regime_with_most_in_its_scarcest_arm() {
        let mut bench = Bench::new(&["packed", "padded-64"]);
        bench.run(10, |_, _| 2.0);
        // Far regime: packed 8 of 10, padded 3; near: packed 2, padded 7.
        for o in &mut bench.observations {
            let far = if o.arm == "padded-64" { o.block < 3 } else { o.block < 8 };
            let transfer = Some(if far { 215.0 } else { 54.0 });
            (o.transfer_before_ns, o.transfer_after_ns) = (transfer, transfer);
        }
        let regimes = assign(&bench.bound, &mut bench.observations);
        assert_eq!(regimes.list.iter().map(|r| r.transfer_ns).collect::<Vec<_>>(), [Some(54.0), Some(215.0)]);
        assert_eq!(regimes.run, Some(1), "3 in the scarcest arm of the far regime, 2 in that of the near one");
    }

    #[test]
    fn a_solo_repetition_goes_with_its_core_class_alone() {
        let mut bench = Bench::new(&["packed"]).with_solo();
        bench.run(4, |_, _| 2.0);
        for block in 0..4 {
            let mut solo = observation("solo:counter", block, 0, 2.0);
            (solo.transfer_before_ns, solo.transfer_after_ns) = (None, None);
            solo.core_loop_ns = if block == 0 { 2000.0 } else { 1000.0 };
            bench.observations.retain(|o| !(o.arm == solo.arm && o.block == block));
            bench.observations.push(solo);
        }
        let regimes = assign(&bench.bound, &mut bench.observations);
        let seen: Vec<_> = bench.observations.iter().filter(|o| o.arm == "solo:counter").map(|o| o.regime).collect();
        let run = regimes.run;
        assert_eq!(regimes.list[run.unwrap() as usize].transfer_ns, Some(54.0));
        assert_eq!(seen[1..], [run, run, run]);
        assert_ne!(seen[0], run);
        assert_eq!(regimes.by_arm["solo:counter"], run.unwrap());
    }

    #[test]
    fn arms_on_other_cpus_have_a_headline_of_their_own() {
        let mut bench = Bench::new(&["packed", "far"]);
        if let Ok(program) = &mut bench.bound.arms[1].program {
            program.workers[1].cpu = CpuId(9);
        }
        bench.run(5, |_, _| 2.0);
        for o in bench.observations.iter_mut().filter(|o| o.arm == "far") {
            (o.transfer_before_ns, o.transfer_after_ns) = (Some(400.0), Some(400.0));
        }
        let regimes = assign(&bench.bound, &mut bench.observations);
        assert_eq!((regimes.by_arm["packed"], regimes.by_arm["far"]), (0, 1));
        assert_eq!(regimes.run, Some(0));
    }

    #[test]
    fn a_regime_has_the_costs_of_its_own_repetitions() {
        let mut bench = Bench::new(&["packed"]);
        bench.run(8, |_, _| 2.0);
        for o in &mut bench.observations {
            let slow = o.block >= 5;
            o.core_loop_ns *= if slow { 2.0 } else { 1.0 };
            o.costs.bump_ns = Some(if slow { 0.66 } else { 0.33 });
        }
        let regimes = assign(&bench.bound, &mut bench.observations);
        assert_eq!(regimes.list.iter().map(|r| r.costs.bump_ns).collect::<Vec<_>>(), [Some(0.33), Some(0.66)]);
        assert_eq!(regimes.list[0].costs.wake_ns, None, "what nobody measured stays open");
    }

    #[test]
    fn halved_core_speed_is_another_regime() {
        let mut bench = Bench::new(&["packed", "padded-64"]);
        bench.run(8, |_, _| 2.0);
        bench.observations.iter_mut().filter(|o| o.block >= 5).for_each(|o| o.core_loop_ns *= 2.0);
        let regimes = assign(&bench.bound, &mut bench.observations);
        assert_eq!(regimes.list.len(), 2);
        assert_eq!(regimes.list[0].core_loop_ns * 2.0, regimes.list[1].core_loop_ns);
        assert_eq!(regimes.run, Some(0));
    }
}

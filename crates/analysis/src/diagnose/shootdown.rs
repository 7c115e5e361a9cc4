//! TLB shootdown: a worker gives memory back, and the kernel interrupts whoever may still translate it.

mod pattern;
mod seen;

use super::{cost, severity};
use crate::figures::{batch_ns, ns_per_op};
use crate::view::View;
use crate::words;
use pattern::{Instead, Shot, shots};
use plan::expect::Quantile;
use plan::{BoundArm, Program};
use record::{Diagnosis, Gain, Interval, Observation};
use seen::Seen;
use std::collections::BTreeSet;

/// By how much the victim's last thousandth has to be longer to count, with its whole interval. Between arms that do
/// the same it moves by some tens of per cent, whatever the control arm's passes say.
const LEAST_OF_TAIL: f64 = 1.5;
/// By how much the interrupts of the victim's CPU have to be more: the kernel sends some for its own ends.
const LEAST_OF_INTERRUPTS: f64 = 10.0;

/// What the victim pays by: the first that tells.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Measure {
    /// The batches' 99.9th percentile: few of them are hit, and those for long.
    Tail,
    /// Nanoseconds a pass.
    Pass,
}

impl Measure {
    fn series(self, workers: &[&Observation]) -> Option<f64> {
        match self {
            Measure::Tail => batch_ns(workers, Quantile::P999),
            Measure::Pass => ns_per_op(workers),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Measure::Tail => "one of its batches in a thousand takes",
            Measure::Pass => "a pass takes",
        }
    }
}

/// A role of an arm that is shot at, and what that costs it.
struct Sick<'a> {
    arm: &'a BoundArm,
    program: &'a Program,
    role: &'a str,
    shots: Vec<Shot<'a>>,
    cost: Cost<'a>,
}

impl Sick<'_> {
    /// Whether some culprit is a thread of the victim's process.
    fn in_one_process(&self) -> bool {
        self.shots.iter().any(|shot| shot.one_process)
    }
}

/// The victim's figure over that in an arm without.
struct Cost<'a> {
    measure: Measure,
    ratio: Interval,
    against: &'a BoundArm,
    instead: Instead,
}

/// The worst between processes and the worst between threads of one.
pub(super) fn find(view: &View) -> Vec<(f64, Diagnosis)> {
    let mut found: Vec<Sick> = Vec::new();
    for (arm, program) in view.variants() {
        for role in &arm.arm.case.roles {
            let shots = shots(program, &role.name);
            if let Some(cost) = (!shots.is_empty()).then(|| cost_of(view, arm, &role.name, &shots)).flatten() {
                found.push(Sick { arm, program, role: &role.name, shots, cost });
            }
        }
    }
    found.sort_by(|a, b| b.cost.ratio.median.total_cmp(&a.cost.ratio.median));
    let (threads, processes): (Vec<Sick>, Vec<Sick>) = found.into_iter().partition(Sick::in_one_process);
    [processes, threads].iter().filter_map(|alike| worst(view, alike)).collect()
}

/// The first of those that are sick alike, the worst first; it names the arms of all.
fn worst(view: &View, alike: &[Sick]) -> Option<(f64, Diagnosis)> {
    let worst = alike.first()?;
    let mut arms: Vec<String> = Vec::new();
    for sick in alike {
        if !arms.contains(&sick.arm.arm.name) {
            arms.push(sick.arm.arm.name.clone());
        }
    }
    Some((worst.cost.ratio.median, diagnosis(view, worst, arms)))
}

/// As against the variants in which the victim does the same and is not shot at, or less often. Of those that gain
/// alike the one whose cure is preferred; one that gives nothing back at all is no cure, and speaks where no other
/// does.
fn cost_of<'a>(view: &View<'a>, sick: &BoundArm, role: &str, shots_at: &[Shot]) -> Option<Cost<'a>> {
    let steps = |arm: &BoundArm| arm.arm.case.roles.iter().find(|r| r.name == role).map(|r| r.steps.clone());
    let same = |arm: &BoundArm| arm.arm.name != sick.arm.name && steps(arm) == steps(sick);
    let compared = view.variants().filter(|(arm, _)| same(arm)).filter_map(|(arm, program)| {
        let instead = Instead::of(shots_at, program, &shots(program, role))?;
        seen::fewer_interrupts(view, sick, arm, role).then_some(())?;
        let (measure, ratio) = beyond(view, sick, arm, role)?;
        Some(Cost { measure, ratio, against: arm, instead })
    });
    let all: Vec<Cost> = compared.collect();
    let best = all.iter().map(|cost| cost.ratio.median).reduce(f64::max)?;
    let alike = |cost: &Cost| cost.ratio.median * LEAST_OF_TAIL >= best;
    all.into_iter().filter(alike).min_by_key(|cost| cost.instead)
}

/// The first of the measures by which the sick arm is worse beyond doubt.
fn beyond(view: &View, sick: &BoundArm, other: &BoundArm, role: &str) -> Option<(Measure, Interval)> {
    [(Measure::Tail, LEAST_OF_TAIL), (Measure::Pass, cost::threshold(view))].into_iter().find_map(|(measure, least)| {
        let of = |arm: &BoundArm| view.series(&arm.arm.name, role, |workers| measure.series(workers));
        let name = format!("shootdown/{}/{}/{role}/{measure:?}", sick.arm.name, other.arm.name);
        let ratio = view.ratio_of(&of(sick), &of(other), &name)?;
        (ratio.low > least).then_some((measure, ratio))
    })
}

fn diagnosis(view: &View, sick: &Sick, arms: Vec<String>) -> Diagnosis {
    let Sick { arm, program, role, shots, cost } = sick;
    let seen = Seen::of(view, sick);
    let regions = shots.iter().filter_map(|shot| program.regions.get(shot.step.region as usize));
    let culprits: BTreeSet<&str> = shots.iter().map(|shot| shot.culprit.role_name.as_str()).collect();
    let others = culprits.iter().filter(|culprit| *culprit != role);
    Diagnosis {
        kind: "tlb_shootdown".to_owned(),
        severity: severity(cost.ratio.median),
        text: text(arm, role, shots, cost, &seen),
        arms,
        fields: regions.map(|region| region.name.clone()).collect::<BTreeSet<_>>().into_iter().collect(),
        roles: std::iter::once(role).chain(others).map(|role| (*role).to_owned()).collect(),
        evidence: seen.evidence(view, sick),
        cure: cure(shots, cost),
        expected_gain: (cost.instead != Instead::Nothing)
            .then(|| Gain { arm: cost.against.arm.name.clone(), ratio: cost.ratio }),
    }
}

fn text(arm: &BoundArm, role: &str, shots: &[Shot], cost: &Cost, seen: &Seen) -> String {
    let steps: BTreeSet<&str> = shots.iter().map(|shot| shot.text).collect();
    let culprits: BTreeSet<&str> = shots.iter().map(|shot| shot.culprit.role_name.as_str()).collect();
    let list = |names: BTreeSet<&str>| words::list(&names.into_iter().collect::<Vec<_>>());
    let why = match shots.iter().any(|shot| shot.one_process) {
        true => "They share an address space, so the kernel has every CPU that runs it forget the translations",
        false => "Both map that memory, so the kernel has the other's CPU forget the translations",
    };
    let how_often = seen.interrupts_per_call.map_or(String::new(), |per_call| {
        format!(": {} interrupts of the CPU of `{role}` for each such call", words::figure(per_call))
    });
    let how_long =
        seen.stall_ns.map_or(String::new(), |ns| format!(", each of which stalls it for {} ns", words::figure(ns)));
    format!(
        "In `{}`, {} gives memory back by {}. {why}{how_often}{how_long}. So {} {} times as long as in `{}`, though \
         `{role}` never touches that memory then.",
        arm.arm.name,
        list(culprits),
        list(steps),
        cost.measure.words(),
        words::figure(cost.ratio.median),
        cost.against.arm.name
    )
}

fn cure(shots: &[Shot], cost: &Cost) -> String {
    let all = match shots.iter().any(|shot| shot.one_process) {
        true => {
            "use the memory again instead of giving it back (a pool; for malloc a higher M_MMAP_THRESHOLD and \
             M_TRIM_THRESHOLD), give it back in fewer and larger pieces, or let a process of its own do that"
        }
        false => {
            "use the memory again instead of giving it back, give it back in fewer and larger pieces, or have fewer \
             processes map it"
        }
    };
    match cost.instead.words() {
        Some(does) => format!("{all}: `{}`, which {does}, shows the gain", cost.against.arm.name),
        None => format!("{all}; no variant of this run does, `{}` gives nothing back at all", cost.against.arm.name),
    }
}

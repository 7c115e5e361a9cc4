//! From what was measured to the record: gains with intervals, and the advice.

use super::{Clock, question::Question, ranking::Ranking};
use crate::assemble;
use crate::campaign::Measured;
use crate::cli::{AdviseOptions, EmitLanguage};
use crate::machine::Machine;
use advise::judge::{self, Entry, Noise, RoleVersus, Verdict, Versus};
use advise::{Change, PRESENT, emit};
use analysis::{Kept, Who};
use record::{
    AdviceRecord, AdviseRun, AdvisedLayout, AdvisedRole, ArmState, ArmSummary, Interval, LayoutState, SCHEMA_VERSION,
};
use std::time::SystemTime;

/// What the record came from.
pub(crate) struct Origin<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) seed: u64,
    pub(crate) started: SystemTime,
    pub(crate) clock: Clock,
}

/// The name of the present layout's twin.
const CONTROL: &str = "control";

pub(crate) fn assemble(
    options: &AdviseOptions,
    question: &Question,
    ranking: &Ranking,
    measured: Measured,
    origin: Origin<'_>,
) -> AdviseRun {
    let arms = &measured.findings.arms;
    let regime = |name: &str| arms.iter().find(|arm| arm.name == name).and_then(|arm| arm.regime);
    let kept = Kept::of(&measured.observations, regime, origin.seed);
    let roles = question.roles();
    let versus = |base: &str, name: &str| versus(&kept, base, name, &roles);
    let noise = Noise::of(&versus(PRESENT, CONTROL));
    let is_measured = |index: &usize| arms.iter().any(|arm| arm.name == question.candidates[*index].name);
    let order: Vec<usize> = std::iter::once(0).chain(ranking.order.iter().copied()).collect();
    let (ran, idle): (Vec<usize>, Vec<usize>) = order.into_iter().partition(is_measured);
    let name = |entry: usize| question.candidates[ran[entry]].name.as_str();
    let entries: Vec<Entry> = ran
        .iter()
        .map(|&index| {
            let candidate = &question.candidates[index];
            Entry {
                name: candidate.name.clone(),
                bytes: candidate.bytes,
                lines: question.lines(candidate),
                is_layout_only: candidate.is_layout_only(),
                gain: versus(PRESENT, &candidate.name),
            }
        })
        .collect();
    let advice = judge::judge(&entries, &noise, |a, b| versus(name(b), name(a)));
    let told = |index: usize, gain: Option<&Versus>| {
        layout(question, ranking, index, gain.map(|gain| Told { gain, noise: &noise, arms }))
    };
    let layouts = ran.iter().zip(&entries).map(|(&index, entry)| told(index, Some(&entry.gain)));
    let layouts = layouts.chain(idle.iter().map(|&index| told(index, None))).collect();
    let emitted = options.emit.map(|language| {
        let candidate = &question.candidates[ran[advice.layout]];
        let name = options.name.clone().unwrap_or_else(|| emit::type_name(&question.loaded.plan.name));
        let language = match language {
            EmitLanguage::C => emit::Language::C,
            EmitLanguage::Cpp => emit::Language::Cpp,
            EmitLanguage::Rust => emit::Language::Rust,
        };
        emit::text(language, candidate, &emit::Header { name, reason: advice.reason.clone() })
    });
    AdviseRun {
        schema_version: SCHEMA_VERSION,
        tool: assemble::tool(),
        command: assemble::typed_command(),
        seed: origin.seed,
        started_utc: humantime::format_rfc3339_seconds(origin.started).to_string(),
        duration_s: origin.clock.started.elapsed().as_secs_f64(),
        budget_s: origin.clock.budget.as_secs_f64(),
        host: origin.machine.record(),
        scenario: assemble::scenario_text(&question.loaded),
        present: question.present.clone(),
        resolution: noise.overall,
        blocks: measured.blocks,
        layouts,
        left_out: question.left_out.clone(),
        advice: AdviceRecord {
            layout: name(advice.layout).to_owned(),
            reason: advice.reason,
            smaller: advice.smaller.map(|entry| name(entry).to_owned()),
            code_changes: advice.code.iter().map(|&entry| name(entry).to_owned()).collect(),
            conclusive: advice.conclusive,
        },
        emitted,
        warnings: measured.findings.warnings.clone(),
    }
}

/// `name` held against `base`: how much faster it is.
fn versus(kept: &Kept<'_>, base: &str, name: &str, roles: &[&str]) -> Versus {
    let role = |role: &&str| RoleVersus {
        role: (*role).to_owned(),
        gain: kept.gain(base, name, role, Who::Median),
        slowest: kept.gain(base, name, role, Who::Slowest),
    };
    Versus { overall: kept.gain_over(base, name, roles), roles: roles.iter().map(role).collect() }
}

/// What was measured of a layout.
#[derive(Copy, Clone)]
struct Told<'a> {
    gain: &'a Versus,
    noise: &'a Noise,
    arms: &'a [ArmSummary],
}

fn layout(question: &Question, ranking: &Ranking, index: usize, told: Option<Told<'_>>) -> AdvisedLayout {
    let candidate = &question.candidates[index];
    let arm = told.and_then(|told| told.arms.iter().find(|arm| arm.name == candidate.name));
    let (state, why) = match (arm, &question.programs[index]) {
        (Some(arm), _) if arm.state == ArmState::Measured => (LayoutState::Measured, None),
        (Some(arm), _) => (LayoutState::Unresolved, arm.why.clone()),
        (None, Err(why)) => (LayoutState::NotApplicable, Some(why.clone())),
        (None, Ok(_)) => (LayoutState::RankedOut, Some("others rank before it".to_owned())),
    };
    let is_present = index == 0;
    let against = told.filter(|_| !is_present);
    AdvisedLayout {
        name: candidate.name.clone(),
        same_as: candidate.same_as.clone(),
        what: candidate.what.clone(),
        bytes: candidate.bytes,
        align: candidate.align,
        code_change: match &candidate.change {
            Change::Code(when) => Some(when.clone()),
            Change::Nothing | Change::Layout => None,
        },
        state,
        why,
        gain: against.and_then(|told| told.gain.overall),
        verdict: against.map(|told| verdict(told.gain.verdict(told.noise))),
        modelled_gain: ranking.gains[index].as_ref().ok().map(|gain| gain.overall),
        not_modelled: ranking.gains[index].as_ref().err().cloned(),
        modelled_elsewhere: ranking.elsewhere.get(&index).cloned().unwrap_or_default(),
        roles: roles(question, ranking, index, against, arm),
        offsets: candidate.offsets.clone(),
        variant: advise::toml(candidate),
    }
}

fn roles(
    question: &Question,
    ranking: &Ranking,
    index: usize,
    against: Option<Told<'_>>,
    arm: Option<&ArmSummary>,
) -> Vec<AdvisedRole> {
    let candidate = &question.candidates[index];
    let places = candidate.places();
    let told = question.roles().into_iter().enumerate().map(|(nth, name)| {
        let case = candidate.arm.case.roles.iter().position(|role| role.name == name);
        let gain = against.and_then(|told| told.gain.roles.get(nth));
        let verdicts = against.map(|told| told.gain.of_role(nth, told.noise));
        let summary = arm.and_then(|arm| arm.roles.iter().find(|role| role.role == name));
        let interval = |of: fn(&RoleVersus) -> Option<Interval>| gain.and_then(of);
        AdvisedRole {
            role: name.to_owned(),
            lines_per_op: case.map_or(0.0, |role| advise::lines_per_op(&candidate.usage, role, &places)),
            ns_per_op: summary.and_then(|role| role.ns_per_op),
            gain: interval(|role| role.gain),
            verdict: verdicts.map(|(median, _)| verdict(median)),
            slowest_worker_gain: interval(|role| role.slowest),
            slowest_worker_verdict: verdicts.map(|(_, slowest)| verdict(slowest)),
            modelled_gain: ranking.gains[index].as_ref().ok().and_then(|gain| gain.roles.get(name).copied()),
        }
    });
    told.collect()
}

fn verdict(verdict: Verdict) -> record::Verdict {
    match verdict {
        Verdict::Faster => record::Verdict::Faster,
        Verdict::Slower => record::Verdict::Slower,
        Verdict::NoDifference(_) => record::Verdict::NoDifference,
        Verdict::Unresolved => record::Verdict::Unresolved,
    }
}

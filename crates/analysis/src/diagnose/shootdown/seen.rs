//! What a run saw of shootdowns: interrupts, calls, stalls.

use super::{LEAST_OF_INTERRUPTS, Measure, Sick};
use crate::counters::{measured, why_not};
use crate::diagnose::evidence::resolution;
use crate::stats::median_of;
use crate::view::View;
use plan::BoundArm;
use record::{Evidence, KernelObservation, Observation, Reading};

const INTERRUPTS: &str = "tlb_shootdowns";

/// Figures of the sick arm that a sentence can name.
pub(super) struct Seen {
    /// Interrupts of the victims' CPUs for each of the culprits' calls.
    pub(super) interrupts_per_call: Option<f64>,
    /// What one interrupt costs the victim.
    pub(super) stall_ns: Option<f64>,
    calls: u64,
    /// Share of the victim's function-call interrupts and flushes that fell into a culprit's call.
    during_calls: Option<f64>,
}

impl Seen {
    pub(super) fn of(view: &View, sick: &Sick) -> Seen {
        let arm = &sick.arm.arm.name;
        let victims = view.workers(arm, Some(sick.role));
        let is_culprit = |o: &&&Observation| sick.shots.iter().any(|shot| shot.culprit.index.0 == o.worker);
        let all = view.workers(arm, None);
        let calls: u64 = all.iter().filter(is_culprit).filter_map(|o| o.memory.as_ref()).map(|m| m.calls).sum();
        let interrupts = measured(&victims, INTERRUPTS).reading.value();
        let kernel = || victims.iter().filter_map(|o| o.kernel.as_ref());
        let events = |k: &KernelObservation| {
            ["interrupt", "flush_remote"].iter().filter_map(|name| k.events.get(*name)).sum::<u64>()
        };
        let (during, logged) = (kernel().map(|k| k.during_calls).sum::<u64>(), kernel().map(events).sum::<u64>());
        Seen {
            interrupts_per_call: interrupts.filter(|_| calls > 0).map(|n| n as f64 / calls as f64),
            stall_ns: median_of(kernel().filter_map(|k| k.stall_ns)),
            calls,
            during_calls: (logged > 0).then(|| during as f64 / logged as f64),
        }
    }

    pub(super) fn evidence(&self, view: &View, sick: &Sick) -> Vec<Evidence> {
        let (arm, against, role) = (&sick.arm.arm.name, &sick.cost.against.arm.name, sick.role);
        let mut all = vec![
            times(format!("`{role}` in `{arm}` over `{against}`"), sick.cost.ratio.median),
            times(format!("`{role}` in `{arm}` over `{against}`, low end"), sick.cost.ratio.low),
        ];
        for measure in [Measure::Tail, Measure::Pass] {
            all.extend([arm, against].map(|arm| figure(view, arm, role, measure)));
        }
        all.extend([arm, against].map(|arm| interrupts(view, arm, role)));
        all.push(Evidence::new(
            format!("calls that gave memory back in `{arm}`"),
            Some(self.calls as f64),
            "",
            "measured",
        ));
        all.push(optional(
            format!("interrupts of the CPU of `{role}` a call"),
            self.interrupts_per_call,
            "",
            "no count of interrupts, or no call",
        ));
        let logged = log_missing(view, arm, role);
        all.push(optional(format!("stall of `{role}` an interrupt, median"), self.stall_ns, "ns", &logged));
        let share = self.during_calls.map(|share| share * 100.0);
        all.push(optional(format!("interrupts and flushes of `{role}` during such a call"), share, "%", &logged));
        all.extend(["page_faults", "dtlb_load_misses"].map(|counter| per_op(view, arm, role, counter)));
        all.push(resolution(view));
        all
    }
}

/// Whether the victim's CPU takes far more of them in the sick arm; also where they were not counted in both.
pub(super) fn fewer_interrupts(view: &View, sick: &BoundArm, other: &BoundArm, role: &str) -> bool {
    let rate = |arm: &BoundArm| measured(&view.workers(&arm.arm.name, Some(role)), INTERRUPTS).per_second;
    rate(sick).zip(rate(other)).is_none_or(|(sick, other)| sick > LEAST_OF_INTERRUPTS * other)
}

fn times(name: String, ratio: f64) -> Evidence {
    Evidence::new(name, Some(ratio), "times", "measured")
}

fn optional(name: String, value: Option<f64>, unit: &str, missing: &str) -> Evidence {
    match value {
        Some(_) => Evidence::new(name, value, unit, "measured"),
        None => Evidence::new(name, None, unit, &format!("missing: {missing}")),
    }
}

fn figure(view: &View, arm: &str, role: &str, measure: Measure) -> Evidence {
    let what = match measure {
        Measure::Tail => "batch_p999_ns",
        Measure::Pass => "ns_per_op",
    };
    let median = median_of(view.series(arm, role, |workers| measure.series(workers)).into_values());
    let missing = match measure {
        Measure::Tail => "its loop has no step `touch`, whose chunks are the batches",
        Measure::Pass => "no repetition counted",
    };
    optional(format!("{what} of `{role}` in `{arm}`"), median, "ns", missing)
}

fn interrupts(view: &View, arm: &str, role: &str) -> Evidence {
    let seen = measured(&view.workers(arm, Some(role)), INTERRUPTS);
    let name = format!("shootdown interrupts a second of the CPUs of `{role}` in `{arm}`");
    optional(name, seen.per_second, "/s", &missing(&seen.reading))
}

fn per_op(view: &View, arm: &str, role: &str, counter: &str) -> Evidence {
    let seen = measured(&view.workers(arm, Some(role)), counter);
    optional(format!("{counter} of `{role}` in `{arm}` a pass"), seen.per_op, "", &missing(&seen.reading))
}

fn missing(reading: &Reading) -> String {
    why_not(reading).unwrap_or_else(|| "no repetition counted".to_owned())
}

/// Why the kernel's log does not tell.
fn log_missing(view: &View, arm: &str, role: &str) -> String {
    let workers = view.workers(arm, Some(role));
    let reading = workers.iter().find_map(|o| o.kernel.as_ref()?.missing.as_ref());
    reading
        .and_then(why_not)
        .unwrap_or_else(|| "no logged interrupt fell into both a call and a stalled batch".to_owned())
}

//! What the reader should know about a run's figures, each with what to do about it. The ids are stable.

use crate::summary::lost_share;
use crate::view::View;
use crate::words::{count, figure, list, percent};
use record::{ArmState, ArmSummary, Kind, Reading, Warning};
use std::collections::{BTreeMap, BTreeSet};

/// Share of lost co-running time worth a word.
const LOST_SHARE: f64 = 0.05;

/// Resolution beyond which differences that people care about can hide.
const COARSE_RESOLUTION: f64 = 0.10;

/// Counters that the kernel itself keeps, as `counters` names them: they say nothing about the machine's own.
const SOFTWARE: [&str; 4] = ["context_switches", "cpu_migrations", "page_faults", "task_clock"];

/// All warnings, in a fixed order.
pub(crate) fn warnings(view: &View, arms: &[ArmSummary]) -> Vec<Warning> {
    let single =
        [lost_time(view), spoiled(view), regimes_mixed(view), core_speed(view), unresolved(arms), resolution(view)];
    let logs = [wait_log_full(view), shares_cpu(arms)];
    single.into_iter().flatten().chain(counters(view)).chain(logs.into_iter().flatten()).collect()
}

fn warning(id: &str, text: String, advice: impl Into<String>) -> Option<Warning> {
    Some(Warning { id: id.to_owned(), text, advice: advice.into() })
}

fn lost_time(view: &View) -> Option<Warning> {
    let masked = |arm: &str| view.arm(arm).and_then(|a| a.program.as_ref().ok()).is_some_and(|p| !p.shares_cpu);
    let share = lost_share(view.observations.iter().filter(|o| masked(&o.arm)));
    let text =
        format!("{} of the windows was lost: some worker was off its CPU, so that time does not count", percent(share));
    (share > LOST_SHARE)
        .then(|| warning("lost_time", text, "stop what else runs on these CPUs, or choose others with `--cpus`"))?
}

fn spoiled(view: &View) -> Option<Warning> {
    let mut by_reason: BTreeMap<&str, BTreeSet<(&str, u32)>> = BTreeMap::new();
    let mut all: BTreeSet<(&str, u32)> = BTreeSet::new();
    for observation in view.observations {
        let repetition = (observation.arm.as_str(), observation.block);
        all.insert(repetition);
        for reason in &observation.spoiled {
            by_reason.entry(reason).or_default().insert(repetition);
        }
    }
    let spoiled: BTreeSet<_> = by_reason.values().flatten().collect();
    let reasons: Vec<String> = by_reason.iter().map(|(reason, of)| format!("{reason} {}", of.len())).collect();
    let text = format!("{} of {} do not count: {}", spoiled.len(), count(all.len(), "repetition"), reasons.join(", "));
    let advice = "run on a quieter machine, or with more `--repetitions`; each is marked in `observations`";
    (!spoiled.is_empty()).then(|| warning("spoiled", text, advice))?
}

fn regimes_mixed(view: &View) -> Option<Warning> {
    let regimes = &view.regimes.list;
    let one = |r: &record::Regime| {
        let transfer = r.transfer_ns.map_or("no transfer".to_owned(), |ns| format!("{} ns a transfer", figure(ns)));
        let contended = r.contended_ns.map_or(String::new(), |ns| format!(", {} ns a contended pass", figure(ns)));
        format!(
            "{} at {transfer}{contended}, core loop {} ns",
            count(r.repetitions as usize, "repetition"),
            figure(r.core_speed)
        )
    };
    let headline = view.regimes.run.map(|n| format!("; the figures are those of {}", one(&regimes[n as usize])));
    let all: Vec<String> = regimes.iter().map(one).collect();
    let text = format!(
        "the machine changed under the run, or arms ran on CPUs at different distances: {}{}",
        all.join("; "),
        headline.unwrap_or_default()
    );
    let advice = "compare within a regime only; `other_regimes` holds the rest; more `--repetitions` help the headline";
    (regimes.len() > 1).then(|| warning("regimes_mixed", text, advice))?
}

fn core_speed(view: &View) -> Option<Warning> {
    let arms = &view.regimes.other_speed;
    let text = format!("{} ran on cores of another speed than the first variant, and on no others", list(arms));
    let advice = "a ratio between these arms holds the cores' difference too; give all arms the same `cpus`";
    (!arms.is_empty()).then(|| warning("core_speed", text, advice))?
}

fn unresolved(arms: &[ArmSummary]) -> Option<Warning> {
    let unresolved = arms.iter().filter(|a| a.state == ArmState::Unresolved);
    let each: Vec<String> = unresolved.map(|a| format!("`{}`: {}", a.name, a.why.as_deref().unwrap_or(""))).collect();
    let advice = "give it more blocks with `--repetitions`, longer windows with `--window`, or a quieter machine";
    (!each.is_empty()).then(|| warning("unresolved", format!("no figure for {}", each.join("; ")), advice))?
}

fn resolution(view: &View) -> Option<Warning> {
    let coarse = view.resolution.filter(|r| *r > COARSE_RESOLUTION)?;
    let text =
        format!("the control arm differs from its twin by up to {}: smaller effects cannot be seen", percent(coarse));
    warning("resolution", text, "more `--repetitions` sharpen it")
}

/// Every state in which readings came, by counter, with one reason each.
fn states<'a>(view: &View<'a>) -> BTreeMap<&'a str, BTreeMap<&'a str, &'a Reading>> {
    let mut states: BTreeMap<&'a str, BTreeMap<&'a str, &'a Reading>> = BTreeMap::new();
    for (name, reading) in view.observations.iter().flat_map(|o| &o.counters) {
        states.entry(reading.state()).or_default().entry(name).or_insert(reading);
    }
    states
}

fn counters(view: &View) -> Vec<Warning> {
    let states = states(view);
    let of = |state: &str| states.get(state).into_iter().flatten().map(|(n, r)| (*n, *r)).collect::<Vec<_>>();
    let names = |found: &[(&str, &Reading)]| list(&found.iter().map(|f| f.0).collect::<Vec<_>>());
    let reason =
        |found: &[(&str, &Reading)]| found.iter().find_map(|f| crate::counters::why_not(f.1)).unwrap_or_default();
    let hardware = |found: Vec<(&str, &Reading)>| found.into_iter().any(|f| !SOFTWARE.contains(&f.0));
    let counted = hardware(of("counted")) || hardware(of("scaled")) || hardware(of("denied"));
    let mut found = Vec::new();
    let unsupported = of("unsupported");
    if !unsupported.is_empty() {
        let (id, advice) = match !counted && hardware(unsupported.clone()) {
            true => (
                "no_pmu",
                "times and verdicts do not need them; run on bare metal, or a VM with a virtual PMU, to count",
            ),
            false => ("counters_unsupported", "the others count; docs/counters.md says what each CPU family can count"),
        };
        let text = format!("cannot be counted on this machine: {} ({})", names(&unsupported), reason(&unsupported));
        found.extend(warning(id, text, advice));
    }
    let denied = of("denied");
    if let Some((_, Reading::Denied { why, cure })) = denied.first() {
        found.extend(warning(
            "counters_denied",
            format!("may not be counted: {} ({why})", names(&denied)),
            cure.clone(),
        ));
    }
    let starved = of("not_scheduled");
    if !starved.is_empty() {
        let text = format!("never got onto a counter in some window: {}", names(&starved));
        found.extend(warning(
            "counters_not_scheduled",
            text,
            "count fewer events, or stop other users of the counters",
        ));
    }
    found
}

fn wait_log_full(view: &View) -> Option<Warning> {
    let lost: u64 = view.observations.iter().flat_map(|o| &o.locks).map(|l| l.waits_lost).sum();
    let text = format!("{lost} contended waits found their log full: counted, but their times are in no percentile");
    (lost > 0).then(|| warning("wait_log_full", text, "shorten the window with `--window`"))?
}

fn shares_cpu(arms: &[ArmSummary]) -> Option<Warning> {
    let unmasked = arms.iter().filter(|a| a.mask == "none" && a.kind != Kind::Plain);
    let names: Vec<&str> = unmasked.map(|a| a.name.as_str()).collect();
    let text =
        format!("workers share a CPU in {}: nothing is masked, and the scheduler is part of the figure", list(&names));
    (!names.is_empty()).then(|| warning("shares_cpu", text, "use as many workers as CPUs to see the memory alone"))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::{Bench, lock_observation};
    use record::Observation;

    fn ids(change: impl Fn(&mut Observation)) -> Vec<String> {
        let mut bench = Bench::new(&["packed", "padded-64"]);
        bench.run(6, |_, _| 2.0);
        bench.observations.iter_mut().for_each(change);
        bench.analyse().warnings.into_iter().map(|w| w.id).collect()
    }

    fn counter(name: &str, reading: Reading) -> impl Fn(&mut Observation) {
        move |o| {
            for kept_by_kernel in ["context_switches", "cpu_migrations", "task_clock"] {
                o.counters.insert(kept_by_kernel.into(), Reading::Counted { value: 0 });
            }
            o.counters.insert(name.into(), reading.clone());
        }
    }

    #[test]
    fn a_quiet_run_warns_of_nothing() {
        assert_eq!(ids(|_| ()), Vec::<String>::new());
    }

    #[test]
    fn each_cause_has_its_id() {
        assert_eq!(ids(|o| o.lost_ns = 0.06 * o.window_ns), ["lost_time"]);
        assert_eq!(ids(|o| o.lost_ns = 0.04 * o.window_ns), Vec::<String>::new());
        let spoil = |o: &mut Observation| {
            if o.block == 0 && o.arm == "packed" {
                o.spoiled.push("gap_log_full".into());
            }
        };
        assert_eq!(ids(spoil), ["spoiled"]);
        let move_away = |o: &mut Observation| {
            if o.block == 0 {
                (o.transfer_before_ns, o.transfer_after_ns) = (Some(215.0), Some(215.0));
            }
        };
        assert_eq!(ids(move_away), ["regimes_mixed"]);
        assert_eq!(ids(|o| o.locks.push(lock_observation("m", 9, &[], &[]))), Vec::<String>::new());
        let full = |o: &mut Observation| {
            let mut lock = lock_observation("m", 9, &[], &[]);
            lock.waits_lost = 2;
            o.locks.push(lock);
        };
        assert_eq!(ids(full), ["wait_log_full"]);
    }

    #[test]
    fn counters_warn_by_what_keeps_them_away() {
        let unsupported = || Reading::Unsupported { why: "ENOENT".into() };
        assert_eq!(ids(counter("cycles", unsupported())), ["no_pmu"]);
        assert_eq!(ids(counter("page_faults", unsupported())), ["counters_unsupported"]);
        let some = |o: &mut Observation| {
            counter("cycles", Reading::Counted { value: 1 })(o);
            counter("llc_loads", unsupported())(o);
        };
        assert_eq!(ids(some), ["counters_unsupported"]);
        let denied = Reading::Denied { why: "paranoid 4".into(), cure: "sysctl".into() };
        assert_eq!(ids(counter("cycles", denied)), ["counters_denied"]);
        assert_eq!(ids(counter("cycles", Reading::NotScheduled)), ["counters_not_scheduled"]);
    }

    #[test]
    fn shared_cpus_and_missing_figures_are_told() {
        let mut bench = Bench::new(&["packed", "padded-64"]);
        if let Ok(program) = &mut bench.bound.arms[0].program {
            program.shares_cpu = true;
        }
        bench.run(6, |_, _| 2.0);
        bench.observations.retain(|o| o.arm != "padded-64" || o.block < 2);
        let ids: Vec<String> = bench.analyse().warnings.into_iter().map(|w| w.id).collect();
        assert_eq!(ids, ["unresolved", "shares_cpu"]);
    }

    #[test]
    fn a_coarse_control_is_told() {
        let mut bench = Bench::new(&["packed", "padded-64"]);
        bench.run(6, |arm, block| if arm == "control" { 2.0 + 0.2 * f64::from(block) } else { 2.0 });
        let found = bench.analyse().warnings;
        assert_eq!(found[0].id, "resolution");
        assert!(found[0].text.contains("64 %"), "{}", found[0].text);
    }
}

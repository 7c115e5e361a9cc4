//! What the reader should know about a run's figures, each with what to do about it. The ids are stable.

mod uncounted;

use crate::counters;
use crate::summary::lost_share;
use crate::view::View;
use crate::words::{count, figure, list, percent};
use record::{ArmState, ArmSummary, Kind, Observation, Reading, Warning};
use std::collections::{BTreeMap, BTreeSet};

/// Share of lost co-running time worth a word.
const LOST_SHARE: f64 = 0.05;

/// Resolution beyond which differences that people care about can hide.
const COARSE_RESOLUTION: f64 = 0.10;

/// Share of CPU time that a hypervisor took, from which on figures that are not masked move visibly.
const STOLEN_SHARE: f64 = 0.01;

/// Why a repetition is spoiled whose region was punched all through.
const USED_UP: &str = "region_used_up";

/// All warnings, in a fixed order.
pub(crate) fn warnings(view: &View, arms: &[ArmSummary]) -> Vec<Warning> {
    let single =
        [lost_time(view), spoiled(view), regimes_mixed(view), core_speed(view), unresolved(arms), resolution(view)];
    let logs = [
        throttled(view),
        stolen(view),
        wait_log_full(view),
        memory_log_full(view),
        kernel_log(view),
        kernel_log_full(view),
        shares_cpu(arms),
    ];
    single.into_iter().flatten().chain(uncounted::warnings(view)).chain(logs.into_iter().flatten()).collect()
}

fn warning(id: &str, text: String, advice: impl Into<String>) -> Warning {
    Warning { id: id.to_owned(), text, advice: advice.into() }
}

fn lost_time(view: &View) -> Option<Warning> {
    let masked = |arm: &str| view.arm(arm).and_then(|a| a.program.as_ref().ok()).is_some_and(|p| !p.shares_cpu);
    let share = lost_share(view.observations.iter().filter(|o| masked(&o.arm)));
    let text =
        format!("{} of the windows was lost: some worker was off its CPU, so that time does not count", percent(share));
    (share > LOST_SHARE)
        .then(|| warning("lost_time", text, "stop what else runs on these CPUs, or choose others with `--cpus`"))
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
    let advice = match by_reason.contains_key(USED_UP) {
        false => "run on a quieter machine, or with more `--repetitions`; each is marked in `observations`",
        true => {
            "`region_used_up`: give the region a larger `size`, punch less a second (`pause`), or shorten `window`; for the \
             others run on a quieter machine, or with more `--repetitions`; each is marked in `observations`"
        }
    };
    (!spoiled.is_empty()).then(|| warning("spoiled", text, advice))
}

fn regimes_mixed(view: &View) -> Option<Warning> {
    let regimes = &view.regimes.list;
    let one = |r: &record::Regime| {
        let transfer = r.transfer_ns.map_or("no transfer".to_owned(), |ns| format!("{} ns a transfer", figure(ns)));
        let contended = r.contended_ns.map_or(String::new(), |ns| format!(", {} ns a contended pass", figure(ns)));
        format!(
            "{} at {transfer}{contended}, core loop {} ns",
            count(r.repetitions as usize, "repetition"),
            figure(r.core_loop_ns)
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
    (regimes.len() > 1).then(|| warning("regimes_mixed", text, advice))
}

fn core_speed(view: &View) -> Option<Warning> {
    let arms = &view.regimes.other_speed;
    let text = format!("{} ran on cores of another speed than the first variant, and on no others", list(arms));
    let advice = "a ratio between these arms holds the cores' difference too; give all arms the same `cpus`";
    (!arms.is_empty()).then(|| warning("core_speed", text, advice))
}

fn unresolved(arms: &[ArmSummary]) -> Option<Warning> {
    let unresolved = arms.iter().filter(|a| a.state == ArmState::Unresolved);
    let each: Vec<String> = unresolved.map(|a| format!("`{}`: {}", a.name, a.why.as_deref().unwrap_or(""))).collect();
    let advice = "give it more blocks with `--repetitions`, longer windows with `--window`, or a quieter machine";
    (!each.is_empty()).then(|| warning("unresolved", format!("no figure for {}", each.join("; ")), advice))
}

fn resolution(view: &View) -> Option<Warning> {
    let coarse = view.resolution.filter(|r| *r > COARSE_RESOLUTION)?;
    let text =
        format!("the control arm differs from its twin by up to {}: smaller effects cannot be seen", percent(coarse));
    Some(warning("resolution", text, "more `--repetitions` sharpen it"))
}

/// A quota stops whole workers for tens of milliseconds at a time: any at all is worth a word.
fn throttled(view: &View) -> Option<Warning> {
    let share = counters::share_taken(view.observations, "throttled_ns").filter(|share| *share > 0.0)?;
    let hit = |o: &&Observation| o.counters.get("throttled_ns").and_then(Reading::value).is_some_and(|ns| ns > 0);
    let repetitions: BTreeSet<_> = view.observations.iter().filter(hit).map(|o| (&o.arm, o.block)).collect();
    let text = format!(
        "the cgroup's CPU quota stopped its processes for {} of the time that the workers' CPUs had in warm-up and \
         windows, in {}: what was measured there is the quota",
        share_of_cpus(share),
        count(repetitions.len(), "repetition")
    );
    let advice = "raise the quota to a CPU a worker, or lift it: `cpu.max` of the cgroup, `cpu.cfs_quota_us` in version \
                  1, a container's CPU limit (`docker run --cpus`)";
    Some(warning("throttled", text, advice))
}

fn stolen(view: &View) -> Option<Warning> {
    let share = counters::share_taken(view.observations, "stolen_ns").filter(|share| *share > STOLEN_SHARE)?;
    let text = format!(
        "the hypervisor took {} of warm-up and windows from the workers' CPUs for other guests",
        percent(share)
    );
    let advice = "run when the host is quieter, on other CPUs with `--cpus`, or on a machine with CPUs of its own; counts \
                  and latencies hold what was stolen, times per operation leave it out as far as it was seen";
    Some(warning("stolen", text, advice))
}

/// The kernel adds up the CPUs on which a cgroup was stopped, which may be more than the workers': a share beyond all
/// of theirs says no more than that.
fn share_of_cpus(share: f64) -> String {
    if share > 1.0 { "all (and others' CPUs beside)".to_owned() } else { at_least_a_trace(share) }
}

/// A share that is above zero, and looks so.
fn at_least_a_trace(share: f64) -> String {
    if share < 0.0005 { "under 0.1 %".to_owned() } else { percent(share) }
}

fn memory_log_full(view: &View) -> Option<Warning> {
    let lost: u64 = view.observations.iter().filter_map(|o| o.memory.as_ref()).map(|memory| memory.log_lost).sum();
    let text = format!("{lost} calls and stalled batches found their log full: counted, but no timeline has them");
    (lost > 0).then(|| warning("memory_log_full", text, "use a shorter `window`, or larger chunks"))
}

/// What of the kernel's doings is not logged at all, and why: the first reason that some worker has.
fn kernel_log(view: &View) -> Option<Warning> {
    let missing = view.observations.iter().find_map(|o| o.kernel.as_ref()?.missing.as_ref())?;
    let text = format!(
        "timeline.csv lacks flushes or interrupts of the kernel's, so that not every stall is tied to the call that caused \
         it: {}",
        missing.why().unwrap_or_default()
    );
    let advice = missing.cure().unwrap_or("the batches' times and the calls stand without them");
    Some(warning("kernel_log", text, advice))
}

fn kernel_log_full(view: &View) -> Option<Warning> {
    let lost: u64 = view.observations.iter().filter_map(|o| o.kernel.as_ref()).map(|kernel| kernel.lost).sum();
    let text = format!("{lost} flushes and interrupts found their log full: counted, but timeline.csv lacks them");
    (lost > 0).then(|| warning("kernel_log_full", text, "use a shorter `window`, larger chunks, or no `--stacks`"))
}

fn wait_log_full(view: &View) -> Option<Warning> {
    let lost: u64 = view.observations.iter().flat_map(|o| &o.locks).map(|l| l.waits_lost).sum();
    let text = format!("{lost} contended waits found their log full: counted, but their times are in no percentile");
    (lost > 0).then(|| warning("wait_log_full", text, "shorten the window with `--window`"))
}

fn shares_cpu(arms: &[ArmSummary]) -> Option<Warning> {
    let unmasked = arms.iter().filter(|a| a.mask == "none" && a.kind != Kind::Plain);
    let names: Vec<&str> = unmasked.map(|a| a.name.as_str()).collect();
    let text =
        format!("workers share a CPU in {}: nothing is masked, and the scheduler is part of the figure", list(&names));
    (!names.is_empty()).then(|| warning("shares_cpu", text, "use as many workers as CPUs to see the memory alone"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::{Bench, counted_event, lock_observation};

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
        let lost =
            |o: &mut Observation| o.memory = Some(record::MemoryObservation { log_lost: 1, ..Default::default() });
        assert_eq!(ids(lost), ["memory_log_full"]);
        let kernel = |missing, lost| Some(record::KernelObservation { missing, lost, ..Default::default() });
        assert_eq!(ids(|o| o.kernel = kernel(None, 2)), ["kernel_log_full"]);
        let closed = || Some(Reading::Denied { why: "tracefs is not mounted".into(), cure: "mount it".into() });
        assert_eq!(ids(|o| o.kernel = kernel(closed(), 0)), ["kernel_log"]);
    }

    #[test]
    fn counters_warn_by_what_keeps_them_away() {
        let no_pmu = Reading::Unsupported { why: format!("{} (ENOENT)", record::NO_PMU) };
        assert_eq!(ids(counter("cycles", no_pmu)), ["no_pmu"]);
        let unsupported = || Reading::Unsupported { why: "ENOSYS".into() };
        assert_eq!(ids(counter("cycles", unsupported())), ["counters_unsupported"], "a PMU may be there");
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

    fn warned(readings: &[(&str, Reading)]) -> Vec<Warning> {
        let mut bench = Bench::new(&["packed", "padded-64"]);
        bench.events = vec![
            counted_event("r01d1", "r01d1", plan::CountedBy::Processor),
            counted_event("my_tracepoint", "", plan::CountedBy::Kernel),
        ];
        bench.run(6, |_, _| 2.0);
        for o in &mut bench.observations {
            o.counters.extend(readings.iter().map(|(name, reading)| ((*name).to_owned(), reading.clone())));
        }
        bench.analyse().warnings
    }

    #[test]
    fn many_counters_of_one_cause_are_one_warning() {
        let none = || Reading::Unsupported { why: "this machine exposes no hardware PMU".into() };
        let processor = plan::event::COUNTERS.iter().filter(|(_, by)| *by == plan::CountedBy::Processor);
        let mut readings: Vec<(&str, Reading)> = processor.map(|(name, _)| (*name, none())).collect();
        readings.push(("task_clock", Reading::Counted { value: 1 }));
        let found = warned(&readings);
        assert_eq!(found.len(), 1, "{found:?}");
        let text = "none of the 17 events of the processor can be counted: this machine exposes no hardware PMU";
        assert_eq!((found[0].id.as_str(), found[0].text.as_str()), ("no_pmu", text));

        readings.push(("r01d1", none()));
        readings
            .push(("futex_calls", Reading::Denied { why: "tracefs is not mounted".into(), cure: "mount it".into() }));
        readings
            .push(("tlb_flushes", Reading::Denied { why: "tracefs is not mounted".into(), cure: "mount it".into() }));
        readings.push(("my_tracepoint", Reading::Denied { why: "paranoid".into(), cure: "sysctl".into() }));
        let found = warned(&readings);
        let told: Vec<(&str, &str)> = found.iter().map(|w| (w.id.as_str(), w.text.as_str())).collect();
        assert_eq!(
            told,
            [
                ("no_pmu", text),
                ("counters_denied", "may not be counted: `futex_calls` and `tlb_flushes` (tracefs is not mounted)"),
                ("counters_denied", "may not be counted: `my_tracepoint` (paranoid)"),
                (
                    "counters_unsupported",
                    "cannot be counted on this machine: `r01d1` (this machine exposes no hardware PMU)"
                ),
            ]
        );
        assert_eq!((found[1].advice.as_str(), found[2].advice.as_str()), ("mount it", "sysctl"));
    }

    #[test]
    fn what_hides_the_counters_is_not_called_a_missing_pmu() {
        let hidden = || Reading::Unsupported { why: "a sandbox hides perf events (ENOSYS)".into() };
        let mut readings: Vec<(&str, Reading)> = plan::event::COUNTERS.map(|(name, _)| (name, hidden())).into();
        let found = warned(&readings);
        assert_eq!(found.iter().map(|w| w.id.as_str()).collect::<Vec<_>>(), ["counters_unsupported"]);
        assert!(found[0].text.contains("a sandbox hides"), "{found:?}");
        assert!(!found[0].advice.contains("the others count"), "none does: {found:?}");
        readings.retain(|(name, _)| *name != "stolen_ns");
        readings.push(("stolen_ns", Reading::Counted { value: 0 }));
        assert!(warned(&readings)[0].advice.starts_with("the others count"));
    }

    #[test]
    fn what_a_processor_lacks_beside_what_it_counts_is_no_missing_pmu() {
        let lacks = || Reading::Unsupported { why: "no such event".into() };
        let names = ["llc_loads", "llc_load_misses", "stalled_cycles", "l1d_invalidations", "transfers_write"];
        let mut readings: Vec<(&str, Reading)> = names.map(|name| (name, lacks())).into();
        readings.push(("cycles", Reading::Counted { value: 9 }));
        let found = warned(&readings);
        assert_eq!((found.len(), found[0].id.as_str()), (1, "counters_unsupported"));
        let said = "`l1d_invalidations`, `llc_load_misses`, `llc_loads` and 2 more (no such event)";
        assert!(found[0].text.ends_with(said), "{found:?}");

        readings.push(("upgrades", Reading::Unsupported { why: "another reason".into() }));
        let found = warned(&readings);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].text.ends_with("and 3 more (for 2 reasons, each beside its counter under `counters`)"),
            "{found:?}"
        );
    }

    #[test]
    fn a_quota_and_a_busy_host_are_told_with_what_they_took() {
        let taken = |name: &str, ns: u64| {
            let found = warned(&[(name, Reading::Counted { value: ns })]);
            found.into_iter().map(|w| (w.id, w.text)).collect::<Vec<_>>()
        };
        // Warm-up and window are 125 ms; arms have two workers.
        let stolen = taken("stolen_ns", 2_500_000);
        assert_eq!(stolen.len(), 1, "{stolen:?}");
        assert!(stolen[0].0 == "stolen" && stolen[0].1.contains("took 2.0 % of warm-up and windows"), "{stolen:?}");
        assert_eq!(taken("stolen_ns", 1_250_000), []);
        assert_eq!(taken("throttled_ns", 0), []);
        let throttled = taken("throttled_ns", 30_000_000);
        assert_eq!(throttled[0].0, "throttled");
        assert!(
            throttled[0]
                .1
                .contains("12 % of the time that the workers' CPUs had in warm-up and windows, in 18 repetitions"),
            "{throttled:?}"
        );
        assert!(taken("throttled_ns", 3)[0].1.contains("under 0.1 %"));
        let beyond = taken("throttled_ns", 30_000_000_000);
        assert!(beyond[0].1.contains("for all (and others' CPUs beside) of the time"), "{beyond:?}");
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

//! Every kind of machine, by made-up readings.

use super::*;
use crate::counting::judged;
use crate::fixture::{Fixture, assert_well_formed};
use record::CheckState::{self, Missing, Ok, Warn};
use record::CounterReadings;

/// A kind of core on which these counters have these readings.
pub(in crate::counting) fn test_kind(
    cpus: &str,
    counters: &[(&str, CountedBy, Reading)],
    hardware_groups: usize,
) -> Kind {
    let event = |(name, counted_by, _): &(&str, CountedBy, Reading)| CountedEvent {
        name: (*name).to_owned(),
        shown: format!("{name} as shown"),
        event: None,
        counts: format!("what {name} counts on {cpus}"),
        source: "a manual".to_owned(),
        counted_by: *counted_by,
        cpus: cpus.to_owned(),
    };
    let reading = |(name, _, reading): &(&str, CountedBy, Reading)| ((*name).to_owned(), reading.clone());
    let readings: CounterReadings = counters.iter().map(reading).collect();
    let answers = std::result::Result::Ok(Answers { readings, hardware_groups });
    Kind { cpus: cpus.to_owned(), events: counters.iter().map(event).collect(), answers }
}

fn counted() -> Reading {
    Reading::Counted { value: 7 }
}

fn lacking() -> Reading {
    Reading::Unsupported { why: "this processor's PMU has no such event".to_owned() }
}

fn denied() -> Reading {
    Reading::Denied { why: "kernel.perf_event_paranoid is 3".to_owned(), cure: "sudo sysctl x=2".to_owned() }
}

fn hardware(readings: &[(&str, Reading)], groups: usize) -> Vec<Kind> {
    let counters: Vec<_> = readings.iter().map(|(name, reading)| (*name, Processor, reading.clone())).collect();
    vec![test_kind("0-1", &counters, groups)]
}

fn with_pmu() -> Fixture {
    Fixture::new().file("sys/bus/event_source/devices/cpu/type", "4\n")
}

/// The check called `name` where these kinds of core gave these answers.
fn check(fixture: &Fixture, kinds: &[Kind], name: &str) -> Finding {
    fixture.check(|patient| judged(patient, kinds), name)
}

#[test]
fn a_missing_pmu_is_one_line_with_its_consequence() {
    let fixture = Fixture::new().file("sys/hypervisor/type", "KVM\n");
    let kinds = hardware(&[("cycles", lacking()), ("llc_loads", lacking())], 0);
    let pmu = check(&fixture, &kinds, "pmu");
    assert_eq!((pmu.check.state, &pmu.spoils, &pmu.check.cure), (Missing, &Spoils::HardwareCounts, &None));
    assert_eq!(pmu.check.seen, "none, KVM passes none through: no cache misses");
    assert!(pmu.check.why.starts_with("cache misses cannot be counted"), "{pmu:?}");
    let events = check(&fixture, &kinds, "hardware_events");
    assert_eq!((events.check.state, events.check.seen.as_str()), (Missing, "none of 2"));
    assert_eq!(events.spoils, Spoils::Nothing, "the PMU's check has said so");
    assert!(events.check.why.ends_with("nobody counts without a PMU"), "{events:?}");
    assert!(fixture.findings(|patient| judged(patient, &kinds)).iter().all(|f| f.check.name != "counter_groups"));
}

#[test]
fn a_pmu_that_counts_lists_what_each_event_counts() {
    let kinds = hardware(&[("cycles", counted()), ("l1d_loads", counted())], 1);
    assert_eq!(check(&with_pmu(), &kinds, "pmu").check.seen, "cpu, and counts");
    let events = check(&with_pmu(), &kinds, "hardware_events").check;
    assert_eq!((events.state, events.seen.as_str(), events.cure), (Ok, "2 of 2", None));
    let loads = check(&with_pmu(), &kinds, "event_l1d_loads").check;
    assert_eq!((loads.state, loads.seen.as_str()), (Ok, "l1d_loads as shown"));
    assert_eq!(loads.why, "what l1d_loads counts on 0-1");
    assert_eq!(check(&with_pmu(), &kinds, "counter_groups").check.seen, "1 group, counted all the time");
    assert_eq!(check(&Fixture::new(), &kinds, "pmu").check.state, Ok, "what counts is there");
}

#[test]
fn events_that_a_processor_lacks_share_a_line() {
    let readings = [("cycles", counted()), ("a", lacking()), ("b", lacking()), ("c", lacking())];
    let events = check(&with_pmu(), &hardware(&readings, 1), "hardware_events");
    assert_eq!((events.check.state, events.check.seen.as_str()), (Missing, "1 of 4; not: a, b and 1 more"));
    assert!(events.check.why.contains("a, b, c: this processor's PMU has no such event"), "{events:?}");
    assert_eq!((events.check.cure, events.spoils), (None, Spoils::Nothing));
}

#[test]
fn what_this_process_may_not_count_has_its_cure() {
    let kinds = hardware(&[("cycles", denied()), ("llc_loads", denied())], 0);
    assert_eq!(check(&with_pmu(), &kinds, "pmu").check.state, Ok, "it is there");
    let events = check(&with_pmu(), &kinds, "hardware_events");
    assert_eq!((events.check.state, &events.spoils), (Missing, &Spoils::HardwareCounts));
    assert_eq!(events.check.cure.as_deref(), Some("sudo sysctl x=2"));
    assert!(events.check.why.ends_with("; kernel.perf_event_paranoid is 3"), "{events:?}");
    let hidden = check(&Fixture::new(), &kinds, "hardware_events").check;
    assert!(hidden.cure.is_some(), "whether there is one shows once this process may ask: {hidden:?}");
    let nothing = check(&with_pmu(), &hardware(&[("cycles", lacking())], 0), "pmu");
    assert_eq!((nothing.check.state, nothing.spoils), (Warn, Spoils::HardwareCounts));
}

#[test]
fn groups_that_take_turns_say_how_often() {
    let scaled = |ratio| Reading::Scaled { value: 1, ratio };
    let turns = hardware(&[("cycles", scaled(0.5)), ("llc_loads", scaled(0.333))], 3);
    let found = check(&with_pmu(), &turns, "counter_groups").check;
    assert_eq!((found.state, found.seen.as_str()), (Ok, "3 groups take turns, each from 33 % of the time"));
    let alone = check(&with_pmu(), &hardware(&[("cycles", scaled(0.5))], 1), "counter_groups").check;
    assert!(alone.state == Warn && alone.cure.is_some(), "somebody else has the other half: {alone:?}");
    let never = hardware(&[("cycles", counted()), ("llc_loads", Reading::NotScheduled)], 2);
    assert_eq!(check(&with_pmu(), &never, "counter_groups").check.state, Warn);
    let events = check(&with_pmu(), &never, "hardware_events").check;
    assert!(events.state == Warn && events.cure.unwrap().contains("nmi_watchdog"), "{}", events.why);
}

#[test]
fn kinds_of_core_are_told_apart() {
    let kinds = [
        test_kind("0-3", &[("l1d_load_misses", Processor, counted()), ("cycles", Processor, counted())], 1),
        test_kind("4-7", &[("l1d_load_misses", Processor, lacking()), ("cycles", Processor, counted())], 1),
    ];
    let events = check(&with_pmu(), &kinds, "hardware_events").check;
    assert_eq!((events.state, events.seen.as_str()), (Missing, "CPUs 0-3: 2 of 2; CPUs 4-7: 1 of 2"));
    assert!(events.why.contains("l1d_load_misses: "), "{}", events.why);
    let cycles = check(&with_pmu(), &kinds, "event_cycles").check;
    assert!(cycles.why.contains("CPUs 0-3: what cycles counts") && cycles.why.contains("CPUs 4-7: "), "{cycles:?}");
}

#[test]
fn the_kernel_s_events_have_a_line_of_their_own() {
    let kind = test_kind("0", &[("context_switches", Kernel, denied()), ("task_clock", Kernel, counted())], 0);
    let events = check(&Fixture::new(), &[kind], "kernel_events").check;
    assert_eq!((events.state, events.seen.as_str()), (Warn, "1 of 2; not: context_switches"));
    assert_eq!(events.cure.as_deref(), Some("sudo sysctl x=2"));
}

#[test]
fn what_was_not_tried_is_not_judged() {
    let untried = Kind { answers: Err("this process may not run on CPUs 9".to_owned()), ..test_kind("9", &[], 0) };
    for kinds in [vec![], vec![untried]] {
        for name in ["hardware_events", "kernel_events"] {
            let found = check(&with_pmu(), &kinds, name).check;
            assert_eq!((found.state, found.seen.as_str()), (Missing, "not tried"));
        }
    }
}

#[test]
fn a_machine_that_says_nothing_is_well_or_unwell_nowhere() {
    for finding in Fixture::new().findings(crate::counting::findings) {
        assert_well_formed(&finding);
        assert_eq!(finding.check.state, CheckState::Missing, "{finding:?}");
    }
}

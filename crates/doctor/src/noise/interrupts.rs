//! Interrupts on the CPUs in question: how many there are, and which devices may send them.

use super::sample::Sample;
use crate::patient::named;
use crate::{Finding, Patient, Spoils};
use host::{InterruptRate, QuietCpus};
use plan::CpuId;

/// Interrupts a second on one CPU from which on they are a disturbance. At about 5 µs each, with the lines that the
/// handler pushes out, they take 5 %, which is the precision that a scenario asks for by default.
const TOO_MANY_A_SECOND: f64 = 10_000.0;

/// How often the CPUs in question were interrupted while they were watched.
pub(super) fn rates(patient: &Patient<'_>, sample: &Sample) -> Finding {
    const NAME: &str = "interrupts";
    const WHY: &str = "an interrupt takes a few microseconds of a worker's slice, less than an eviction, so that its cost \
                       stays in the figures";
    let Some((before, after)) = &sample.interrupts else {
        return Finding::missing(NAME, "/proc/interrupts cannot be read", WHY);
    };
    let mut loads: Vec<(CpuId, f64, Vec<InterruptRate>)> = Vec::new();
    for &cpu in patient.cpus {
        let rates = after.since(before, cpu);
        loads.push((cpu, rates.iter().map(|rate| rate.per_second).sum(), rates));
    }
    loads.sort_by(|a, b| b.1.total_cmp(&a.1));
    let Some((cpu, most, rates)) = loads.first() else { return Finding::ok(NAME, "no CPU in question", WHY) };
    let seen = format!("CPU {cpu} {most:.0}/s{}", foremost(rates));
    let crowded: Vec<CpuId> = loads.iter().filter(|(_, sum, _)| *sum >= TOO_MANY_A_SECOND).map(|load| load.0).collect();
    match crowded.is_empty() {
        true => Finding::ok(NAME, seen, WHY),
        false => Finding::warn(NAME, seen, WHY)
            .cured_by(
                "send a device's elsewhere: `echo CPUS | sudo tee /proc/irq/N/smp_affinity_list`; calls, \
                 rescheduling and TLB shootdowns come from other processes: `sudo perf top -e 'irq_vectors:*'`",
            )
            .spoiling(Spoils::On(crowded)),
    }
}

/// `: Local timer 250, nvme0q1 40`: the most frequent, two where they are short.
fn foremost(rates: &[InterruptRate]) -> String {
    const LONGEST: usize = 36;
    const LONGEST_NAME: usize = 16;
    let mut text = String::new();
    for rate in rates.iter().take(2) {
        let name: String = rate.source.chars().take(LONGEST_NAME).collect();
        let one = format!("{} {} {:.0}", if text.is_empty() { ':' } else { ',' }, name.trim_end(), rate.per_second);
        if text.is_empty() || text.len() + one.len() <= LONGEST {
            text.push_str(&one);
        }
    }
    text
}

/// Which devices may interrupt the CPUs in question, and whether that changes while a run goes on.
pub(super) fn affinity(patient: &Patient<'_>, quiet: &QuietCpus, irqbalance: bool) -> Finding {
    const NAME: &str = "irq_affinity";
    const WHY: &str = "a device whose interrupts move to another CPU in the middle of a run disturbs one arm and spares \
                       the next";
    let devices = host::device_interrupts(patient.root);
    if devices.is_empty() {
        return match host::lists_interrupts(patient.root) {
            true => Finding::idle(NAME, "no device with a driver interrupts any CPU", WHY),
            false => Finding::missing(NAME, "/proc/irq cannot be read", WHY),
        };
    }
    let cpus = patient.in_question();
    let here = devices.iter().filter(|device| !device.cpus.is_disjoint(&cpus)).count();
    let all = devices.len();
    let seen = format!("{here} of {all} devices may interrupt {}", named(&cpus));
    // irqbalance leaves isolated CPUs and those without a tick alone, irqbalance(1).
    let spared = [&quiet.isolated, &quiet.nohz_full].into_iter().flatten().flatten();
    let spared: std::collections::BTreeSet<u32> = spared.copied().collect();
    if irqbalance && !cpus.is_subset(&spared) {
        return Finding::warn(NAME, format!("{seen}; irqbalance moves them"), WHY)
            .cured_by("`sudo systemctl stop irqbalance` while measuring");
    }
    Finding::ok(NAME, seen, WHY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, assert_well_formed};
    use host::{Interrupts, Root};
    use record::CheckState;
    use std::time::Duration;

    fn table(timer: u64, disk: u64) -> String {
        format!(
            "      CPU0  CPU1\n 30:  0  {disk}  PCI-MSIX-0000:00:02.0   1-edge      nvme0q1\nLOC:  {timer} 1  Local timer interrupts\n"
        )
    }

    fn read(text: &str) -> Interrupts {
        Interrupts::read(Fixture::new().file("proc/interrupts", text).patient().root).unwrap()
    }

    /// Two tables read some milliseconds apart: rates are high enough, or low enough, for any distance.
    fn seen(timer: u64, disk: u64) -> Finding {
        let before = read(&table(5, 5));
        std::thread::sleep(Duration::from_millis(5));
        let after = read(&table(5 + timer, 5 + disk));
        let sample = Sample { interrupts: Some((before, after)), ..Sample::default() };
        let fixture = Fixture::new();
        let found = fixture.findings(|patient| vec![rates(patient, &sample)]).remove(0);
        assert_well_formed(&found);
        found
    }

    #[test]
    fn few_interrupts_are_well_and_the_most_frequent_are_named() {
        let found = seen(2, 1);
        assert_eq!(found.check.state, CheckState::Ok);
        assert!(found.check.seen.starts_with("CPU 0 ") && found.check.seen.contains("Local timer"), "{found:?}");
    }

    #[test]
    fn a_storm_spoils_runs_on_its_cpu() {
        let found = seen(2, u64::from(u32::MAX));
        assert_eq!((found.check.state, &found.spoils), (CheckState::Warn, &Spoils::On(vec![CpuId(1)])));
        assert!(found.check.seen.contains("nvme0q1"), "{found:?}");
    }

    #[test]
    fn long_names_leave_room_for_one() {
        let rate = |source: &str| InterruptRate { source: source.to_owned(), per_second: 314.2 };
        let of = |a, b| foremost(&[rate(a), rate(b), rate("third")]);
        assert_eq!(of("Local timer", "nvme0q1"), ": Local timer 314, nvme0q1 314");
        assert_eq!(of("Function call", "TLB shootdowns, or more"), ": Function call 314");
        assert_eq!(of("a driver of many words", "x"), ": a driver of many 314, x 314");
        assert_eq!(foremost(&[]), "");
    }

    fn affinity_of(fixture: &Fixture, isolated: &[u32], irqbalance: bool) -> Finding {
        let quiet = QuietCpus { isolated: Some(isolated.iter().copied().collect()), ..QuietCpus::default() };
        let found = fixture.findings(|patient| vec![affinity(patient, &quiet, irqbalance)]).remove(0);
        assert_well_formed(&found);
        found
    }

    #[test]
    fn interrupts_that_a_daemon_moves_are_warned_of_unless_the_cpus_are_isolated() {
        let fixture = Fixture::new()
            .cores(4)
            .in_question(&[2, 3])
            .file("proc/irq/30/effective_affinity_list", "1")
            .file("proc/irq/30/nvme0q1/nothing", "")
            .file("proc/irq/31/effective_affinity_list", "2")
            .file("proc/irq/31/nvme0q2/nothing", "");
        let still = affinity_of(&fixture, &[], false);
        assert_eq!(
            (still.check.state, still.check.seen.as_str()),
            (CheckState::Ok, "1 of 2 devices may interrupt 2-3")
        );
        assert_eq!(affinity_of(&fixture, &[], true).check.state, CheckState::Warn);
        assert_eq!(affinity_of(&fixture, &[2, 3], true).check.state, CheckState::Ok);
        assert_eq!(affinity_of(&Fixture::new(), &[], true).check.seen, "/proc/irq cannot be read");
        let without_drivers = Fixture::new().file("proc/irq/30/effective_affinity_list", "1");
        let found = affinity_of(&without_drivers, &[], true);
        assert_eq!((found.check.state, found.idle), (CheckState::Ok, true), "it was read, and lists none: {found:?}");
    }

    #[test]
    fn without_a_table_nothing_is_claimed() {
        let fixture = Fixture::new();
        let found = fixture.findings(|patient| vec![rates(patient, &Sample::default())]).remove(0);
        assert_eq!(found.check.state, CheckState::Missing);
        assert!(Interrupts::read(&Root::at("/nowhere")).is_none());
    }
}

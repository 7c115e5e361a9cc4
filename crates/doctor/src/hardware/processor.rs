//! Which CPUs there are, and which of them share a core or a memory.

use super::list;
use crate::{Finding, Patient, Spoils};
use plan::{Cpu, CpuId};
use std::collections::{BTreeMap, BTreeSet};

/// Model, sockets, cores, CPUs.
pub(super) fn cpu(patient: &Patient<'_>) -> Finding {
    let why = "figures belong to this processor: a line's way between two cores differs with every model";
    let cpus = &patient.topology.cpus;
    let distinct = |group: fn(&Cpu) -> u32| cpus.iter().map(group).collect::<BTreeSet<_>>().len();
    let (sockets, cores) = (distinct(|cpu| cpu.socket), distinct(|cpu| cpu.core));
    let counts = [(sockets, "socket"), (cores, "core"), (cpus.len(), "CPU")].map(|(count, what)| counted(count, what));
    let model = host::facts(patient.root).cpu_model;
    let seen = |model: &str| format!("{model}; {}", counts.join(", "));
    match model.as_str() {
        "unknown" => Finding::missing("cpu", seen("model not said"), why),
        model => Finding::ok("cpu", seen(&short(model)), why),
    }
}

/// `1 core`, `2 cores`.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A model's name without the words that tell nothing: marks, "CPU", the number of cores, the nominal frequency.
fn short(model: &str) -> String {
    let model = model.replace("(R)", "").replace("(TM)", "").replace("(tm)", "");
    let model = model.split(" @ ").next().unwrap_or_default();
    let tells =
        |word: &&str| *word != "CPU" && *word != "Processor" && !word.ends_with("-Core") && !word.ends_with("-Cores");
    model.split_whitespace().filter(tells).collect::<Vec<_>>().join(" ")
}

/// Whether workers would share a core.
pub(super) fn smt(patient: &Patient<'_>) -> Finding {
    let smt = host::smt(patient.root);
    let shared = on_shared_cores(patient);
    if !shared.is_empty() {
        let cores = shared.len();
        let cpus: Vec<CpuId> = shared.into_values().flatten().collect();
        let why = "two workers on one core share its caches, so no line moves between them, and each takes from the \
                   other's speed: neither what two cores do to each other nor what one alone can do";
        let seen = format!("CPUs {} share {}", fitting(&cpus), counted(cores, "core"));
        return Finding::warn("smt", seen, why)
            .cured_by("cpus = \"spread\" in the scenario, or: echo off | sudo tee /sys/devices/system/cpu/smt/control")
            .spoiling(Spoils::On(cpus));
    }
    let why = "a core's second thread, where it is busy, halves the speed of a worker on the first";
    match (smt.active, smt.control.as_deref()) {
        (None, _) => Finding::missing("smt", "not said", why),
        (Some(true), _) => Finding::ok("smt", "on, and each CPU in question has a core of its own", why),
        (Some(false), Some("notsupported")) if host::hypervisor(patient.root).is_some() => Finding::ok(
            "smt",
            "no second threads show",
            format!("{why}; the host may still run two of these CPUs on one core"),
        ),
        (Some(false), _) => Finding::ok("smt", "off", why),
    }
}

/// The CPUs in question that share a core with another of them, by core.
fn on_shared_cores(patient: &Patient<'_>) -> BTreeMap<u32, Vec<CpuId>> {
    let mut cores: BTreeMap<u32, Vec<CpuId>> = BTreeMap::new();
    for cpu in patient.cpus.iter().filter_map(|cpu| patient.topology.cpu(*cpu)) {
        cores.entry(cpu.core).or_default().push(cpu.id);
    }
    cores.retain(|_, cpus| cpus.len() > 1);
    cores
}

/// The list of CPUs, or how many they are where the list would be long.
fn fitting(cpus: &[CpuId]) -> String {
    const LONGEST: usize = 24;
    let list = list(cpus.iter().copied());
    if list.len() <= LONGEST { list } else { format!("in question ({})", cpus.len()) }
}

/// Whether workers would have memory of different distance.
pub(super) fn numa(patient: &Patient<'_>) -> Finding {
    let in_question = patient.cpus.iter().filter_map(|cpu| patient.topology.cpu(*cpu));
    let used: BTreeSet<u32> = in_question.map(|cpu| cpu.node).collect();
    let all: BTreeSet<u32> = patient.topology.cpus.iter().map(|cpu| cpu.node).collect();
    let why = "a segment lies on one node; workers on another reach it, and each other, over a slower link";
    let nodes = counted(all.len(), "node");
    if used.len() > 1 {
        return Finding::warn("numa", format!("{nodes}; the CPUs in question lie on {}", used.len()), why)
            .cured_by("name CPUs of one node in the scenario (lscpu lists them), unless the distance is the question");
    }
    match all.len() {
        1 => Finding::idle("numa", nodes, why),
        _ => Finding::ok("numa", format!("{nodes}; the CPUs in question lie on one"), why),
    }
}

#[cfg(test)]
mod tests {
    use super::{short, smt};
    use crate::Spoils;
    use crate::fixture::Fixture;
    use crate::hardware::findings;
    use plan::{Cpu, CpuId};
    use record::CheckState::{Missing, Ok, Warn};

    /// Two sockets of two cores of two threads, numbered as Linux does.
    fn two_sockets() -> Fixture {
        let cpu = |id: u32| Cpu {
            id: CpuId(id),
            core: id % 4,
            llc: id / 2 % 2,
            node: id / 2 % 2,
            socket: id / 2 % 2,
            usable: true,
        };
        Fixture::new().topology((0..8).map(cpu).collect()).file("sys/devices/system/cpu/smt/active", "1\n")
    }

    #[test]
    fn the_processor_is_named_in_few_words() {
        let named = two_sockets().file("proc/cpuinfo", "model name : Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz\n");
        let check = named.check(findings, "cpu").check;
        assert_eq!((check.state, check.seen.as_str()), (Ok, "Intel Xeon Platinum 8375C; 2 sockets, 4 cores, 8 CPUs"));
        assert_eq!(short("AMD Ryzen Threadripper PRO 5995WX 64-Cores"), "AMD Ryzen Threadripper PRO 5995WX");
        assert_eq!(short("AMD EPYC 7R13 48-Core Processor"), "AMD EPYC 7R13");
        let check = Fixture::new().check(findings, "cpu").check;
        assert_eq!((check.state, check.seen.as_str()), (Missing, "model not said; 1 socket, 2 cores, 2 CPUs"));
    }

    #[test]
    fn threads_of_one_core_spoil_runs_on_them() {
        let siblings = two_sockets().in_question(&[0, 1, 4]).check(findings, "smt");
        assert_eq!((siblings.check.state, siblings.check.seen.as_str()), (Warn, "CPUs 0,4 share 1 core"));
        assert_eq!(siblings.spoils, Spoils::On(vec![CpuId(0), CpuId(4)]));
        assert!(siblings.check.cure.unwrap().contains("spread"));
        assert_eq!(two_sockets().check(findings, "smt").check.seen, "CPUs 0-7 share 4 cores");
    }

    #[test]
    fn cores_of_their_own_are_well_whether_threads_are_on_or_off() {
        let on = two_sockets().in_question(&[0, 1]).check(findings, "smt").check;
        assert!(on.state == Ok && on.seen.starts_with("on"), "{on:?}");
        let off = Fixture::new().file("sys/devices/system/cpu/smt/active", "0\n");
        assert_eq!(off.check(findings, "smt").check.seen, "off");
        let guest = off
            .file("sys/devices/system/cpu/smt/control", "notsupported\n")
            .file("sys/hypervisor/type", "xen\n")
            .check(|patient| vec![smt(patient)], "smt");
        assert!(guest.check.state == Ok && guest.check.why.contains("host may"), "{guest:?}");
        assert_eq!(Fixture::new().check(findings, "smt").check.state, Missing);
    }

    #[test]
    fn cpus_on_two_nodes_are_a_warning() {
        let across = two_sockets().check(findings, "numa").check;
        assert_eq!((across.state, across.seen.as_str()), (Warn, "2 nodes; the CPUs in question lie on 2"));
        let within = two_sockets().in_question(&[0, 1]).check(findings, "numa").check;
        assert_eq!((within.state, within.seen.as_str()), (Ok, "2 nodes; the CPUs in question lie on one"));
        assert_eq!(Fixture::new().check(findings, "numa").check.seen, "1 node");
    }
}

//! A machine from what was measured on it.

use super::read::NS;
use super::{CacheShape, Caches, CoreFacts, Costs, Distance, Distances, Machine, Shape, Source};
use plan::{CACHE_LINE_BYTES, CpuIdentity, Topology};
use record::CostProbe;

/// The name of the machine at hand, as `--machine` spells it.
pub const HOST: &str = "host";

/// One cache, as the machine describes it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Its whole size.
    pub bytes: u64,
    /// Lines a set; `None` where the machine does not say.
    pub ways: Option<u32>,
}

/// What was measured on a machine, and what it says of itself.
#[derive(Clone, Debug)]
pub struct HostFigures<'a> {
    /// What it is.
    pub title: String,
    /// How it was measured, with the CPU model and the date: the source of all measured figures.
    pub measured: String,
    /// Its CPUs.
    pub topology: &'a Topology,
    /// Which processor it has, where it says.
    pub processor: Option<CpuIdentity>,
    /// A core's first and second level and a cluster's last one; `None` where the machine does not describe it.
    pub caches: [Option<Geometry>; 3],
    /// Between cores that share the last level, the socket, the machine: one way of a line thrown to and fro, and a
    /// pass of two CPUs that count up words of one line, nanoseconds. `None` where it was not measured.
    pub distances: [Option<(f64, f64)>; 3],
    /// What operations cost.
    pub costs: CostProbe,
    /// Whether a miss fetches the other line of a pair; `None` where that was not told.
    pub fetches_pairs: Option<bool>,
}

/// What a machine cannot be described without and was not had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no figure for {}: {cure}", .figures.join(", "))]
pub struct Unmeasured {
    /// As the machine file spells them.
    pub figures: Vec<String>,
    /// What to do.
    pub cure: String,
}

/// What a host that does not say how its caches are organised is taken to have, by level.
const WAYS_UNSAID: [u32; 3] = [8, 8, 16];
const LEVELS: [&str; 3] = ["caches.l1", "caches.l2", "caches.llc"];
/// Their tables' last parts.
pub(super) const DISTANCES: [&str; 3] = ["cluster", "socket", "machine"];

impl HostFigures<'_> {
    /// The machine. A cache whose sets are no power of two is rounded down, and CPUs that make no regular shape are
    /// rounded up; the sources say so.
    ///
    /// # Errors
    /// [`Unmeasured`], with every figure that is missing.
    pub fn machine(&self) -> Result<Machine, Unmeasured> {
        let mut gaps = Vec::new();
        let core = CoreFacts::of(self.processor.as_ref());
        let mut sources = Vec::new();
        let mut from = |of: &str, text: String| sources.push(Source { of: of.to_owned(), text });
        let (shape, is_regular) = Shape::of(self.topology);
        from("", format!("protocol: {}", core.source));
        from(
            "shape",
            match is_regular {
                true => "sysfs, as the kernel describes this host".to_owned(),
                false => {
                    "sysfs, as the kernel describes this host; its CPUs make no regular shape: the smallest that holds \
                      them"
                        .to_owned()
                }
            },
        );
        let [l1, l2, llc] = self.levels(&mut gaps, &mut from);
        from("caches", format!("memory_ns: {}", self.measured));
        from("caches.inclusive", core.source.to_owned());
        from(
            "caches.pairs",
            match self.fetches_pairs {
                Some(_) => self.measured.clone(),
                None => "none measured; taken as false, because two lines of a pair were not compared".to_owned(),
            },
        );
        let distances = self.distances(&shape, &mut gaps, &mut from);
        let costs = self.costs(core, &mut gaps);
        from("costs", self.measured.clone());
        from("costs.store_buffer", core.source.to_owned());
        from("costs.window", core.source.to_owned());
        let memory_ns = had(self.costs.memory_ns, "caches.memory_ns", &mut gaps);
        let missing = || Unmeasured {
            figures: Vec::new(),
            cure: "measure again, with at least two CPUs and nothing else on them; caches are read from \
                   /sys/devices/system/cpu/cpu0/cache, which a container may hide"
                .to_owned(),
        };
        let (Some(distances), true) = (distances, gaps.is_empty()) else {
            return Err(Unmeasured { figures: gaps, ..missing() });
        };
        sources.sort();
        Ok(Machine {
            name: HOST.to_owned(),
            title: self.title.clone(),
            protocol: core.protocol,
            shape,
            caches: Caches {
                l1,
                l2,
                llc,
                llc_is_inclusive: core.llc_is_inclusive,
                memory_ns,
                fetches_pairs: self.fetches_pairs.unwrap_or(false),
            },
            distances,
            costs,
            sources,
        })
    }

    /// The three levels. A load's time counts beyond one that the first level serves.
    fn levels(&self, gaps: &mut Vec<String>, from: &mut impl FnMut(&str, String)) -> [CacheShape; 3] {
        let chase = [self.costs.l1_ns, self.costs.l2_ns, self.costs.llc_ns];
        let first_ns = had(chase[0], "caches.l1 (a chase of loads)", gaps);
        let mut levels = [CacheShape { bytes: 0, ways: 1, ns: 0.0 }; 3];
        for (nth, level) in levels.iter_mut().enumerate() {
            let path = LEVELS[nth];
            let Some(described) = self.caches[nth] else {
                gaps.push(path.to_owned());
                continue;
            };
            let ways = described.ways.unwrap_or(WAYS_UNSAID[nth]);
            let bytes = rounded(described.bytes, ways);
            let ns = if nth == 0 { 0.0 } else { had(chase[nth], &format!("{path}.ns"), gaps) - first_ns };
            // A chase that met the level above cannot have been shorter: the clock's grain.
            *level = CacheShape { bytes, ways, ns: if nth == 0 { 0.0 } else { four_digits(ns.max(0.001)) } };
            from(path, said(described, ways, bytes));
            if nth > 0 {
                from(&format!("{path}.ns"), self.measured.clone());
            }
        }
        levels
    }

    fn distances(
        &self,
        shape: &Shape,
        gaps: &mut Vec<String>,
        from: &mut impl FnMut(&str, String),
    ) -> Option<Distances> {
        let bump_ns = self.costs.bump_ns.unwrap_or(f64::NAN);
        let mut known = [None; 3];
        for (nth, has) in shape.distances().into_iter().enumerate().filter(|(_, has)| *has) {
            debug_assert!(has);
            let path = format!("distance.{}", DISTANCES[nth]);
            match self.distances[nth] {
                Some((transfer_ns, contended_ns)) => {
                    let exact = Distance::from_probes(transfer_ns, contended_ns, bump_ns);
                    let (fetch_ns, tenure_ns) = (four_digits(exact.fetch_ns), four_digits(exact.tenure_ns));
                    known[nth] = Some(Distance { fetch_ns, tenure_ns, ..exact });
                    from(
                        &path,
                        format!(
                            "{}: worked out from {transfer_ns:.1} ns one way and {contended_ns:.2} ns for a contended bump",
                            self.measured
                        ),
                    );
                }
                None => gaps.push(path),
            }
        }
        Distances::filled(known)
    }

    fn costs(&self, core: CoreFacts, gaps: &mut Vec<String>) -> Costs {
        let probe = &self.costs;
        let mut ns = |figure: Option<f64>, name: &str| had(figure, &format!("costs.{name}"), gaps);
        Costs {
            load_ns: ns(probe.load_ns, "load_ns"),
            store_ns: ns(probe.store_ns, "store_ns"),
            bump_ns: ns(probe.bump_ns, "bump_ns"),
            atomic_ns: ns(probe.atomic_ns, "atomic_ns"),
            fence_ns: ns(probe.fence_ns, "fence_ns"),
            pause_ns: ns(probe.pause_ns, "pause_ns"),
            flush_ns: ns(probe.flush_ns, "flush_ns"),
            instruction_ns: ns(probe.instruction_ns, "instruction_ns"),
            clock_ns: ns(probe.clock_ns, "clock_ns"),
            syscall_ns: ns(probe.syscall_ns, "syscall_ns"),
            futex_ns: ns(probe.futex_ns, "futex_ns"),
            wake_ns: ns(probe.wake_ns, "wake_ns"),
            store_buffer: core.store_buffer,
            window: core.window,
        }
    }
}

/// A figure, or a note that it is missing: also one that a machine's file could not hold.
fn had(figure: Option<f64>, name: &str, gaps: &mut Vec<String>) -> f64 {
    match figure.filter(|ns| (NS.0..=NS.1).contains(ns)) {
        Some(ns) => four_digits(ns),
        None => {
            gaps.push(name.to_owned());
            f64::NAN
        }
    }
}

/// To four digits: what is measured here has no more, and the file is read by people.
fn four_digits(ns: f64) -> f64 {
    format!("{ns:.3e}").parse().unwrap_or(ns)
}

/// The largest size of a power of two of sets that is not above `bytes`.
fn rounded(bytes: u64, ways: u32) -> u64 {
    let set_bytes = CACHE_LINE_BYTES * u64::from(ways.max(1));
    let sets = (bytes / set_bytes).max(1);
    set_bytes << sets.ilog2()
}

fn said(described: Geometry, ways: u32, bytes: u64) -> String {
    let mut text = "sysfs, as the kernel describes this host".to_owned();
    if described.ways.is_none() {
        text.push_str(&format!("; ways: none said, taken as {ways}, because that is common"));
    }
    if bytes != described.bytes {
        text.push_str(&format!(
            "; {} KiB in {ways} ways are no power of two of sets: rounded down",
            described.bytes / 1024
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn costs() -> CostProbe {
        let ns = |ns| Some(ns);
        CostProbe {
            load_ns: ns(0.125),
            store_ns: ns(0.25),
            bump_ns: ns(0.33),
            atomic_ns: ns(2.35),
            fence_ns: ns(8.1),
            pause_ns: ns(11.7),
            flush_ns: ns(40.0),
            instruction_ns: ns(0.07),
            clock_ns: ns(12.5),
            syscall_ns: ns(90.0),
            futex_ns: ns(220.0),
            wake_ns: ns(9_000.5),
            l1_ns: ns(1.0),
            l2_ns: ns(3.5),
            llc_ns: ns(13.0),
            memory_ns: ns(110.0),
        }
    }

    fn figures(topology: &Topology) -> HostFigures<'_> {
        let cache = |kib: u64, ways| Some(Geometry { bytes: kib * 1024, ways: Some(ways) });
        HostFigures {
            title: "AMD \"EPYC\"".into(),
            measured: "measured by `coordinator topology --measure` on AMD EPYC, 2026-11-30".into(),
            topology,
            processor: Some(CpuIdentity::X86 { vendor: "AuthenticAMD".into(), family: 26, model: 2 }),
            caches: [cache(48, 12), cache(1024, 16), cache(55_296, 12)],
            distances: [Some((24.7, 1.24)), None, None],
            costs: costs(),
            fetches_pairs: Some(false),
        }
    }

    fn two_cpus() -> Topology {
        Shape { sockets: 1, clusters: 1, cores: 2, threads: 1 }.topology()
    }

    #[test]
    fn what_is_measured_makes_a_machine_that_reads_back_the_same() {
        let topology = two_cpus();
        let machine = figures(&topology).machine().unwrap();
        assert_eq!(machine.shape.topology(), topology);
        assert_eq!((machine.caches.l2.ns, machine.caches.llc.ns, machine.caches.memory_ns), (2.5, 12.0, 110.0));
        let exact = Distance::from_probes(24.7, 1.24, 0.33);
        assert_eq!(machine.distances.cluster.fetch_ns, 11.94);
        assert!((machine.distances.cluster.tenure_ns / exact.tenure_ns - 1.0).abs() < 1e-3, "{exact:?}");
        assert_eq!((machine.protocol.name(), machine.costs.store_buffer, machine.costs.window), ("MOESI", 104, 448));
        let text = machine.to_toml();
        let read = Machine::parse("host.toml", &text).unwrap_or_else(|refusal| panic!("{refusal}\n{text}"));
        assert_eq!(read, machine);
        assert!(read.source_of("costs.wake_ns").unwrap().contains("2026-11-30"));
        assert!(read.source_of("costs.window").unwrap().contains("58455"));
    }

    #[test]
    fn an_odd_last_level_is_rounded_down_and_says_so() {
        let topology = two_cpus();
        let machine = figures(&topology).machine().unwrap();
        assert_eq!((machine.caches.llc.bytes, machine.caches.llc.sets()), (48 << 20, 65_536));
        assert!(machine.source_of("caches.llc.kib").unwrap().contains("55296 KiB in 12 ways"), "{:?}", machine.sources);
    }

    /// A busy machine's: the file was written, and refused when it was read.
    #[test]
    fn a_waking_of_milliseconds_is_written_and_read() {
        let topology = two_cpus();
        let mut figures = figures(&topology);
        figures.costs.wake_ns = Some(1_569_000.0);
        let machine = figures.machine().unwrap();
        let read = Machine::parse("host.toml", &machine.to_toml()).unwrap_or_else(|refusal| panic!("{refusal}"));
        assert_eq!((read.costs.wake_ns, read), (1_569_000.0, machine));
    }

    #[test]
    fn what_is_missing_is_named_and_never_zero() {
        let topology = two_cpus();
        let mut figures = figures(&topology);
        figures.costs.wake_ns = None;
        figures.caches[1] = None;
        figures.distances[0] = None;
        let unmeasured = figures.machine().unwrap_err();
        assert_eq!(unmeasured.figures, ["caches.l2", "distance.cluster", "costs.wake_ns"]);
        assert!(
            unmeasured.to_string().contains("no figure for caches.l2, distance.cluster, costs.wake_ns: measure again")
        );
    }

    #[test]
    fn ways_that_the_host_does_not_say_are_taken_and_said() {
        let topology = two_cpus();
        let mut figures = figures(&topology);
        figures.caches[0] = Some(Geometry { bytes: 32 << 10, ways: None });
        figures.fetches_pairs = None;
        let machine = figures.machine().unwrap();
        assert_eq!(machine.caches.l1.ways, 8);
        assert!(machine.source_of("caches.l1.ways").unwrap().contains("none said, taken as 8"));
        assert!(machine.source_of("caches.pairs").unwrap().starts_with("none measured"));
    }

    #[test]
    fn an_irregular_host_gets_the_smallest_shape_that_holds_it() {
        let mut topology = Shape { sockets: 1, clusters: 2, cores: 4, threads: 2 }.topology();
        topology.cpus.retain(|cpu| cpu.core != 7);
        assert_eq!(Shape::of(&topology), (Shape { sockets: 1, clusters: 2, cores: 4, threads: 2 }, false));
        let mut figures = figures(&topology);
        figures.distances[1] = Some((85.0, 20.0));
        let machine = figures.machine().unwrap();
        assert!(machine.source_of("shape.cores").unwrap().contains("no regular shape"));
    }
}

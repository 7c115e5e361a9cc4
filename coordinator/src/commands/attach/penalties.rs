//! What an access to a contended line costs more than to one's own, by the CPUs that contend: as `topology --measure` found.

use crate::exit::CommandError;
use crate::foreign_file;
use crate::report::text::shown;
use record::{Interval, Reach, Topology};
use std::path::Path;

/// The probe's loop counts up: it loads and stores.
const ACCESSES_A_PASS: f64 = 2.0;

/// A machine's measured distances.
pub(super) struct Penalties(Option<Topology>);

impl Penalties {
    /// Of the file that `coordinator topology --measure --json` wrote on this machine; without one nothing is known.
    pub(super) fn read(path: Option<&Path>) -> Result<Penalties, CommandError> {
        let Some(path) = path else { return Ok(Penalties(None)) };
        let refused = |what: String| {
            let how = "coordinator topology --measure --json > FILE";
            CommandError::Usage(format!("--measured {}: {what}; write it with `{how}`", shown(path)))
        };
        let text = foreign_file::read_named(path).map_err(|error| refused(error.to_string()))?;
        let known: Topology = serde_json::from_slice(&text).map_err(|error| refused(error.to_string()))?;
        if known.latency_ns.is_empty() {
            return Err(refused("no distances are in it".to_owned()));
        }
        Ok(Penalties(Some(known)))
    }

    /// Nanoseconds by which an access is dearer, between two CPUs; of a pair that was not measured, as of those of its
    /// distance. In its middle the loop that was measured, whose pass is two accesses, a load and a store: it lets several
    /// passes through each time it has the line. At the other end an access that has to fetch the line each time. `None`
    /// where neither is known, or the CPUs are one.
    pub(super) fn between(&self, a: u32, b: u32) -> Option<Interval> {
        let known = self.0.as_ref()?;
        let alone = known.costs.as_ref()?.bump_ns?;
        let (from, to) = (a.min(b), a.max(b));
        let pair = known.latency_ns.iter().find(|pair| (pair.from, pair.to) == (from, to));
        let of_pair = pair.and_then(|pair| Some((pair.contended_ns?, pair.fetch_ns?)));
        let (contended, fetch) = of_pair.or_else(|| {
            let distance = distance(known, from, to)?;
            let row = known.distances.iter().find(|row| row.distance == distance)?;
            Some((row.contended_ns?, row.fetch_ns?))
        })?;
        let in_the_loop = (contended - alone).max(0.0) / ACCESSES_A_PASS;
        let fetching = (fetch - alone).max(0.0);
        Some(Interval { median: in_the_loop, low: in_the_loop.min(fetching), high: in_the_loop.max(fetching) })
    }
}

/// What two CPUs have in common, as the file names it.
fn distance(known: &Topology, a: u32, b: u32) -> Option<&'static str> {
    let of = |id: u32| known.cpus.iter().find(|cpu| cpu.id == id);
    let (a, b) = (of(a)?, of(b)?);
    (a.id != b.id).then(|| Reach::between(a, b).name())
}

#[cfg(test)]
mod tests {
    use super::Penalties;
    use record::{CostProbe, CpuRow, DistanceRow, Interval, PairLatency, SCHEMA_VERSION, Topology};

    fn known() -> Topology {
        let cpu = |id, llc| CpuRow { id, core: id, llc, node: 0, socket: 0, usable: true };
        let cluster = |transfer_ns, contended, fetch| DistanceRow {
            distance: "cluster".to_owned(),
            pairs: 1,
            transfer_ns,
            contended_ns: Some(contended),
            fetch_ns: Some(fetch),
            tenure_ns: None,
        };
        Topology {
            schema_version: SCHEMA_VERSION,
            cpu_model: "x".to_owned(),
            hypervisor: None,
            cpus: vec![cpu(0, 0), cpu(1, 0), cpu(2, 0), cpu(3, 1)],
            caches: vec![],
            latency_ns: vec![PairLatency {
                from: 0,
                to: 1,
                distance: "cluster".to_owned(),
                median: 50.0,
                min: 45.0,
                max: 60.0,
                readings: 6,
                contended_ns: Some(20.3),
                fetch_ns: Some(60.3),
                tenure_ns: Some(9.0),
            }],
            distances: vec![cluster(55.0, 25.3, 65.3)],
            sample: None,
            costs: Some(CostProbe { bump_ns: Some(0.3), ..CostProbe::default() }),
            adjacent_line: None,
        }
    }

    #[test]
    fn a_pair_has_its_own_figures_and_another_those_of_its_distance() {
        let penalties = Penalties(Some(known()));
        let of = |a, b| penalties.between(a, b);
        assert_eq!(of(1, 0), Some(Interval { median: 10.0, low: 10.0, high: 60.0 }));
        assert_eq!(of(0, 2), Some(Interval { median: 12.5, low: 12.5, high: 65.0 }));
        assert_eq!((of(0, 3), of(0, 9), of(2, 2)), (None, None, None), "not measured; not there; one CPU");
        assert_eq!(Penalties(None).between(0, 1), None);
    }

    #[test]
    fn a_file_without_distances_is_refused_with_the_command_that_writes_one() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let refused = |text: &str| {
            std::fs::write(file.path(), text).expect("room");
            match Penalties::read(Some(file.path())).err() {
                Some(crate::exit::CommandError::Usage(text)) => text,
                other => panic!("{other:?}"),
            }
        };
        let bare = Topology { latency_ns: vec![], ..known() };
        for text in ["", &serde_json::to_string(&bare).expect("JSON")] {
            assert!(refused(text).contains("topology --measure --json"), "{}", refused(text));
        }
    }
}

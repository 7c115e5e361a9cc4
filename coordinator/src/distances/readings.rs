//! From the traces of rings to what lies between two CPUs: medians and spreads by pair, medians by distance.

use model::Distance;
use plan::{CpuId, Program, TickRate, Topology};
use record::{CostProbe, CpuRow, DistanceRow, PairLatency, Reach, Trace};
use std::collections::BTreeMap;

/// Readings of the contended probe count where their one-way time lies within this factor of the pair's median: a
/// hypervisor that moves CPUs changes both, and figures of two states do not go together.
const SAME_STATE: f64 = 1.2;

/// One reading of a pair, nanoseconds.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Reading {
    /// One way of the line.
    pub(super) transfer_ns: f64,
    /// A contended pass: the mean of the two CPUs'.
    pub(super) contended_ns: Option<f64>,
}

/// All readings so far, by pair, and what operations cost on each worker's CPU.
#[derive(Debug, Default)]
pub(super) struct Readings {
    pairs: BTreeMap<(CpuId, CpuId), Vec<Reading>>,
    costs: Vec<CostProbe>,
}

impl Readings {
    /// Adds those of one repetition.
    pub(super) fn add(&mut self, program: &Program, traces: &[Trace], rate: TickRate) {
        let ns = |ticks: f64| ticks / rate.ticks_per_ns;
        let cpu_of = |worker: u32| program.worker(worker).map(|w| w.cpu);
        for starter in traces {
            for (nth, edge) in starter.edges.iter().filter(|edge| edge.transfer_ticks.is_some()).enumerate() {
                let (Some(from), Some(to)) = (cpu_of(starter.worker), cpu_of(edge.neighbour)) else { continue };
                // The answerer's reading of the same rally: before or after the window, as the starter's.
                let answerer = traces.iter().find(|trace| trace.worker == edge.neighbour);
                let answered = answerer.and_then(|trace| {
                    let theirs = |e: &&record::EdgeProbe| e.neighbour == starter.worker && e.transfer_ticks.is_none();
                    trace.edges.iter().filter(theirs).nth(nth)
                });
                let sides = [Some(edge), answered].into_iter().flatten();
                let contended: Vec<f64> = sides.filter_map(|side| side.contended_ticks).map(ns).collect();
                let mean = contended.iter().sum::<f64>() / contended.len() as f64;
                let reading = Reading {
                    transfer_ns: ns(edge.transfer_ticks.unwrap_or(f64::NAN)),
                    contended_ns: (!contended.is_empty()).then_some(mean),
                };
                self.pairs.entry((from.min(to), from.max(to))).or_default().push(reading);
            }
        }
        self.costs.extend(traces.iter().map(|trace| trace.costs));
    }

    /// Medians over the CPUs.
    pub(super) fn costs(&self) -> CostProbe {
        CostProbe::median(&self.costs)
    }

    /// Every pair with its spread, ascending.
    pub(super) fn pairs(&self, topology: &Topology) -> Vec<PairLatency> {
        let bump_ns = self.costs().bump_ns;
        let row = |(&(from, to), readings): (&(CpuId, CpuId), &Vec<Reading>)| {
            let cpu = |id| topology.cpu(id).map(CpuRow::of);
            let reach = Reach::between(&cpu(from)?, &cpu(to)?);
            pair(from, to, reach, readings, bump_ns)
        };
        self.pairs.iter().filter_map(row).collect()
    }
}

fn pair(from: CpuId, to: CpuId, reach: Reach, readings: &[Reading], bump_ns: Option<f64>) -> Option<PairLatency> {
    let mut transfers: Vec<f64> = readings.iter().map(|reading| reading.transfer_ns).collect();
    transfers.sort_by(f64::total_cmp);
    let (min, median, max) = (*transfers.first()?, transfers[transfers.len() / 2], *transfers.last()?);
    let near =
        |reading: &&Reading| reading.transfer_ns <= median * SAME_STATE && reading.transfer_ns >= median / SAME_STATE;
    let contended_ns = middle(readings.iter().filter(near).filter_map(|reading| reading.contended_ns));
    let distance = contended_ns.zip(bump_ns).map(|(contended, bump)| Distance::from_probes(median, contended, bump));
    Some(PairLatency {
        from: from.0,
        to: to.0,
        distance: reach.name().to_owned(),
        median,
        min,
        max,
        readings: readings.len() as u32,
        contended_ns,
        fetch_ns: distance.map(|d| d.fetch_ns),
        tenure_ns: distance.map(|d| d.tenure_ns),
    })
}

/// What pairs of each distance have in common, nearest first.
pub(super) fn distances(pairs: &[PairLatency]) -> Vec<DistanceRow> {
    let row = |reach: Reach| {
        let own: Vec<&PairLatency> = pairs.iter().filter(|pair| pair.distance == reach.name()).collect();
        Some(DistanceRow {
            distance: reach.name().to_owned(),
            pairs: own.len() as u32,
            transfer_ns: middle(own.iter().map(|pair| pair.median))?,
            contended_ns: middle(own.iter().filter_map(|pair| pair.contended_ns)),
            fetch_ns: middle(own.iter().filter_map(|pair| pair.fetch_ns)),
            tenure_ns: middle(own.iter().filter_map(|pair| pair.tenure_ns)),
        })
    };
    Reach::ALL.into_iter().filter_map(row).collect()
}

/// The median; `None` of nothing.
pub(super) fn middle(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::super::measure::ring_program;
    use super::*;
    use model::Shape;
    use record::EdgeProbe;

    const RATE: TickRate = TickRate { ticks_per_ns: 2.0 };

    fn trace(worker: u32, edges: Vec<EdgeProbe>) -> Trace {
        Trace { worker, edges, costs: CostProbe { bump_ns: Some(0.5), ..CostProbe::default() }, ..Trace::default() }
    }

    fn edge(neighbour: u32, transfer_ticks: Option<f64>, contended_ticks: Option<f64>) -> EdgeProbe {
        EdgeProbe { neighbour, transfer_ticks, contended_ticks }
    }

    #[test]
    fn both_sides_of_a_rally_make_one_reading() {
        let topology = Shape { sockets: 1, clusters: 2, cores: 2, threads: 1 }.topology();
        let program = ring_program(&[CpuId(3), CpuId(0), CpuId(1)], 64);
        let mut readings = Readings::default();
        // Workers 0, 1, 2 on CPUs 3, 0, 1: worker 0 starts with 1, 1 with 2, 2 with 0; each before and after.
        let traces = [
            trace(
                0,
                vec![
                    edge(1, Some(200.0), Some(10.0)),
                    edge(2, None, Some(4.0)),
                    edge(1, Some(220.0), None),
                    edge(2, None, None),
                ],
            ),
            trace(
                1,
                vec![
                    edge(0, None, Some(20.0)),
                    edge(2, Some(40.0), Some(6.0)),
                    edge(0, None, Some(24.0)),
                    edge(2, Some(42.0), Some(8.0)),
                ],
            ),
            trace(
                2,
                vec![
                    edge(1, None, Some(10.0)),
                    edge(0, Some(180.0), Some(8.0)),
                    edge(1, None, Some(8.0)),
                    edge(0, Some(190.0), None),
                ],
            ),
        ];
        readings.add(&program, &traces, RATE);
        let of = |a: u32, b: u32| readings.pairs[&(CpuId(a), CpuId(b))].clone();
        let reading = |transfer_ns, contended_ns| Reading { transfer_ns, contended_ns };
        assert_eq!(of(0, 3), [reading(100.0, Some(7.5)), reading(110.0, Some(12.0))]);
        assert_eq!(of(0, 1), [reading(20.0, Some(4.0)), reading(21.0, Some(4.0))]);
        assert_eq!(of(1, 3), [reading(90.0, Some(3.0)), reading(95.0, None)]);

        let pairs = readings.pairs(&topology);
        let names: Vec<_> = pairs.iter().map(|p| (p.from, p.to, p.distance.as_str(), p.readings)).collect();
        assert_eq!(names, [(0, 1, "cluster", 2), (0, 3, "socket", 2), (1, 3, "socket", 2)]);
        let near = Distance::from_probes(21.0, 4.0, 0.5);
        assert_eq!((pairs[0].median, pairs[0].min, pairs[0].max), (21.0, 20.0, 21.0));
        assert_eq!((pairs[0].fetch_ns, pairs[0].tenure_ns), (Some(near.fetch_ns), Some(near.tenure_ns)));
        let rows = distances(&pairs);
        assert_eq!(
            rows.iter().map(|r| (r.distance.as_str(), r.pairs)).collect::<Vec<_>>(),
            [("cluster", 1), ("socket", 2)]
        );
    }

    #[test]
    fn contention_in_another_state_of_the_machine_does_not_count() {
        let reading = |transfer_ns, contended_ns| Reading { transfer_ns, contended_ns: Some(contended_ns) };
        let seen =
            [reading(54.0, 19.0), reading(55.0, 20.0), reading(215.0, 2.0), reading(52.0, 18.0), reading(210.0, 2.1)];
        let pair = pair(CpuId(0), CpuId(1), Reach::Cluster, &seen, Some(0.33)).unwrap();
        assert_eq!((pair.median, pair.min, pair.max, pair.contended_ns), (55.0, 52.0, 215.0, Some(19.0)));
    }

    #[test]
    fn what_evictions_took_is_missing_and_not_zero() {
        let seen = [Reading { transfer_ns: 54.0, contended_ns: None }];
        let pair = pair(CpuId(0), CpuId(1), Reach::Cluster, &seen, Some(0.33)).unwrap();
        assert_eq!((pair.contended_ns, pair.fetch_ns, pair.tenure_ns), (None, None, None));
        assert_eq!(distances(&[pair])[0].tenure_ns, None);
        assert!(distances(&[]).is_empty());
    }
}

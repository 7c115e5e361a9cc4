//! What a machine did between two of its runs, as far as the runs' own probes tell: the part of a ratio that no change
//! of a scenario made.
//!
//! Within a run arms are compared block by block, and a drift of the machine is in both. Two runs have nothing of the
//! kind: on one virtual machine the same padded loop read 0.234 and 0.250 ns a pass within a day, each to half a per
//! cent. The probes that every repetition makes say most of it: what a compiled load, store, `bump`, `add` and plain
//! instruction cost on the workers' CPUs (they move together, with the core's clock), and, where workers share a line,
//! how long a line takes and how long a contended pass. Nobody knows how much of such a drift a given loop takes on,
//! none or all, so the interval is widened to hold both. docs/compare.md has how often that was right over pairs of
//! runs of one scenario.

use crate::compare::Sides;
use crate::words::figure;
use record::{ArmSummary, CostProbe, Interval, Regime, Run};
use std::collections::{BTreeMap, BTreeSet};

/// What the probes leave unexplained, as a ratio: each is the shortest of several tries, and a loop takes what comes.
const APART: f64 = 1.01;

/// The same where workers share a line: contended passes scatter by up to so much in one state of the machine.
const SHARED: f64 = 1.05;

/// Readings of the transfer time further apart than this are of CPUs at another distance: as within a run
/// ([`crate::regime`]).
const TRANSFER_SPLIT: f64 = 1.4;

/// Readings of the contended pass further apart than this are of another state of the machine: they scatter by 2 to 8 %
/// in one. Within a run, where there are many to tell states apart by, it is 1.15.
const CONTENDED_SPLIT: f64 = 1.08;

/// The machine during one arm's runs on both sides.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Between {
    /// Between which factors the machine's own figures moved, run over base; 1 is among them.
    drift: (f64, f64),
    /// What the probes leave unexplained.
    unexplained: f64,
    /// Why no difference can be laid to a change: what workers pay for a line they share on both sides hangs on where
    /// the machine has put their CPUs, up to tenfold. Where one side shares none, its figure is good in every such
    /// state.
    pub(super) alike: Result<(), String>,
}

impl Between {
    pub(super) fn of(sides: &Sides, base: &ArmSummary, run: &ArmSummary) -> Between {
        let shared = [shares_lines(base), shares_lines(run)];
        let regimes = regime(sides.base, base).zip(regime(sides.run, run));
        let mut factors = regimes.map_or(Vec::new(), |(base, run)| cores(base, run));
        let mut alike = Ok(());
        if let Some((base, run)) = regimes.filter(|_| shared == [true; 2]) {
            factors.extend([transfer(base, run), contended(base, run)].into_iter().flatten());
            alike = lines_alike(base, run);
        }
        let drift = factors.into_iter().fold((1.0, 1.0), |(low, high): (f64, f64), f| (low.min(f), high.max(f)));
        Between { drift, unexplained: if shared.contains(&true) { SHARED } else { APART }, alike }
    }

    /// The interval with room for what the machine may have done.
    pub(super) fn widened(&self, ratio: Interval) -> Interval {
        Interval {
            low: ratio.low / self.drift.1 / self.unexplained,
            high: ratio.high / self.drift.0 * self.unexplained,
            ..ratio
        }
    }
}

/// The regime of an arm's figures; the run's headline regime in records that do not name it by arm.
pub(super) fn regime_of(run: &Run, arm: &ArmSummary) -> Option<u32> {
    arm.regime.or(run.method.headline_regime.as_ref().map(|regime| regime.number))
}

fn regime<'a>(run: &'a Run, arm: &ArmSummary) -> Option<&'a Regime> {
    let number = regime_of(run, arm)?;
    run.method.regimes.iter().find(|regime| regime.number == number)
}

/// How many times as long each operation takes in the run as in the base; core speed where one side timed none.
pub(super) fn cores(base: &Regime, run: &Regime) -> Vec<f64> {
    let costs = |c: &CostProbe| [c.load_ns, c.store_ns, c.bump_ns, c.atomic_ns, c.instruction_ns];
    let both = costs(&base.costs).into_iter().zip(costs(&run.costs));
    let factors: Vec<f64> = both.filter_map(|(base, run)| factor(base?, run?)).collect();
    if factors.is_empty() { factor(base.core_loop_ns, run.core_loop_ns).into_iter().collect() } else { factors }
}

fn factor(base: f64, run: f64) -> Option<f64> {
    Some(run / base).filter(|factor| factor.is_finite() && *factor > 0.0)
}

fn transfer(base: &Regime, run: &Regime) -> Option<f64> {
    factor(base.transfer_ns?, run.transfer_ns?)
}

fn contended(base: &Regime, run: &Regime) -> Option<f64> {
    factor(base.contended_ns?, run.contended_ns?)
}

/// Whether the time a line takes between the workers' CPUs, and a contended pass, are of different states of the
/// machine.
pub(super) fn lines_moved(base: &Regime, run: &Regime) -> (bool, bool) {
    let apart = |factor: Option<f64>, split: f64| factor.is_some_and(|f| f.max(1.0 / f) > split);
    (apart(transfer(base, run), TRANSFER_SPLIT), apart(contended(base, run), CONTENDED_SPLIT))
}

fn lines_alike(base: &Regime, run: &Regime) -> Result<(), String> {
    let told = |what: &str, base: Option<f64>, run: Option<f64>| {
        let ns = |ns: Option<f64>| figure(ns.unwrap_or(f64::NAN));
        Err(format!("the machines are not alike: {what} {} ns in the base, {} in the run", ns(base), ns(run)))
    };
    match lines_moved(base, run) {
        (true, _) => told("a line takes", base.transfer_ns, run.transfer_ns),
        (_, true) => told("a contended pass takes", base.contended_ns, run.contended_ns),
        _ => Ok(()),
    }
}

/// Whether some line of an arm is touched by several workers and written by one of them, or its memory is given back.
fn shares_lines(arm: &ArmSummary) -> bool {
    #[derive(Default)]
    struct Line {
        touched: Vec<u32>,
        written: bool,
    }
    let mut lines: BTreeMap<u64, Line> = BTreeMap::new();
    for row in &arm.layout {
        // A file may say that it is as long as memory. The lines between its ends are all alike: nothing else lies there.
        let first = row.offset / plan::CACHE_LINE_BYTES;
        let last = row.offset.saturating_add(row.bytes.max(1) - 1) / plan::CACHE_LINE_BYTES;
        for number in BTreeSet::from([first, last.min(first + 1), last]) {
            let line = lines.entry(number).or_default();
            line.touched.extend(row.writers.iter().chain(&row.readers));
            line.written |= !row.writers.is_empty();
        }
    }
    let by_several = |line: &Line| line.touched.iter().any(|worker| *worker != line.touched[0]);
    arm.timeline.is_some() || lines.values().any(|line| line.written && by_several(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::LayoutRow;

    fn row(offset: u64, bytes: u64, writers: &[u32], readers: &[u32]) -> LayoutRow {
        let (writers, readers) = (writers.to_vec(), readers.to_vec());
        LayoutRow { field: "f".into(), element: 0, offset, bytes, line: offset / 64, writers, readers }
    }

    fn shares(rows: Vec<LayoutRow>) -> bool {
        let findings = crate::testkit::Bench::new(&["a"]).analyse();
        shares_lines(&ArmSummary { layout: rows, ..findings.arms[0].clone() })
    }

    #[test]
    fn a_line_is_shared_where_several_touch_it_and_one_writes() {
        assert!(shares(vec![row(0, 8, &[0], &[]), row(8, 8, &[1], &[])]));
        assert!(shares(vec![row(0, 8, &[0], &[]), row(8, 8, &[], &[1])]));
        assert!(shares(vec![row(0, 8, &[0], &[]), row(60, 8, &[], &[1])]), "across two lines");
        assert!(!shares(vec![row(0, 8, &[0], &[0]), row(64, 8, &[1], &[1])]));
        assert!(!shares(vec![row(0, 8, &[], &[0]), row(8, 8, &[], &[1])]), "nobody writes");
        assert!(!shares(vec![]));
    }

    #[test]
    fn an_element_as_long_as_memory_is_looked_at_by_its_ends() {
        assert!(!shares(vec![row(0, u64::MAX, &[0], &[])]));
        assert!(!shares(vec![row(u64::MAX, u64::MAX, &[0], &[])]));
        assert!(shares(vec![row(0, u64::MAX, &[0], &[1])]));
        assert!(shares(vec![row(0, 192, &[0], &[]), row(190, 8, &[1], &[])]), "by the last of its lines");
    }

    #[test]
    fn an_interval_has_room_for_no_drift_and_for_all_of_it() {
        let ratio = Interval { median: 1.06, low: 1.05, high: 1.07 };
        let widened = |drift| Between { drift, unexplained: 1.0, alike: Ok(()) }.widened(ratio);
        assert_eq!(widened((1.0, 1.0)), ratio);
        let slower_machine = widened((1.0, 1.06));
        assert!(slower_machine.low < 1.0 && slower_machine.high == 1.07, "{slower_machine:?}");
        let faster_machine = widened((0.9, 1.0));
        assert!(faster_machine.low == 1.05 && faster_machine.high > 1.18, "{faster_machine:?}");
    }
}

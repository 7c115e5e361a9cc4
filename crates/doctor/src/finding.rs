//! A check's outcome, and which runs it spoils.

use plan::CpuId;
use record::{Check, CheckState};

/// One check, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// As it is shown.
    pub check: Check,
    /// The runs that it spoils where its state is not `ok`.
    pub spoils: Spoils,
}

/// Which runs a check that is not `ok` spoils.
#[derive(Clone, Debug, PartialEq)]
pub enum Spoils {
    /// None: worth knowing only.
    Nothing,
    /// Every run on this machine.
    EveryRun,
    /// Runs that use one of these CPUs.
    On(Vec<CpuId>),
    /// Runs that make a claim about, or ask by name for, what the processor counts.
    HardwareCounts,
    /// Runs with more workers at once than so many CPUs' worth of time.
    MoreWorkersThan(f64),
    /// Runs whose segment takes more bytes.
    SegmentsOver(u64),
}

/// What a run needs of the machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    /// CPUs its workers are pinned to, over all arms.
    pub cpus: Vec<CpuId>,
    /// Most workers at once in any arm.
    pub workers: u32,
    /// Bytes of its largest segment.
    pub segment_bytes: u64,
    /// Whether a claim or the user names an event of the processor's.
    pub hardware_counts: bool,
}

impl Finding {
    /// A check that is as it should be.
    pub(crate) fn ok(name: &str, seen: impl Into<String>, why: impl Into<String>) -> Finding {
        Finding::judged(CheckState::Ok, name, seen.into(), why.into())
    }

    /// A check on something that disturbs or misleads.
    pub(crate) fn warn(name: &str, seen: impl Into<String>, why: impl Into<String>) -> Finding {
        Finding::judged(CheckState::Warn, name, seen.into(), why.into())
    }

    /// A check on something that this machine lacks or does not say.
    pub(crate) fn missing(name: &str, seen: impl Into<String>, why: impl Into<String>) -> Finding {
        Finding::judged(CheckState::Missing, name, seen.into(), why.into())
    }

    fn judged(state: CheckState, name: &str, seen: String, why: String) -> Finding {
        Finding { check: Check { name: name.to_owned(), state, seen, why, cure: None }, spoils: Spoils::Nothing }
    }

    /// The same, with what changes it.
    pub(crate) fn cured_by(mut self, cure: impl Into<String>) -> Finding {
        self.check.cure = Some(cure.into());
        self
    }

    /// The same, spoiling some runs.
    pub(crate) fn spoiling(self, spoils: Spoils) -> Finding {
        Finding { spoils, ..self }
    }

    /// Whether this spoils a run with these needs.
    pub fn spoils(&self, needs: &Needs) -> bool {
        self.check.state != CheckState::Ok
            && match &self.spoils {
                Spoils::Nothing => false,
                Spoils::EveryRun => true,
                Spoils::On(cpus) => needs.cpus.iter().any(|cpu| cpus.contains(cpu)),
                Spoils::HardwareCounts => needs.hardware_counts,
                Spoils::MoreWorkersThan(cpus) => f64::from(needs.workers) > *cpus,
                Spoils::SegmentsOver(bytes) => needs.segment_bytes > *bytes,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_spoils_only_the_runs_that_it_concerns_and_none_where_it_is_well() {
        let needs = Needs { cpus: vec![CpuId(2)], workers: 2, segment_bytes: 8_192, hardware_counts: false };
        let of = |spoils| Finding::warn("name", "seen", "why").spoiling(spoils).spoils(&needs);
        assert!(of(Spoils::EveryRun) && of(Spoils::On(vec![CpuId(1), CpuId(2)])));
        assert!(of(Spoils::MoreWorkersThan(1.5)) && of(Spoils::SegmentsOver(4_096)));
        assert!(!of(Spoils::Nothing) && !of(Spoils::On(vec![CpuId(1)])) && !of(Spoils::HardwareCounts));
        assert!(!of(Spoils::MoreWorkersThan(2.0)) && !of(Spoils::SegmentsOver(8_192)));
        assert!(!Finding::ok("name", "seen", "why").spoiling(Spoils::EveryRun).spoils(&needs));
        assert!(Finding::missing("name", "seen", "why").spoiling(Spoils::EveryRun).spoils(&needs));
    }
}

//! A check's outcome, and which runs it spoils.

use plan::CpuId;
use record::{Check, CheckState};

/// One check, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// As it is shown; what it spoils is for [`Finding::spoils`] to say.
    pub check: Check,
    /// The runs that it spoils: where its state is not `ok`, or, with a figure that a run's own is held against,
    /// whatever its state.
    pub spoils: Spoils,
    /// Whether what was looked at is off or not there, and nothing is wrong with that: the screen may name several such
    /// checks in one line.
    pub idle: bool,
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
    /// Runs of which a process has more files open at once.
    MoreFilesThan(u64),
    /// Runs with more workers at once, each a thread.
    MoreThreadsThan(u64),
    /// Runs of which no arm finds CPUs for its workers.
    Unplaced,
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
    /// Files that the process with most of them has open at once.
    pub open_files: u64,
    /// Most threads at once beside the coordinator's, over all arms: workers, whether they share CPUs or not.
    pub threads: u64,
    /// Why no variant can be placed on the CPUs that this process may use; `None` where one can.
    pub unplaced: Option<String>,
}

impl Finding {
    /// A check that is as it should be.
    pub(crate) fn ok(name: &str, seen: impl Into<String>, why: impl Into<String>) -> Finding {
        Finding::judged(CheckState::Ok, name, seen.into(), why.into())
    }

    /// A check that is as it should be because what it looks at is off or not there.
    pub(crate) fn idle(name: &str, seen: impl Into<String>, why: impl Into<String>) -> Finding {
        Finding { idle: true, ..Finding::ok(name, seen, why) }
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
        let check = Check { name: name.to_owned(), state, seen, why, cure: None, spoils: false };
        Finding { check, spoils: Spoils::Nothing, idle: false }
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
        let unwell = self.check.state != CheckState::Ok;
        match &self.spoils {
            Spoils::Nothing => false,
            Spoils::EveryRun => unwell,
            Spoils::On(cpus) => unwell && needs.cpus.iter().any(|cpu| cpus.contains(cpu)),
            Spoils::HardwareCounts => unwell && needs.hardware_counts,
            // What is enough for most may be too little for this run.
            Spoils::MoreWorkersThan(cpus) => f64::from(needs.workers) > *cpus,
            Spoils::SegmentsOver(bytes) => needs.segment_bytes > *bytes,
            Spoils::MoreFilesThan(files) => needs.open_files > *files,
            Spoils::MoreThreadsThan(threads) => needs.threads > *threads,
            Spoils::Unplaced => needs.unplaced.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_spoils_only_the_runs_that_it_concerns() {
        let needs = Needs {
            cpus: vec![CpuId(2)],
            workers: 2,
            segment_bytes: 8_192,
            hardware_counts: false,
            ..Needs::default()
        };
        let of = |spoils| Finding::warn("name", "seen", "why").spoiling(spoils).spoils(&needs);
        assert!(of(Spoils::EveryRun) && of(Spoils::On(vec![CpuId(1), CpuId(2)])));
        assert!(of(Spoils::MoreWorkersThan(1.5)) && of(Spoils::SegmentsOver(4_096)));
        assert!(!of(Spoils::Nothing) && !of(Spoils::On(vec![CpuId(1)])) && !of(Spoils::HardwareCounts));
        assert!(!of(Spoils::MoreWorkersThan(2.0)) && !of(Spoils::SegmentsOver(8_192)));
        assert!(!Finding::ok("name", "seen", "why").spoiling(Spoils::EveryRun).spoils(&needs));
        let well = |spoils| Finding::ok("name", "seen", "why").spoiling(spoils).spoils(&needs);
        assert!(
            well(Spoils::SegmentsOver(8_191)) && !well(Spoils::SegmentsOver(8_192)),
            "a run may need more than most"
        );
        let files = Needs { open_files: 21, unplaced: Some("needs 2 CPUs".into()), ..Needs::default() };
        let well_for = |spoils| Finding::ok("name", "seen", "why").spoiling(spoils).spoils(&files);
        assert!(well_for(Spoils::MoreFilesThan(20)) && !well_for(Spoils::MoreFilesThan(21)));
        let many = Needs { threads: 9, ..Needs::default() };
        let well_with =
            |threads| Finding::ok("name", "seen", "why").spoiling(Spoils::MoreThreadsThan(threads)).spoils(&many);
        assert!(well_with(8) && !well_with(9));
        assert!(well_for(Spoils::Unplaced) && !well(Spoils::Unplaced));
        assert!(well(Spoils::MoreWorkersThan(1.5)) && !well(Spoils::MoreWorkersThan(2.0)));
        assert!(Finding::missing("name", "seen", "why").spoiling(Spoils::EveryRun).spoils(&needs));
    }
}

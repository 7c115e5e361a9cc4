//! Reading what ended workers left.

use crate::launch::Child;
use crate::provision::Provision;
use record::Trace;
use worker::Report;

/// What the processes of one repetition left.
pub(crate) enum Collected {
    /// All ran: one trace a worker, in the Program's order.
    Traces(Vec<Trace>),
    /// One worker could not.
    Failed(Failed),
    /// A process left nothing readable: its position.
    Missing(usize),
}

/// A worker's own words on why it ended.
pub(crate) struct Failed {
    /// Its process's position.
    pub(crate) nth: usize,
    /// Its index; `None` where the process failed before its workers began.
    pub(crate) worker: Option<u32>,
    pub(crate) failure: worker::Failure,
}

/// Reads the reports of processes that have all ended; those that died as planned have none.
pub(crate) fn collect(provision: &mut Provision, children: &[Child]) -> Collected {
    let mut traces = Vec::new();
    let mut left_with_another = None;
    let mut missing = None;
    for (nth, file) in provision.reports.iter_mut().enumerate() {
        match Report::read(file) {
            Ok(Some(Report::Traces(of_process))) => traces.extend(of_process),
            Ok(Some(Report::Failed { worker, failure })) => {
                let failed = Failed { nth, worker, failure };
                match failed.failure.aborted {
                    true => left_with_another = Some(failed),
                    false => return Collected::Failed(failed),
                }
            }
            _ if children.get(nth).is_some_and(Child::died_as_planned) => {}
            Ok(None) | Err(_) => missing = missing.or(Some(nth)),
        }
    }
    match (missing, left_with_another) {
        (Some(nth), _) => Collected::Missing(nth),
        (None, Some(failed)) => Collected::Failed(failed),
        (None, None) => Collected::Traces(traces),
    }
}

/// A worker's own words on why it ended, where it left any.
pub(crate) fn failure_of(provision: &mut Provision, children: &[Child]) -> Option<Failed> {
    match collect(provision, children) {
        Collected::Failed(failed) if !failed.failure.aborted && failed.nth < children.len() => Some(failed),
        _ => None,
    }
}

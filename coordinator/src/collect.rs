//! Reading what ended workers left.

use crate::launch::Child;
use crate::provision::Provision;
use record::Trace;
use worker::Report;

/// What the workers of one repetition left.
pub(crate) enum Collected {
    /// All ran: one trace a worker, in the Program's order.
    Traces(Vec<Trace>),
    /// One could not; its position and what it said.
    Failed(usize, worker::Failure),
    /// One left nothing readable.
    Missing(usize),
}

/// Reads the reports of workers that have all ended; those that died as planned have none.
pub(crate) fn collect(provision: &mut Provision, children: &[Child]) -> Collected {
    let mut traces = Vec::with_capacity(provision.reports.len());
    let mut left_with_another = None;
    let mut missing = None;
    for (nth, file) in provision.reports.iter_mut().enumerate() {
        match Report::read(file) {
            Ok(Some(Report::Trace(trace))) => traces.push(*trace),
            Ok(Some(Report::Failure(failure))) if failure.aborted => left_with_another = Some((nth, failure)),
            Ok(Some(Report::Failure(failure))) => return Collected::Failed(nth, failure),
            _ if children.get(nth).is_some_and(Child::died_as_planned) => {}
            Ok(None) | Err(_) => missing = missing.or(Some(nth)),
        }
    }
    match (missing, left_with_another) {
        (Some(nth), _) => Collected::Missing(nth),
        (None, Some((nth, failure))) => Collected::Failed(nth, failure),
        (None, None) => Collected::Traces(traces),
    }
}

/// A worker's own words on why it ended, where it left any.
pub(crate) fn failure_of(provision: &mut Provision, children: &[Child]) -> Option<(usize, worker::Failure)> {
    match collect(provision, children) {
        Collected::Failed(nth, failure) if !failure.aborted && nth < children.len() => Some((nth, failure)),
        _ => None,
    }
}

//! Owner died: somebody found the lock's owner dead, and what it protects perhaps half changed.
//!
//! # References
//! `pthread_mutexattr_setrobust(3)`, `pthread_mutex_consistent(3)`.

use super::locks::{self, Finding, Site, measured};
use crate::view::View;
use record::{ArmSummary, Diagnosis};
use std::collections::BTreeSet;

/// Its rank among diagnoses: no figure of time says what a half-changed balance costs, and "medium" is to be looked at.
const RANK: f64 = 1.2;

pub(super) fn find(view: &View, arms: &[ArmSummary]) -> Option<(f64, Diagnosis)> {
    let sites = locks::sites(view, arms);
    locks::report("owner_died", sites.iter().filter(|site| site.lock.owner_died > 0).map(|s| told(s)).collect())
}

fn told<'a>(site: &Site<'a>) -> Finding<'a> {
    let (name, lock, died) = (site.name(), &site.lock.lock, site.lock.owner_died);
    let dying = site.program.workers.iter().filter(|w| w.dies());
    let roles: BTreeSet<String> = dying.map(|w| w.role_name.clone()).collect();
    let found = if died == 1 { "1 acquisition".to_owned() } else { format!("{died} acquisitions") };
    Finding {
        site: *site,
        cost: RANK,
        text: format!(
            "In `{name}`, {found} of `{lock}` ({}) found that its owner had died holding it. The lock was taken over and \
             went on; whether what it protects was left half changed, only the program can tell.",
            site.lock.kind
        ),
        fields: Vec::new(),
        roles: roles.into_iter().collect(),
        evidence: vec![measured(
            format!("acquisitions of `{lock}` in `{name}` that found the owner dead"),
            died as f64,
            "",
        )],
        cure: "Where the lock call answers EOWNERDEAD, check and repair the data, then call pthread_mutex_consistent; \
               without it the next unlock makes the lock unusable for all."
            .to_owned(),
        gain: None,
    }
}

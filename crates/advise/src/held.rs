//! Which locks a role holds where.

use plan::Action;
use std::collections::BTreeSet;

/// The locks that are held at each step.
pub(crate) fn held_in(steps: &[plan::Step]) -> Vec<BTreeSet<usize>> {
    let mut held = BTreeSet::new();
    steps
        .iter()
        .map(|step| {
            match step.action {
                Action::Lock { lock, .. } => _ = held.insert(lock),
                Action::Unlock { lock, .. } => _ = held.remove(&lock),
                _ => {}
            }
            held.clone()
        })
        .collect()
}

//! Locks of an arm: who acquired, who waited, and how long.

use crate::figures::jain;
use crate::stats::median_of;
use crate::times::{count, percentiles};
use plan::{LockKind, PlacedLock, Program};
use record::{HOLD_SAMPLING, LockObservation, LockSummary, LockWorker, Observation};
use std::collections::BTreeMap;

/// Every lock that the given (kept) observations of one arm used, in the Program's order.
pub(crate) fn summaries(program: &Program, observations: &[&Observation]) -> Vec<LockSummary> {
    let mut first: Vec<&PlacedLock> = Vec::new();
    for lock in &program.locks {
        if !first.iter().any(|known| known.name == lock.name) {
            first.push(lock);
        }
    }
    first.into_iter().filter_map(|lock| summary(program, lock, observations)).collect()
}

fn summary(program: &Program, lock: &PlacedLock, observations: &[&Observation]) -> Option<LockSummary> {
    let mut by_worker: BTreeMap<(u32, &str), Vec<&LockObservation>> = BTreeMap::new();
    for observation in observations {
        for seen in observation.locks.iter().filter(|l| l.lock == lock.name) {
            by_worker.entry((observation.worker, &observation.role)).or_default().push(seen);
        }
    }
    let all: Vec<&LockObservation> = by_worker.values().flatten().copied().collect();
    if all.is_empty() {
        return None;
    }
    let sum = |of: fn(&LockObservation) -> u64| all.iter().map(|l| of(l)).sum::<u64>();
    let (acquisitions, contended) = (sum(|l| l.acquisitions), sum(|l| l.contended));
    let by_worker: Vec<LockWorker> =
        by_worker.iter().map(|((worker, role), locks)| lock_worker(*worker, role, locks)).collect();
    let longest_gap = by_worker.iter().max_by(|a, b| a.longest_gap_ns.total_cmp(&b.longest_gap_ns));
    let copies = program.locks.iter().filter(|l| l.name == lock.name).count();
    Some(LockSummary {
        lock: lock.name.clone(),
        kind: lock.kind.name().to_owned(),
        acquisitions,
        contended,
        wait_ns: percentiles(all.iter().flat_map(|l| &l.kept_waits)),
        wait_ns_all: percentiles(all.iter().flat_map(|l| &l.all_waits)),
        masked: sum(|l| count(&l.all_waits) - count(&l.kept_waits)),
        waits_lost: sum(|l| l.waits_lost),
        hold_ns: percentiles(all.iter().flat_map(|l| &l.holds)),
        handoffs: sum(|l| l.handoffs),
        longest_run: all.iter().map(|l| l.longest_run).max().unwrap_or(0),
        owner_died: sum(|l| l.owner_died),
        contended_share: share(contended, acquisitions).filter(|_| program.timed_locks),
        handoffs_per_op: share(sum(|l| l.handoffs), acquisitions),
        fairness_jain: median_of(by_repetition(&lock.name, observations)).filter(|_| copies == 1),
        longest_gap_ns: longest_gap.map(|w| w.longest_gap_ns),
        longest_gap_worker: longest_gap.map(|w| w.worker),
        shared: sum(|l| l.shared),
        spins_per_wait: share(sum(|l| l.spins), contended).filter(|_| spins_itself(lock.kind)),
        futex_waits_per_op: share(sum(|l| l.futex_waits), acquisitions).filter(|_| sleeps_itself(lock.kind)),
        retries: sum(|l| l.retries),
        timeouts: sum(|l| l.timeouts),
        hold_sampling: if program.timed_locks { HOLD_SAMPLING } else { 0 },
        by_worker,
    })
}

fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

/// Whether waiting is spinning of the lab's own, which can count its turns.
fn spins_itself(kind: LockKind) -> bool {
    kind.spins() && !kind.is_tried_first()
}

/// Whether waiting is sleeping by the lab's own calls.
fn sleeps_itself(kind: LockKind) -> bool {
    !kind.spins() && !kind.is_tried_first()
}

/// A worker's acquisitions in the time that counts: of one that was off its CPU for half of the window the others got
/// twice as many, which says nothing of the lock. Acquisitions go with the passes in which they were made.
pub(crate) fn kept_acquisitions(observation: &Observation, lock: &LockObservation) -> f64 {
    match observation.passes {
        0 => 0.0,
        passes => lock.acquisitions as f64 * observation.kept_passes as f64 / passes as f64,
    }
}

/// Jain's index of the workers' kept acquisitions in each repetition that had several at the lock.
fn by_repetition(lock: &str, observations: &[&Observation]) -> Vec<f64> {
    let mut blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for observation in observations {
        let own = observation.locks.iter().filter(|l| l.lock == lock).map(|l| kept_acquisitions(observation, l));
        blocks.entry(observation.block).or_default().extend(own);
    }
    blocks.values().filter_map(|acquisitions| jain(acquisitions)).collect()
}

fn lock_worker(worker: u32, role: &str, locks: &[&LockObservation]) -> LockWorker {
    LockWorker {
        worker,
        role: role.to_owned(),
        acquisitions: locks.iter().map(|l| l.acquisitions).sum(),
        contended: locks.iter().map(|l| l.contended).sum(),
        wait_ns: percentiles(locks.iter().flat_map(|l| &l.kept_waits)),
        hold_ns: percentiles(locks.iter().flat_map(|l| &l.holds)),
        longest_gap_ns: locks.iter().map(|l| l.longest_gap_ns).fold(0.0, f64::max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::{lock_observation, lock_program, observation, twin_lock_program};
    use crate::times::tally;

    #[test]
    fn a_lock_adds_up_its_workers_and_says_who_waited() {
        let (mut a, mut b) = (observation("m", 0, 0, 60.0), observation("m", 0, 1, 60.0));
        a.locks.push(lock_observation("m", 100, &[50, 70], &[50, 70, 9_000_000]));
        b.locks.push(lock_observation("m", 300, &[], &[]));
        let seen = summaries(&twin_lock_program(), &[&a, &b]);
        assert_eq!(seen.len(), 1, "copies of one lock are one lock");
        let lock = &seen[0];
        assert_eq!((lock.acquisitions, lock.contended, lock.masked), (400, 3, 1));
        assert_eq!(lock.wait_ns.unwrap().max, 70);
        assert!(lock.wait_ns_all.unwrap().max > 8_000_000);
        assert_eq!(lock.by_worker[1].wait_ns, None);
        assert_eq!(lock.by_worker.iter().map(|w| w.acquisitions).collect::<Vec<_>>(), [100, 300]);
        assert_eq!((lock.hold_ns, lock.fairness_jain), (None, None), "copies share nothing out");
    }

    /// Two workers that acquired 100 and 300 times.
    fn uneven(kind: LockKind, timed: bool) -> LockSummary {
        let (mut a, mut b) = (observation("m", 0, 0, 60.0), observation("m", 0, 1, 60.0));
        a.locks.push(LockObservation {
            spins: 40,
            futex_waits: 8,
            retries: 3,
            timeouts: 2,
            shared: 90,
            holds: tally([20, 30].into_iter()),
            longest_gap_ns: 5e6,
            ..lock_observation("m", 100, &[50], &[50])
        });
        b.locks.push(LockObservation {
            holds: tally([500].into_iter()),
            longest_gap_ns: 1e6,
            ..lock_observation("m", 300, &[70], &[70])
        });
        summaries(&Program { timed_locks: timed, ..lock_program(kind) }, &[&a, &b]).remove(0)
    }

    #[test]
    fn a_lock_says_how_it_behaved() {
        let lock = uneven(LockKind::Pthread, true);
        assert_eq!((lock.contended_share, lock.handoffs_per_op), (Some(2.0 / 400.0), Some(0.1)));
        assert!((lock.fairness_jain.unwrap() - 0.8).abs() < 1e-9, "1 : 3 is 16 / 20");
        assert_eq!((lock.longest_gap_ns, lock.longest_gap_worker), (Some(5e6), Some(0)));
        assert_eq!((lock.shared, lock.retries, lock.timeouts, lock.hold_sampling), (90, 3, 2, HOLD_SAMPLING));
        assert_eq!(lock.hold_ns.map(|h| (h.count, h.max)), Some((3, 500)));
        assert_eq!(lock.by_worker[0].hold_ns.map(|h| h.max), Some(30));
        assert_eq!(lock.by_worker[1].longest_gap_ns, 1e6);
    }

    /// A worker that was evicted for two thirds of the window: in the time that both ran they shared evenly.
    #[test]
    fn fairness_is_of_the_time_in_which_all_ran() {
        let (mut away, mut other) = (observation("m", 0, 0, 60.0), observation("m", 0, 1, 60.0));
        (away.passes, away.kept_passes) = (1000, 1000);
        (other.passes, other.kept_passes) = (3000, 1000);
        away.locks.push(lock_observation("m", 1000, &[], &[]));
        other.locks.push(lock_observation("m", 3000, &[], &[]));
        let lock = summaries(&lock_program(LockKind::Pthread), &[&away, &other]).remove(0);
        assert_eq!(lock.fairness_jain, Some(1.0));
    }

    #[test]
    fn spins_and_sleeps_are_the_labs_own_algorithms_alone() {
        let of = |kind| {
            let lock = uneven(kind, true);
            (lock.spins_per_wait, lock.futex_waits_per_op)
        };
        assert_eq!(of(LockKind::Pthread), (None, None));
        assert_eq!(of(LockKind::PthreadSpin), (None, None));
        assert_eq!(of(LockKind::Ticket), (Some(20.0), None));
        assert_eq!(of(LockKind::Futex), (None, Some(0.02)));
    }

    /// In a `plain` arm nobody looks whether the first try failed: 0 is no share of it.
    #[test]
    fn what_a_plain_arm_does_not_look_at_is_missing() {
        let lock = uneven(LockKind::Pthread, false);
        assert_eq!((lock.contended_share, lock.hold_sampling), (None, 0));
        assert_eq!(lock.handoffs_per_op, Some(0.1));
    }
}

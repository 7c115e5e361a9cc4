//! How long it takes from a wake-up call until the sleeper runs: between ring neighbours, each alone on its CPU.

use crate::failure::Failure;
use crate::probe::{rounds, wait_for};
use plan::{Program, WorkerProgram};
use shm_layout::{Court, Phase, Segment, ticks};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Times the sleeper is woken: an even number, since the ball must be even again afterwards.
const WAKES: usize = 8;
/// What a sleeper gets to fall asleep and its CPU to become idle, before it is woken.
const ASLEEP_NS: u64 = 30_000;
/// A sleeper looks up so often whether the repetition was given up.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

/// The median over the times that this worker was woken; `None` for one that wakes, or has no neighbour on another CPU.
/// Of a ring each worker is in one pair at most.
///
/// # Errors
/// When the repetition is given up.
pub(super) fn wake_ns(segment: &Segment, program: &Program, me: &WorkerProgram) -> Result<Option<f64>, Failure> {
    let first_round = rounds(program).swap_remove(0);
    let mine = |worker: u32| worker == me.index.0;
    let Some(edge) = first_round.iter().find(|edge| mine(edge.starter) || mine(edge.answerer)) else {
        return Ok(None);
    };
    let court = &segment.slot(edge.starter).court;
    if mine(edge.starter) {
        wake(segment, court)?;
        return Ok(None);
    }
    let mut woken = sleep(segment, court)?;
    woken.sort_unstable();
    let median = woken.get(woken.len() / 2).copied();
    Ok(median.map(|ticks| segment.tick_rate().ns(ticks)))
}

/// The waker's side. The court's words serve anew: the ball says that the sleeper is about to sleep, the first tally is
/// what it sleeps on, the second when it was woken.
fn wake(segment: &Segment, court: &Court) -> Result<(), Failure> {
    let [bell, instant] = &court.tallies;
    // Even before the first wake-up; the sleeper may have said already that it is about to sleep.
    let ball = court.ball.load(Ordering::Acquire) & !1;
    let asleep_ticks = segment.tick_rate().ticks(ASLEEP_NS);
    for n in 1..=WAKES as u64 {
        wait_for(segment, &court.ball, ball + n)?;
        let from = ticks();
        while ticks() - from < asleep_ticks {
            std::hint::spin_loop();
        }
        instant.store(ticks(), Ordering::Relaxed);
        // Release; pairs with the Acquire in `sleep`: the instant is seen by whoever sees the bell.
        bell.fetch_add(1, Ordering::Release);
        futex_wake(bell);
    }
    Ok(())
}

/// The sleeper's side: ticks from each wake-up call that found it asleep.
fn sleep(segment: &Segment, court: &Court) -> Result<Vec<u64>, Failure> {
    let [bell, instant] = &court.tallies;
    let ball = court.ball.load(Ordering::Acquire);
    let mut woken = Vec::with_capacity(WAKES);
    for n in 1..=WAKES as u64 {
        let before = bell.load(Ordering::Acquire);
        // Release/Acquire: pairs with `wait_for` in `wake`, which must not ring before the bell was read here.
        court.ball.store(ball + n, Ordering::Release);
        let mut slept = false;
        while bell.load(Ordering::Acquire) == before {
            slept = futex_wait(bell, before as u32);
            if segment.control().phase() == Phase::Aborted {
                return Err(Failure::aborted());
            }
        }
        let now = ticks();
        // One that had not fallen asleep yet, or woke by itself, was not woken.
        if slept {
            woken.push(now.saturating_sub(instant.load(Ordering::Relaxed)));
        }
    }
    Ok(woken)
}

/// The half of a word whose value a futex compares: the low one.
fn low_half(word: &AtomicU64) -> *const u32 {
    let halves: *const u32 = word.as_ptr().cast();
    if cfg!(target_endian = "big") { halves.wrapping_add(1) } else { halves }
}

/// Sleeps while the word's low half is `value`, at most [`LONGEST_SLEEP`]; whether it was woken by a call.
#[allow(unsafe_code)]
fn futex_wait(word: &AtomicU64, value: u32) -> bool {
    let limit = libc::timespec { tv_sec: 0, tv_nsec: LONGEST_SLEEP.subsec_nanos().into() };
    // SAFETY: the kernel reads an aligned word that outlives the call, and `limit`. Not private: the word is shared.
    unsafe { libc::syscall(libc::SYS_futex, low_half(word), libc::FUTEX_WAIT, value, &raw const limit) == 0 }
}

/// Calls to wake who sleeps on a word on which nobody does: [`super::CALLS`] of them.
pub(super) fn nobody(segment: &Segment, me: &WorkerProgram) {
    let [_, word] = &segment.slot(me.index.0).court.tallies;
    (0..super::CALLS).for_each(|_| futex_wake(word));
}

/// Wakes one that sleeps on the word.
#[allow(unsafe_code)]
fn futex_wake(word: &AtomicU64) {
    // SAFETY: the kernel uses the word's address alone.
    unsafe { libc::syscall(libc::SYS_futex, low_half(word), libc::FUTEX_WAKE, 1) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the call, and not the change of the word, ended another thread's sleep.
    fn a_sleeper_was_woken() -> bool {
        let word = AtomicU64::new(7);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                let mut woken = false;
                while word.load(Ordering::Acquire) == 7 {
                    woken = futex_wait(&word, 7);
                }
                woken
            });
            std::thread::sleep(Duration::from_millis(5));
            word.store(8, Ordering::Release);
            futex_wake(&word);
            sleeper.join().unwrap()
        })
    }

    #[test]
    fn a_sleeper_is_woken_by_a_call_and_leaves_by_itself_where_the_word_has_changed() {
        let word = AtomicU64::new(7);
        assert!(!futex_wait(&word, 8), "another value: no sleep");
        assert!(!futex_wait(&word, 7), "nobody calls: it looks up after a while");
        // Between two looks there is a moment in which the store alone ends the sleeper's loop: not each time.
        assert!((0..200).any(|_| a_sleeper_was_woken()), "a call wakes who sleeps");
    }
}

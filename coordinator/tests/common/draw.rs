//! What is drawn, and how much of it: a seed that is always said, and the short or the long form (`.ci/long faults`).

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Mutex;
use std::time::Duration;

/// Runs side by side: while one starts or ends, another has the CPUs.
const LANES: usize = 2;

/// `LAB_SEED`, or one that is drawn; said either way, so that what was drawn can be drawn again.
pub(crate) fn seed() -> u64 {
    let seed = std::env::var("LAB_SEED").map_or_else(|_| rand::random::<u32>().into(), |seed| seed.parse().unwrap());
    println!("LAB_SEED={seed} draws the same again");
    seed
}

/// A source for what a test draws from its seed.
pub(crate) fn seeded() -> SmallRng {
    SmallRng::seed_from_u64(seed())
}

/// How many faults were asked for, by `LAB_FAULTS`; `None` in the short form.
pub(crate) fn faults_asked_for() -> Option<u32> {
    std::env::var("LAB_FAULTS").ok().map(|number| number.parse().unwrap())
}

/// A length of at most `most`; short ones are as likely as long ones, by orders of magnitude.
pub(crate) fn up_to(random: &mut SmallRng, most: Duration) -> Duration {
    most.mul_f64(10f64.powf(random.random_range(-2.0..0.0)))
}

/// Does all of `work`, a few at a time. Each lane has a thread of its own, which `enter` prepares.
pub(crate) fn in_lanes<T: Send, L>(work: Vec<T>, enter: impl Fn() -> L + Sync, on: impl Fn(&L, T) + Sync) {
    let queue = Mutex::new(work.into_iter());
    std::thread::scope(|scope| {
        let lane = || {
            let entered = enter();
            loop {
                let next = queue.lock().unwrap().next();
                let Some(next) = next else { return };
                on(&entered, next);
            }
        };
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(lane)).collect();
        lanes.into_iter().for_each(|lane| lane.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    });
}

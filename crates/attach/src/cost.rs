//! What watching cost the watched, all steps together.

use record::WatchCost;

/// Adds what another step cost; the slowdown, which is no sum, is left for [`over`].
pub(crate) fn add(sum: &mut WatchCost, step: &WatchCost) {
    sum.traps += step.traps;
    sum.samples += step.samples;
    sum.events += step.events;
    sum.stolen_ns = sum.stolen_ns.saturating_add(step.stolen_ns);
}

/// With its slowdown: the time taken over the CPU time that the targets had while the steps ran, nanoseconds. `None` where
/// they had none.
pub(crate) fn over(cost: WatchCost, cpu_ns: u64) -> WatchCost {
    let slowdown = (cpu_ns > 0).then(|| cost.stolen_ns as f64 / cpu_ns as f64);
    WatchCost { slowdown, ..cost }
}

#[cfg(test)]
mod tests {
    use super::{add, over};
    use record::WatchCost;

    #[test]
    fn costs_add_up_and_the_slowdown_is_their_share_of_the_targets_time() {
        let step = WatchCost { traps: 1, samples: 2, events: 3, stolen_ns: 50, slowdown: Some(0.5) };
        let mut sum = step.clone();
        add(&mut sum, &step);
        let sum = over(sum, 1000);
        assert_eq!(sum, WatchCost { traps: 2, samples: 4, events: 6, stolen_ns: 100, slowdown: Some(0.1) });
        assert_eq!(over(step, 0).slowdown, None, "who did not run was not slowed down");
    }
}

//! The simulation's clock.

/// Picoseconds of simulated time: whole, so that debug and release builds, and any two machines, agree to the bit.
pub(crate) type Ps = u64;

/// Never.
pub(crate) const NEVER: Ps = Ps::MAX;

/// The nearest picosecond.
pub(crate) fn ps(ns: f64) -> Ps {
    (ns * 1e3).round() as Ps
}

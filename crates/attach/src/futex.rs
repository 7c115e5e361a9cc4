//! Who waits for whom in the kernel: futex calls whose word lies in the segment.
//!
//! A lock that is found taken ends, if it stays so, in a call that sleeps until another call wakes it; the tracepoints at both
//! ends of these calls say who waited at which word for how long and who woke whom, without stopping anybody. What never gets
//! as far, the acquisitions that find the lock free and the waits that are spun away, is not seen by [`watch()`]; [`probe()`]
//! counts it, at a price.

mod begun;
mod call;
mod cost;
mod follow;
mod judge;
mod open;
mod owners;
mod places;
mod probe;
mod stream;
mod watch;
mod word;

pub use probe::{Probed, cost_ns, probe};
pub use watch::{Waits, watch};

//! What this machine's facts mean for a run: one check a line, each with why it matters and what changes it. Only reads;
//! the facts themselves come from `host` and `counters`.
//!
//! [`examine`] looks at a [`Patient`], a machine as `host` reads it, and gives the [`Finding`]s by theme, a folder each:
//! `counting`, `hardware`, `noise`, `limits`. A check is a function there that returns its finding; `docs/doctor.md` has a
//! row for each.
#![forbid(unsafe_code)]

mod counting;
mod finding;
mod hardware;
mod limits;
mod noise;
mod patient;

pub use finding::{Finding, Needs, Spoils};
pub use patient::Patient;

use std::thread::Builder;
use std::time::Duration;

/// Checks that belong together, in the order of the screen.
#[derive(Clone, Debug, PartialEq)]
pub struct Theme {
    /// What they are about, in a few words.
    pub title: &'static str,
    /// The checks.
    pub findings: Vec<Finding>,
}

/// For how long [`examine`] had best watch the CPUs: at tick rates of 100 a second and more, ten of the kernel's
/// readings of who runs. A shorter look blames whoever was caught.
pub const WATCH: Duration = Duration::from_millis(100);

/// Every check. Reads files, counts for a moment on threads of its own, and watches for `watch` who uses the CPUs; changes
/// nothing. Takes tens of milliseconds beside that.
pub fn examine(patient: &Patient<'_>, watch: Duration) -> Vec<Theme> {
    let theme = |title, findings| Theme { title, findings };
    let counting = theme("Counting", counting::findings(patient));
    // Counting keeps a CPU busy, which is not company to be watched; what follows mostly sleeps, and may do so at once.
    std::thread::scope(|scope| {
        let watching = Builder::new().spawn_scoped(scope, || noise::findings(patient, watch));
        let (hardware, limits) = (hardware::findings(patient), limits::findings(patient));
        let noise = match watching {
            Ok(watching) => watching.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // No thread more is allowed, or there is no memory for one: then one after the other.
            Err(_) => noise::findings(patient, watch),
        };
        vec![counting, theme("Hardware", hardware), theme("Disturbance", noise), theme("Limits", limits)]
    })
}

#[cfg(test)]
mod fixture;

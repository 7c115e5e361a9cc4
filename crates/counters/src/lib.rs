//! What a worker's CPU and kernel counted for it inside the measuring window, and why not where they did not.
//!
//! The coordinator chooses once what is asked of each kind of core ([`Selection`]) and hands it to the workers as
//! [`Orders`]. A worker counts on itself: [`Counters::open`] before the warm-up, [`Counters::enable`] and [`Counters::disable`] at
//! the window's edges, [`Counters::read`] after it. Nothing here can fail a run: what cannot be counted is a
//! [`record::Reading`] that says why and, where there is one, the cure. `docs/counters.md` says what each name counts
//! on which processor.

mod counters;
mod cpu_kind;
mod encode;
mod event;
mod foreign;
mod held;
mod interrupted;
mod kernel;
mod log;
mod memory;
mod names;
mod noted;
mod open;
mod own;
mod pmu;
mod portable;
mod refusal;
mod selection;
mod software;
mod table;

pub use counters::Counters;
pub use event::{Attr, Event, Family};
pub use foreign::{Refusals, ThreadCounter, counted, is_missing};
pub use held::Held;
pub use log::{LogKind, LogOrder};
pub use selection::{Order, Orders, SelectError, Selection, orders_for};

#[cfg(test)]
mod fake;

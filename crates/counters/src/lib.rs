//! What a worker's CPU and kernel counted for it inside the measuring window, and why not where they did not.
//!
//! The coordinator chooses once what is asked of each kind of core ([`Selection`]: the lab's own counters, the user's
//! events, and what memory steps ask for besides) and hands it to the workers as [`Orders`]. A worker counts on itself:
//! [`Counters::open`] before the warm-up, [`Counters::enable`] and [`Counters::disable`] at the window's edges,
//! [`Counters::read`] after it. `attach` counts on threads of other people's with [`ThreadCounter`]s instead.
//!
//! Nothing here can fail a run: what cannot be counted is a [`record::Reading`] that says why and, where there is one,
//! the cure. `docs/counters.md` says what each name counts on which processor. To read on, begin with `selection`, then
//! `counters`; `pmu` is the seam at which tests put a machine of their own.

mod choice;
mod counters;
mod cpu_kind;
mod encode;
mod event;
mod foreign;
mod held;
mod interrupted;
mod kernel;
mod lab_counters;
mod log;
mod memory;
mod names;
mod noted;
mod open;
mod order;
mod pmu;
mod refusal;
mod selection;
mod software;
mod table;
mod tracepoint;
mod user_events;

pub use counters::Counters;
pub use event::{Attr, Event, Family};
pub use foreign::{Refusals, ThreadCounter, counted, is_missing};
pub use held::Held;
pub use log::{LogKind, LogOrder};
pub use order::{Order, Orders, orders_for};
pub use selection::Selection;
pub use user_events::SelectError;

#[cfg(test)]
mod fake;

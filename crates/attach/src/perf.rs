//! Perf events on threads of other processes: opened without ptrace, closed by the kernel with the last descriptor, so
//! that a watcher that is killed leaves nothing behind.
//!
//! One [`Ring`] can take the records of several events, if they are of the same thread or the same CPU; each record
//! begins with the identifier of its event where [`Fields::IDENTIFIER`] was asked for.
//!
//! # References
//! perf_event_open(2).

mod event;
mod records;
mod ring;

pub(crate) use event::{Access, Event, Order, Source, Whom};
pub(crate) use records::{Fields, Record, Sample};
pub(crate) use ring::Ring;

#[cfg(test)]
mod tests;

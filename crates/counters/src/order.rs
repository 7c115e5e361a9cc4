//! What a worker is told to count and to log.

use crate::event::Event;
use crate::log::LogOrder;
use plan::CpuId;
use record::Reading;
use serde::{Deserialize, Serialize};

/// Name of what is noted without an event ([`crate::interrupted`]).
pub(crate) const SHOOTDOWNS: &str = "tlb_shootdowns";

/// What a worker is told of one counter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Order {
    /// Open this.
    Count(Event),
    /// There is nothing to open on this kind of core, and this is its reading.
    Refused {
        /// The counter's name.
        name: String,
        /// Why, as a reading.
        reading: Reading,
    },
    /// Note the shootdown interrupts of the worker's CPU at the window's edges.
    Shootdowns,
    /// Log what the kernel does to the worker's translations.
    Log(LogOrder),
}

impl Order {
    /// The counter's name; of the log, which is none, `kernel_log`.
    pub fn name(&self) -> &str {
        match self {
            Order::Shootdowns => SHOOTDOWNS,
            Order::Log(_) => "kernel_log",
            Order::Count(event) => &event.name,
            Order::Refused { name, .. } => name,
        }
    }
}

/// What the workers on some CPUs are told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Orders {
    /// CPUs of one kind of core.
    pub cpus: Vec<CpuId>,
    /// One entry a counter that is opened or refused; families together, the ones that matter most first.
    pub orders: Vec<Order>,
}

/// What a worker on `cpu` is told; nothing where the CPU was not among those chosen for.
pub fn orders_for(orders: &[Orders], cpu: CpuId) -> &[Order] {
    orders.iter().find(|of| of.cpus.contains(&cpu)).map_or(&[], |of| &of.orders)
}

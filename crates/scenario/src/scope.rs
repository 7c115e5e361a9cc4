//! What the steps of a role can name.

use crate::document::Node;
use plan::{Field, Lock, Region};
use std::collections::BTreeMap;
use std::ops::Range;

/// The memory that a scenario declares, as one role sees it.
pub(crate) struct Memory<'a> {
    pub(crate) fields: &'a [Field],
    pub(crate) locks: &'a [Lock],
    pub(crate) regions: &'a [Region],
    pub(crate) placeholders: &'a BTreeMap<String, Node>,
    /// Workers of all roles.
    pub(crate) workers: u32,
    /// The role's own workers.
    pub(crate) indices: Range<u32>,
}

impl Memory<'_> {
    /// "a field", "a lock" or "a region": what has that name, for steps that want another of the three.
    pub(crate) fn kind_of(&self, name: &str) -> Option<&'static str> {
        let field = || self.fields.iter().any(|field| field.name == name).then_some("a field");
        let lock = || self.locks.iter().any(|lock| lock.name == name).then_some("a lock");
        let region = || self.regions.iter().any(|region| region.name == name).then_some("a region");
        field().or_else(lock).or_else(region)
    }
}

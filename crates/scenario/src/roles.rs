//! `[[role]]`: who runs, and where.

use crate::context::Context;
use crate::document::{Node, Table, Value};
use crate::outline::name_of;
use crate::refusal::Problem;
use crate::{loops, quantity, read, schema, words};
use plan::{CpuChoice, CpuId, Field, Lock, Nanos, Region, Role};
use std::collections::BTreeMap;
use std::ops::Range;

/// What steps can name.
pub(crate) struct Declared<'a> {
    pub(crate) fields: &'a [Field],
    pub(crate) locks: &'a [Lock],
    pub(crate) regions: &'a [Region],
    pub(crate) placeholders: &'a BTreeMap<String, Node>,
}

/// The same, as one role sees it.
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

/// The roles in file order.
pub(crate) fn read(context: &mut Context, root: &Table, declared: &Declared<'_>, window: Nanos) -> Vec<Role> {
    let tables: Vec<(&Node, &Table)> = root.listed("role").take(schema::ROLES_MAX).collect();
    let workers: Vec<u32> = tables.iter().map(|(_, table)| workers(context, table)).collect();
    let mut roles = Vec::new();
    let mut first = 0;
    for ((node, table), count) in tables.into_iter().zip(&workers) {
        let memory = Memory {
            fields: declared.fields,
            locks: declared.locks,
            regions: declared.regions,
            placeholders: declared.placeholders,
            workers: workers.iter().sum(),
            indices: first..first + count,
        };
        first += count;
        let name = name_of(table).unwrap_or_default().to_owned();
        let cpus = table.get("cpus").and_then(|node| cpus(context, node)).unwrap_or(CpuChoice::Spread);
        let after = after(context, table, &name, window);
        let steps = loops::read(context, node, table, &memory, (after, window));
        roles.push(Role { threads: 1, period: None, latency: false, name, workers: *count, cpus, after, steps });
    }
    loops::endless_waits(context, root, declared.fields, &roles);
    roles
}

fn workers(context: &mut Context, table: &Table) -> u32 {
    let why = "each is a process pinned to a CPU";
    let number = table.get("workers").and_then(|node| read::integer(context, node, "workers", schema::WORKERS, why));
    number.unwrap_or(1) as u32
}

/// How long after the window's opening the role begins; zero where it was refused, as where it leaves less than
/// [`schema::LEAST_MEASURED`] of the window.
fn after(context: &mut Context, table: &Table, role: &str, window: Nanos) -> Nanos {
    let Some(node) = table.get("after") else { return Nanos(0) };
    let why = "the role begins so long after the window has opened";
    let after = quantity::duration(context, node, "after", schema::AFTER, why).unwrap_or(Nanos(0));
    let left = Nanos(window.0.saturating_sub(after.0));
    if after.0 == 0 || left >= schema::LEAST_MEASURED {
        return after;
    }
    let role = words::shown(role);
    let label = match left.0 {
        0 => "it would never work".to_owned(),
        _ => format!("{left} are left, and figures are made of slices of half a millisecond: two are the least"),
    };
    let longest = Nanos(window.0.saturating_sub(schema::LEAST_MEASURED.0));
    let cure = match longest.0 {
        0 => "lengthen [measure] window, or leave `after` out".to_owned(),
        _ => format!("make `after` {longest} or shorter, or lengthen [measure] window"),
    };
    context.refuse(
        Problem::at(&node.place, format!("role `{role}` begins {after} after the window opens, which lasts {window}"))
            .label(label)
            .cure(cure),
    );
    Nanos(0)
}

fn cpus(context: &mut Context, node: &Node) -> Option<CpuChoice> {
    let nodes = match &node.value {
        Value::Array(nodes) => nodes,
        Value::String(_) => {
            return Some(match read::word(context, node, "cpus", schema::CPUS)? {
                "same-core" => CpuChoice::SameCore,
                "same-llc" => CpuChoice::SameLlc,
                "cross-socket" => CpuChoice::CrossSocket,
                _ => CpuChoice::Spread,
            });
        }
        _ => {
            let expected = format!("{}, or a list of CPU numbers", words::listed(schema::CPUS));
            read::wrong_type(context, node, "cpus", &expected, "\"spread\", or [0, 1]");
            return None;
        }
    };
    if nodes.is_empty() {
        let cure = "list one CPU a worker, or write cpus = \"spread\"";
        context.refuse(Problem::at(&node.place, "the list of CPUs is empty").cure(cure));
    }
    let why = "CPUs as Linux numbers them; `nproc` counts those that are there";
    let number = |context: &mut Context, node| read::integer(context, node, "cpus", schema::CPU, why);
    let list: Option<Vec<CpuId>> =
        nodes.iter().map(|node| number(context, node).map(|number| CpuId(number as u32))).collect();
    list.map(CpuChoice::List)
}

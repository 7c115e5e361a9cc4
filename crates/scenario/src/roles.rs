//! `[[role]]`: who runs, and where.

use crate::context::Context;
use crate::document::{Node, Table, Value};
use crate::outline::name_of;
use crate::refusal::Problem;
use crate::{loops, read, schema, words};
use plan::{CpuChoice, CpuId, Field, Lock, Nanos, Role};
use std::collections::BTreeMap;
use std::ops::Range;

/// What steps can name.
pub(crate) struct Declared<'a> {
    pub(crate) fields: &'a [Field],
    pub(crate) locks: &'a [Lock],
    pub(crate) placeholders: &'a BTreeMap<String, Node>,
}

/// The same, as one role sees it.
pub(crate) struct Memory<'a> {
    pub(crate) fields: &'a [Field],
    pub(crate) locks: &'a [Lock],
    pub(crate) placeholders: &'a BTreeMap<String, Node>,
    /// Workers of all roles.
    pub(crate) workers: u32,
    /// The role's own workers.
    pub(crate) indices: Range<u32>,
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
            placeholders: declared.placeholders,
            workers: workers.iter().sum(),
            indices: first..first + count,
        };
        first += count;
        let name = name_of(table).unwrap_or_default().to_owned();
        let cpus = table.get("cpus").and_then(|node| cpus(context, node)).unwrap_or(CpuChoice::Spread);
        let steps = loops::read(context, node, table, &memory, window);
        roles.push(Role { name, workers: *count, cpus, steps });
    }
    loops::endless_waits(context, root, declared.fields, &roles);
    roles
}

fn workers(context: &mut Context, table: &Table) -> u32 {
    let why = "each is a process pinned to a CPU";
    let number = table.get("workers").and_then(|node| read::integer(context, node, "workers", schema::WORKERS, why));
    number.unwrap_or(1) as u32
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

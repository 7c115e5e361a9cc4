//! `[[role]]`: who runs, where, and which steps; and what a loop may not do, since it would never end.

use crate::context::Context;
use crate::document::{Node, Table, Value, quoted};
use crate::outline::name_of;
use crate::refusal::Problem;
use crate::{read, schema, steps, words};
use plan::{Action, CpuChoice, CpuId, Field, Lock, Nanos, Role, Step};
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
        let steps = loop_of(context, node, table, &memory, window);
        roles.push(Role { name, workers: *count, cpus, steps });
    }
    endless_waits(context, root, declared.fields, &roles);
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

/// The role's steps, each with its node.
fn loop_of(context: &mut Context, header: &Node, table: &Table, memory: &Memory<'_>, window: Nanos) -> Vec<Step> {
    const CURE: &str = "give it steps, such as loop = [\"add hits[me]\"]";
    let name = words::shown(name_of(table).unwrap_or_default());
    let Some(node) = table.get("loop") else {
        let place = table.get("name").map_or(&header.place, |node| &node.place);
        context.refuse(Problem::at(place, format!("role `{name}` has no loop")).label("`loop` is missing").cure(CURE));
        return Vec::new();
    };
    let Some(nodes) = node.array() else {
        read::wrong_type(context, node, "loop", "a list of steps", "[\"add hits[me]\"]");
        return Vec::new();
    };
    if nodes.is_empty() {
        context.refuse(Problem::at(&node.place, format!("role `{name}` has no steps")).cure(CURE));
    }
    if let Some(node) = nodes.get(schema::ITEMS_MAX) {
        let what = format!("more than {} steps in a loop", schema::ITEMS_MAX);
        context.refuse(Problem::at(&node.place, what).cure("a loop repeats: write one pass of it"));
    }
    let nodes = &nodes[..nodes.len().min(schema::ITEMS_MAX)];
    let steps: Vec<(Step, &Node)> =
        nodes.iter().filter_map(|node| steps::read(context, node, memory).map(|step| (step, node))).collect();
    // Behind a step that was refused, balance and length would be judged on half a loop.
    if steps.len() == nodes.len() {
        balanced(context, &steps, memory.locks);
        fits_in_window(context, node, &steps, window);
    }
    steps.into_iter().map(|(step, _)| step).collect()
}

/// A loop that takes a lock it holds, or keeps one into its next pass, waits for itself for ever.
fn balanced(context: &mut Context, steps: &[(Step, &Node)], locks: &[Lock]) {
    let mut held: Vec<(usize, u32, &Node)> = Vec::new();
    for (step, node) in steps {
        match step.action {
            Action::Lock(lock) => {
                if let Some((_, _, first)) = held.iter().find(|(other, ..)| *other == lock) {
                    context.refuse(
                        Problem::at(&node.place, format!("this step takes `{}` twice", locks[lock].name))
                            .label("would wait for itself for ever")
                            .also(&first.place, "taken here")
                            .cure(format!("put \"unlock {}\" between the two", locks[lock].name)),
                    );
                    return;
                }
                held.push((lock, step.every, node));
            }
            Action::Unlock(lock) => {
                let Some(index) = held.iter().position(|(other, ..)| *other == lock) else {
                    context.refuse(
                        Problem::at(&node.place, format!("`{}` is not held here", locks[lock].name))
                            .label("nothing to release")
                            .cure(format!("put \"lock {}\" before it", locks[lock].name)),
                    );
                    return;
                };
                let (_, every, taken) = held.remove(index);
                if every != step.every {
                    context.refuse(
                        Problem::at(
                            &node.place,
                            format!("`{}` is not released whenever it is taken", locks[lock].name),
                        )
                        .label("runs in other passes")
                        .also(&taken.place, "taken here")
                        .cure("give both steps the same `every`"),
                    );
                }
            }
            _ => {}
        }
    }
    if let Some((lock, _, node)) = held.first() {
        context.refuse(
            Problem::at(&node.place, format!("`{}` is still held when the pass ends", locks[*lock].name))
                .label("the next pass would wait for itself for ever")
                .cure(format!("end the critical section with \"unlock {}\"", locks[*lock].name)),
        );
    }
}

/// A loop whose pass lasts longer than the window would be measured by nothing.
fn fits_in_window(context: &mut Context, node: &Node, steps: &[(Step, &Node)], window: Nanos) {
    let asked = steps.iter().filter(|(step, _)| step.every == 1).map(|(step, _)| match step.action {
        Action::Work(length) | Action::Sleep(length) => length.0,
        _ => 0,
    });
    let pass = Nanos(asked.sum());
    if pass >= window {
        context.refuse(
            Problem::at(&node.place, format!("one pass takes at least {pass}, and the window is {window}"))
                .label("no pass would end within it")
                .cure("shorten `work` and `sleep`, or lengthen [measure] window"),
        );
    }
}

/// A wait for a field that no step of any role writes never ends.
fn endless_waits(context: &mut Context, root: &Table, fields: &[Field], roles: &[Role]) {
    let actions = || roles.iter().flat_map(|role| &role.steps).map(|step| &step.action);
    let changed: Vec<usize> = actions()
        .filter(|action| action.writes() && !matches!(action, Action::Flush(_)))
        .filter_map(|action| action.target().map(|target| target.field))
        .collect();
    for ((_, table), role) in root.listed("role").zip(roles) {
        let nodes = table.get("loop").and_then(Node::array).unwrap_or_default();
        for (step, node) in role.steps.iter().zip(nodes).filter(|_| role.steps.len() == nodes.len()) {
            let Action::Wait(target) = &step.action else {
                continue;
            };
            if !changed.contains(&target.field) {
                let name = quoted(&fields[target.field].name);
                context.refuse(
                    Problem::at(&node.place, format!("nothing changes {name}, so this wait would never end"))
                        .label("waits for ever")
                        .cure(format!("let another role `post` {name}")),
                );
            }
        }
    }
}

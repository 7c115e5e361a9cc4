//! `[[role]]`: who runs, and where.

use crate::context::Context;
use crate::document::{Node, Table, Value, quoted};
use crate::read::name_of;
use crate::refusal::Problem;
use crate::scope::Memory;
use crate::{loops, quantity, read, schema, words};
use plan::{CpuChoice, CpuId, Field, Lock, Nanos, Region, Role};
use std::collections::BTreeMap;

/// What steps can name.
pub(crate) struct Declared<'a> {
    pub(crate) fields: &'a [Field],
    pub(crate) locks: &'a [Lock],
    pub(crate) regions: &'a [Region],
    pub(crate) placeholders: &'a BTreeMap<String, Node>,
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
        let period = period(context, table, &name, (after, window));
        let latency = latency(context, table, period.is_some());
        let threads = threads(context, table, &name, *count);
        let joins = joins(context, table, &name, roles.last());
        let populate = populate(context, table, declared.regions);
        let steps = loops::read(context, node, table, &memory, (after, window));
        roles.push(Role { name, workers: *count, threads, joins, cpus, period, latency, after, populate, steps });
    }
    loops::endless_waits(context, root, declared.fields, &roles);
    roles
}

fn workers(context: &mut Context, table: &Table) -> u32 {
    let why = "each is a process or a thread, pinned to a CPU";
    let number = table.get("workers").and_then(|node| read::integer(context, node, "workers", schema::WORKERS, why));
    number.unwrap_or(1) as u32
}

/// Threads of each process: they divide the workers evenly, so that the processes are alike.
fn threads(context: &mut Context, table: &Table, role: &str, workers: u32) -> u32 {
    let Some(node) = table.get("threads") else { return 1 };
    let why = "so many of the role's workers are threads of one process";
    let threads = read::integer(context, node, "threads", schema::THREADS, why).unwrap_or(1) as u32;
    if workers.is_multiple_of(threads) {
        return threads;
    }
    let what = format!(
        "role `{}` has {}, and its processes {} each",
        words::shown(role),
        words::counted(u64::from(workers), "worker"),
        words::counted(u64::from(threads), "thread")
    );
    let problem = Problem::at(&node.place, what).label("does not divide them evenly");
    let problem = match table.get("workers") {
        Some(workers) => problem.also(&workers.place, "the workers of all its processes"),
        None => problem,
    };
    let most = u32::try_from(schema::THREADS.1).unwrap_or(u32::MAX);
    let fits: Vec<String> =
        (1..=workers.min(most)).filter(|n| workers.is_multiple_of(*n)).map(|n| n.to_string()).collect();
    context.refuse(problem.cure(format!(
        "`workers` counts the threads of all processes: make `threads` {}, or `workers` a multiple of {threads}",
        words::one_of(&fits)
    )));
    1
}

/// Whether the role's workers are threads of the process of the role before it, `previous`.
fn joins(context: &mut Context, table: &Table, role: &str, previous: Option<&Role>) -> bool {
    let Some(node) = table.get("process") else { return false };
    let Some(name) = read::string(context, node, "process", "the name of the role before it", "\"victim\"") else {
        return false;
    };
    let role = words::shown(role);
    let (label, cure) = match previous {
        Some(previous) if previous.name != name => (
            "not the role before it".to_owned(),
            format!("write process = \"{}\", or put role `{role}` behind the one that it joins", previous.name),
        ),
        Some(previous) if !previous.joins && previous.threads != previous.workers => (
            format!("role `{}` has {} processes", previous.name, previous.workers / previous.threads.max(1)),
            format!("give it one: threads = {}", previous.workers),
        ),
        Some(_) => match table.get("threads") {
            None => return true,
            Some(_) => (
                "beside `threads`".to_owned(),
                "leave `threads` out: all of its workers are threads of that process".to_owned(),
            ),
        },
        None => ("there is none before it".to_owned(), "put it behind the role that it joins".to_owned()),
    };
    let what = format!("role `{role}` cannot join the process of role {}", quoted(name));
    context.refuse(Problem::at(&node.place, what).label(label).cure(cure));
    false
}

/// The time from one intended start to the next, of a role with `rate`.
fn period(context: &mut Context, table: &Table, role: &str, (after, window): (Nanos, Nanos)) -> Option<Nanos> {
    let node = table.get("rate")?;
    let why = "each worker begins so many passes a second, whether the one before is done or not";
    let period = quantity::rate(context, node, "rate", schema::RATE, why)?;
    if period.0 < window.0.saturating_sub(after.0) {
        return Some(period);
    }
    let begins = if after.0 > 0 { format!(", of which the first {after} are over") } else { String::new() };
    let what = format!("role `{}` begins a pass each {period}, and the window is {window}{begins}", words::shown(role));
    context.refuse(
        Problem::at(&node.place, what)
            .label("no second pass would begin within it")
            .cure("raise `rate`, or lengthen [measure] window"),
    );
    None
}

/// Whether each pass is timed; an open loop is there to be.
fn latency(context: &mut Context, table: &Table, open: bool) -> bool {
    let Some(node) = table.get("latency") else { return open };
    let asked = read::boolean(context, node, "latency").unwrap_or(open);
    if open && !asked {
        context.refuse(
            Problem::at(&node.place, "a role with `rate` records each pass's latency")
                .label("cannot be left out")
                .cure("leave `latency` out: `rate` implies it, and without `rate` it is false"),
        );
    }
    asked || open
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

/// The regions that each worker touches whole before the warm-up.
fn populate(context: &mut Context, table: &Table, regions: &[Region]) -> Vec<u32> {
    let Some(node) = table.get("populate") else { return Vec::new() };
    let Some(nodes) = node.array() else {
        read::wrong_type(context, node, "populate", "a list of regions", "[\"heap\"]");
        return Vec::new();
    };
    let names: Vec<&str> = regions.iter().map(|region| region.name.as_str()).collect();
    let mut found = Vec::new();
    for node in nodes {
        let Some(name) = read::string(context, node, "populate", "a region's name", "[\"heap\"]") else { continue };
        match names.iter().position(|known| *known == name) {
            Some(index) if found.contains(&(index as u32)) => {
                let problem = Problem::at(&node.place, format!("{} is named twice", quoted(name)));
                context.refuse(problem.label("it is touched already").cure("name each region once"));
            }
            Some(index) => found.push(index as u32),
            None => {
                let problem = Problem::at(&node.place, format!("no region is named {}", quoted(name)));
                let problem = match words::nearest(name, &names) {
                    Some(near) => problem.label(format!("did you mean `{near}`?")),
                    None => problem.label("not declared"),
                };
                let cure = format!("the regions are {}; declare one with [region.NAME]", words::listed(&names));
                context.refuse(problem.cure(cure));
            }
        }
    }
    found
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

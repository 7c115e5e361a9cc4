//! A role's `loop`: its steps, and the loops that would measure nothing because they never end.

use crate::context::Context;
use crate::document::{Node, Table, quoted};
use crate::read::name_of;
use crate::refusal::Problem;
use crate::scope::Memory;
use crate::{read, schema, steps, words};
use plan::{Action, Field, Nanos, Role, Step};

/// What a loop without steps needs.
const CURE: &str = "give it steps, such as loop = [\"add hits[me]\"]";

/// The role's steps. The table is that of the role, `header` its node; it works from `after` on until the window's end.
pub(crate) fn read(
    context: &mut Context,
    header: &Node,
    table: &Table,
    memory: &Memory<'_>,
    (after, window): (Nanos, Nanos),
) -> Vec<Step> {
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
    let nodes = counted(context, node, nodes, &name);
    let steps: Vec<(Step, &Node)> =
        nodes.iter().filter_map(|node| steps::read(context, node, memory).map(|step| (step, node))).collect();
    // Behind a step that was refused, the length would be that of half a loop.
    if steps.len() == nodes.len() {
        fits_in_window(context, node, &steps, (after, window));
    }
    steps.into_iter().map(|(step, _)| step).collect()
}

/// The steps that are looked at, after a loop of none or too many was refused.
fn counted<'a>(context: &mut Context, node: &Node, nodes: &'a [Node], name: &str) -> &'a [Node] {
    if nodes.is_empty() {
        context.refuse(Problem::at(&node.place, format!("role `{name}` has no steps")).cure(CURE));
    }
    if let Some(node) = nodes.get(schema::ITEMS_MAX) {
        let what = format!("more than {} steps in a loop", schema::ITEMS_MAX);
        context.refuse(Problem::at(&node.place, what).cure("a loop repeats: write one pass of it"));
    }
    &nodes[..nodes.len().min(schema::ITEMS_MAX)]
}

/// A loop whose pass lasts longer than the window, or what `after` leaves of it, would be measured by nothing.
fn fits_in_window(context: &mut Context, node: &Node, steps: &[(Step, &Node)], (after, window): (Nanos, Nanos)) {
    let asked = steps.iter().filter(|(step, _)| step.every == 1).map(|(step, _)| match step.action {
        Action::Work(length) | Action::Sleep(length) => length.0,
        Action::Memory(memory) => memory.pause.0.saturating_mul(memory.chunks()),
        _ => 0,
    });
    let pass = Nanos(asked.fold(0, u64::saturating_add));
    if pass.0 >= window.0.saturating_sub(after.0) {
        let begins = if after.0 > 0 { format!(", of which the first {after} are over") } else { String::new() };
        context.refuse(
            Problem::at(&node.place, format!("one pass takes at least {pass}, and the window is {window}{begins}"))
                .label("no pass would end within it")
                .cure("shorten `work`, `sleep` and `pause`, or lengthen [measure] window"),
        );
    }
}

/// A wait for a field that no step of any role writes never ends.
pub(crate) fn endless_waits(context: &mut Context, root: &Table, fields: &[Field], roles: &[Role]) {
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

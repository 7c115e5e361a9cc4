//! `[measure]`: what holds for the whole run, and what an arm can have its own of.

use crate::context::Context;
use crate::document::{Node, Table, Value};
use crate::events::Asked;
use crate::outline::Outline;
use crate::refusal::Problem;
use crate::{quantity, read, schema};
use plan::{Baseline, Measure, Nanos, Repetitions};

const WINDOW_DEFAULT: Nanos = Nanos(100_000_000);
const WARM_UP_DEFAULT: Nanos = Nanos(20_000_000);
const REPETITIONS_DEFAULT: Repetitions = Repetitions::Fixed(10);
const PRECISION_DEFAULT: f64 = 0.05;
const BUDGET_DEFAULT: Nanos = Nanos(20_000_000_000);

/// What holds for every arm; its `events` have been read.
pub(crate) fn whole_run(context: &mut Context, root: &Table, outline: &Outline, events: &[Asked]) -> Measure {
    let get = |key| root.get("measure").and_then(Node::table).and_then(|table| table.get(key));
    let why = "the time a run may take";
    Measure {
        repetitions: get("repetitions").and_then(|node| repetitions(context, node)).unwrap_or(REPETITIONS_DEFAULT),
        precision: get("precision")
            .and_then(|node| quantity::percentage(context, node, "precision"))
            .unwrap_or(PRECISION_DEFAULT),
        budget: get("budget")
            .and_then(|node| quantity::duration(context, node, "budget", schema::BUDGET, why))
            .unwrap_or(BUDGET_DEFAULT),
        baselines: get("baselines").and_then(|node| baselines(context, node)),
        headline_role: outline.headline,
        events: events.iter().map(|one| one.spec.clone()).collect(),
    }
}

/// An arm's window and warm-up.
pub(crate) fn times(context: &mut Context, root: &Table) -> (Nanos, Nanos) {
    let get = |key| root.get("measure").and_then(Node::table).and_then(|table| table.get(key));
    let why = "a shorter window holds no two slices of half a millisecond, a longer one is most likely a slip";
    let window = get("window").and_then(|node| quantity::duration(context, node, "window", schema::WINDOW, why));
    let why = "a warm-up may be left out with \"0ms\"";
    let warm_up = get("warm_up").and_then(|node| quantity::duration(context, node, "warm_up", schema::WARM_UP, why));
    (window.unwrap_or(WINDOW_DEFAULT), warm_up.unwrap_or(WARM_UP_DEFAULT))
}

fn repetitions(context: &mut Context, node: &Node) -> Option<Repetitions> {
    match &node.value {
        Value::String(text) if text == "auto" => Some(Repetitions::Auto),
        Value::Integer(_) => {
            let why = "each is one set of fresh processes; past ten thousand the machine's drift outweighs them";
            let number = read::integer(context, node, "repetitions", schema::REPETITIONS, why)?;
            Some(Repetitions::Fixed(number as u32))
        }
        _ => {
            read::wrong_type(context, node, "repetitions", "a whole number or \"auto\"", "10, or \"auto\"");
            None
        }
    }
}

fn baselines(context: &mut Context, node: &Node) -> Option<Vec<Baseline>> {
    let Some(nodes) = node.array() else {
        read::wrong_type(context, node, "baselines", "a list", "[\"solo\", \"unshared\"]");
        return None;
    };
    let mut chosen = Vec::new();
    for node in nodes {
        let baseline = match read::word(context, node, "baselines", schema::BASELINES)? {
            "solo" => Baseline::Solo,
            "plain" => Baseline::Plain,
            _ => Baseline::Unshared,
        };
        if chosen.contains(&baseline) {
            context.refuse(Problem::at(&node.place, "this baseline stands in the list twice").cure("keep one"));
        } else {
            chosen.push(baseline);
        }
    }
    Some(chosen)
}

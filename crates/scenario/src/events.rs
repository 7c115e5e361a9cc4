//! `[measure] events`: the user's own events, in perf's spelling.

use crate::context::{Context, Place};
use crate::document::{Node, Table};
use crate::read;
use crate::refusal::Problem;
use plan::EventSpec;
use plan::event::{EventSpecError, check_list};

/// One event and where it is written.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) spec: EventSpec,
    pub(crate) place: Place,
}

/// The events of the document's `[measure]`: a list of strings, or one string. A string may hold several, with commas
/// between them.
pub(crate) fn read(context: &mut Context, root: &Table) -> Vec<Asked> {
    let node = root.get("measure").and_then(Node::table).and_then(|table| table.get("events"));
    let Some(node) = node else { return Vec::new() };
    let strings = node.array().unwrap_or(std::slice::from_ref(node));
    let mut asked = Vec::new();
    for node in strings {
        let Some(text) = read::string(context, node, "events", "an event of perf's, or several", EXAMPLE) else {
            return Vec::new();
        };
        for (range, event) in EventSpec::each_of(text) {
            let place = context.texts.within(node, text, range);
            match event {
                Ok(spec) => asked.push(Asked { spec, place }),
                Err(error) => refuse(context, &place, error),
            }
        }
    }
    let specs: Vec<EventSpec> = asked.iter().map(|one| one.spec.clone()).collect();
    if let Err((index, error)) = check_list(&specs) {
        refuse(context, &asked[index].place, error);
    }
    asked
}

const EXAMPLE: &str = "[\"cache-misses\", \"cpu/event=0xd1,umask=0x1,name=l1_hits/\"]";

fn refuse(context: &mut Context, place: &Place, error: EventSpecError) {
    context.refuse(Problem::at(place, error.what).cure(error.cure));
}

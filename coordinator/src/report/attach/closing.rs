//! What watching cost the watched, and what was not seen.

use super::{time, who};
use crate::report::figures::{percent, plural};
use crate::report::page::Page;
use record::{Attach, AttachNote};

pub(super) fn write(page: &mut Page, seen: &Attach) {
    page.heading("What watching cost them");
    page.prose(&cost(seen));
    if seen.notes.is_empty() {
        return;
    }
    page.heading("To know");
    seen.notes.iter().for_each(|note| one(page, seen, note));
}

fn cost(seen: &Attach) -> String {
    let cost = &seen.cost;
    let taken = [(cost.traps, "trap"), (cost.samples, "sample"), (cost.events, "event")];
    let taken: Vec<String> =
        taken.iter().filter(|(number, _)| *number > 0).map(|(number, of)| plural(*number, of)).collect();
    if taken.is_empty() {
        return "Nothing was armed: counters alone ran, at no more than a few nanoseconds a context switch.".to_owned();
    }
    let share = cost.slowdown.map_or_else(
        || ", while they did not run".to_owned(),
        |share| format!(", {} of what they ran while the watch looked closely", percent(share)),
    );
    format!("{} took {} of their time{share}.", taken.join(", "), time(cost.stolen_ns))
}

fn one(page: &mut Page, seen: &Attach, note: &AttachNote) {
    let whose = note.pid.filter(|pid| !note.text.contains(&pid.to_string()));
    let whose = whose.map_or_else(String::new, |pid| format!("{}: ", who(seen, pid)));
    page.item(0, "- ", &format!("{whose}{}", note.text));
    if let Some(cure) = &note.cure {
        page.item(2, "cure: ", cure);
    }
}

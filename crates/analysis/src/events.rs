//! What stands behind the counters' names in this run: who counts, and what a reader is told is counted.

use plan::CountedBy;
use plan::event::COUNTERS;
use record::CountedEvent;

/// The run's events. Names that are not among them (none are, where a run is taken up again without them) are looked up
/// in [`COUNTERS`].
#[derive(Copy, Clone)]
pub(crate) struct Events<'a>(pub(crate) &'a [CountedEvent]);

impl Events<'_> {
    /// Whether the processor counts it. Of a name that nobody knows it is not claimed.
    pub(crate) fn processor(&self, name: &str) -> bool {
        match self.0.iter().find(|event| event.name == name) {
            Some(event) => event.counted_by == "processor",
            None => COUNTERS.contains(&(name, CountedBy::Processor)),
        }
    }

    /// What is counted here, in a few words for a sentence; on a machine with several kinds of core, what each counts.
    pub(crate) fn shown(&self, name: &str) -> String {
        let plain = || name.replace('_', " ");
        let mut all: Vec<&str> = Vec::new();
        for event in self.0.iter().filter(|event| event.name == name) {
            if !all.contains(&event.shown.as_str()) {
                all.push(&event.shown);
            }
        }
        let shown = match all.is_empty() {
            true => plain(),
            false => all.join(" or "),
        };
        if shown == plain() { capitals(&shown) } else { shown }
    }
}

/// Abbreviations of caches in capitals: `L1D load misses`.
fn capitals(words: &str) -> String {
    let word = |word: &str| match word {
        "l1d" | "llc" | "dtlb" | "tlb" => word.to_uppercase(),
        _ => word.to_owned(),
    };
    words.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::counted_event;

    #[test]
    fn names_say_what_is_counted_here() {
        let here = [
            counted_event("l1d_load_misses", "L1D requests to L2", "processor"),
            counted_event("llc_load_misses", "llc load misses", "processor"),
        ];
        let events = Events(&here);
        let shown = ["l1d_load_misses", "llc_load_misses", "dtlb_load_misses"].map(|name| events.shown(name));
        assert_eq!(shown, ["L1D requests to L2", "LLC load misses", "DTLB load misses"]);
        let hybrid = [
            counted_event("l1d_load_misses", "L1D fills", "processor"),
            counted_event("l1d_load_misses", "L1D misses of loads", "processor"),
            counted_event("l1d_load_misses", "L1D fills", "processor"),
        ];
        assert_eq!(Events(&hybrid).shown("l1d_load_misses"), "L1D fills or L1D misses of loads");
    }

    #[test]
    fn who_counts_is_the_run_s_to_say_else_the_lab_s() {
        let own = [counted_event("r01d1", "r01d1", "processor"), counted_event("sched:sched_switch", "", "kernel")];
        let events = Events(&own);
        let processor = ["r01d1", "cycles", "sched:sched_switch", "task_clock", "nobody_knows"];
        assert_eq!(processor.map(|name| events.processor(name)), [true, true, false, false, false]);
    }
}

//! What stands behind the counters' names in a run: who counts, and what a reader is told is counted.

use plan::CountedBy;
use plan::event::{COUNTERS, is_counter};
use serde::{Deserialize, Serialize};

/// What stands behind a counter's name on one kind of core of this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CountedEvent {
    /// The counter's name, a key of `counters`.
    pub name: String,
    /// What a table calls it here, in a few words: where the kernel's generic event counts something else than its
    /// name says, this says what it counts.
    pub shown: String,
    /// The event in perf's spelling (`L1-dcache-load-misses`, `cpu/event=0x44,umask=0x04/`), for a check by hand;
    /// `None` where it is no perf event or this machine has none.
    pub event: Option<String>,
    /// What is counted, in a sentence.
    pub counts: String,
    /// Where that is written down: a manual, a source file, an address.
    pub source: String,
    /// Who counts it.
    pub counted_by: CountedBy,
    /// The CPUs of this kind of core among those asked, as the kernel writes lists: `0-3,8`.
    pub cpus: String,
}

/// A run's events, to look names up in. A name that is not among them is looked up in [`COUNTERS`]: files of old runs
/// list no events.
#[derive(Copy, Clone, Debug)]
pub struct Events<'a>(pub &'a [CountedEvent]);

impl<'a> Events<'a> {
    /// The entries of one counter: one a kind of core.
    pub fn of(self, name: &str) -> impl Iterator<Item = &'a CountedEvent> {
        self.0.iter().filter(move |event| event.name == name)
    }

    /// Whether the processor counts it. It is not claimed of a name that nobody knows.
    pub fn by_processor(self, name: &str) -> bool {
        match self.of(name).next() {
            Some(event) => event.counted_by == CountedBy::Processor,
            None => COUNTERS.contains(&(name, CountedBy::Processor)),
        }
    }

    /// What is counted here, in a few words for a head or a sentence; on a machine with several kinds of core, what
    /// each of them counts.
    pub fn shown(self, name: &str) -> String {
        let mut all: Vec<&str> = Vec::new();
        for event in self.of(name).filter(|_| self.differs(name)) {
            if !all.contains(&event.shown.as_str()) {
                all.push(&event.shown);
            }
        }
        match all.is_empty() {
            true if is_counter(name) => capitals(&name.replace('_', " ")),
            true => name.to_owned(),
            false => all.join(" or "),
        }
    }

    /// Whether something else is counted here, on some kind of core, than the name says.
    pub fn differs(self, name: &str) -> bool {
        let plain = name.replace('_', " ");
        self.of(name).any(|event| event.shown != name && event.shown.to_lowercase() != plain)
    }
}

/// Abbreviations of caches as they are written: `L1D load misses`.
fn capitals(words: &str) -> String {
    let word = |word: &str| match word {
        "dtlb" => "dTLB".to_owned(),
        "cpu" | "l1d" | "llc" | "tlb" => word.to_uppercase(),
        _ => word.to_owned(),
    };
    words.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{CountedEvent, Events};
    use plan::CountedBy::{self, Kernel, Processor};

    fn event(name: &str, shown: &str, counted_by: CountedBy) -> CountedEvent {
        CountedEvent {
            name: name.into(),
            shown: shown.into(),
            event: None,
            counts: "something".into(),
            source: "a manual".into(),
            counted_by,
            cpus: "0-1".into(),
        }
    }

    #[test]
    fn names_say_what_is_counted_here() {
        let here = [
            event("l1d_load_misses", "L1D requests to L2", Processor),
            event("llc_load_misses", "llc load misses", Processor),
            event("r01d1", "r01d1", Processor),
        ];
        let shown = ["l1d_load_misses", "llc_load_misses", "dtlb_load_misses", "r01d1", "my_own"];
        assert_eq!(
            shown.map(|name| Events(&here).shown(name)),
            ["L1D requests to L2", "LLC load misses", "dTLB load misses", "r01d1", "my_own"]
        );
        assert_eq!(shown.map(|name| Events(&here).differs(name)), [true, false, false, false, false]);
    }

    #[test]
    fn kinds_of_core_that_count_differently_are_both_named() {
        let hybrid = [
            event("l1d_load_misses", "L1D fills", Processor),
            event("l1d_load_misses", "l1d load misses", Processor),
            event("l1d_load_misses", "L1D fills", Processor),
        ];
        assert_eq!(Events(&hybrid).shown("l1d_load_misses"), "L1D fills or l1d load misses");
    }

    #[test]
    fn who_counts_is_the_run_s_to_say_else_the_lab_s() {
        let own = [event("r01d1", "r01d1", Processor), event("sched:sched_switch", "", Kernel)];
        let names = ["r01d1", "cycles", "sched:sched_switch", "task_clock", "nobody_knows"];
        assert_eq!(names.map(|name| Events(&own).by_processor(name)), [true, true, false, false, false]);
    }

    #[test]
    fn who_counts_is_a_word_in_the_json() {
        let written = serde_json::to_value([Processor, Kernel]).expect("JSON");
        assert_eq!(written, serde_json::json!(["processor", "kernel"]));
        assert!(serde_json::from_value::<CountedBy>("hypervisor".into()).is_err());
    }
}

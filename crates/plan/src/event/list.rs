//! A user's events together: what a list of them may not hold.

use super::{COUNTERS, EventSpec, EventSpecError, MEMORY_COUNTERS, is_counter};
use crate::expect::{Metric, Subject};

/// Most events of one run. Each takes a counter of the processor's for its share of the window, and no processor has as
/// many.
pub const EVENTS_MAX: usize = 32;

/// Refuses more than [`EVENTS_MAX`] events, two of one [`EventSpec::key`], and a key that already means something: a
/// counter that every run has, or a metric of claims.
///
/// # Errors
/// The position of the first event that is one too many, and what is wrong with it.
pub fn check_list(events: &[EventSpec]) -> Result<(), (usize, EventSpecError)> {
    events.iter().enumerate().try_for_each(|(index, spec)| {
        let key = spec.key();
        let error = |what: String, cure: &str| Err((index, EventSpecError { what, cure: cure.to_owned() }));
        if index == EVENTS_MAX {
            return error(
                format!("this is event {}, and a run has {EVENTS_MAX} at most", index + 1),
                "split them over several runs: processors have four to eight counters, which more events share",
            );
        }
        if events[..index].iter().any(|earlier| earlier.key() == key) {
            return error(
                format!("two events would be called `{key}`"),
                "keep one, or name them apart with name=, as in cpu/event=0xd1,umask=0x01,name=l1_hits/",
            );
        }
        if is_counter(key) {
            return error(format!("`{key}` is a counter that every run has"), &instead_of_counter(spec));
        }
        if let Some(metric) = metric_of(key) {
            return error(
                format!("an event cannot be called `{key}`: claims know {metric} as something else"),
                "choose another name",
            );
        }
        Ok(())
    })
}

/// What to write in place of an event that is called like one of the lab's counters.
fn instead_of_counter(spec: &EventSpec) -> String {
    match (&spec.name, spec.key()) {
        (Some(_), _) => "give the event another name".to_owned(),
        // These two are perf's names as well; what perf calls otherwise has no modifier either.
        (None, key @ ("cycles" | "instructions")) => {
            format!("leave it out: it counts user mode; the kernel's share is another event, {key}:k")
        }
        (None, _) => "leave it out: its figures stand in every result".to_owned(),
    }
}

/// The metric that a claim on the event of that key would be taken for.
fn metric_of(key: &str) -> Option<&'static str> {
    let mut fixed = [Subject::Role, Subject::Lock, Subject::Layout].into_iter().flat_map(Metric::names);
    let spelled =
        [Metric::CounterPerOp(key.to_owned()), Metric::CounterPerSecond(key.to_owned())].map(|m| m.to_string());
    fixed.find(|name| spelled.iter().any(|spelled| spelled == name))
}

/// The names that claims can put before `_per_op` and `_per_second`: every counter's, and the key of each event that
/// looks like one.
pub fn countable(events: &[EventSpec]) -> impl Iterator<Item = &str> {
    let is_identifier = |key: &&str| {
        key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let lab = COUNTERS.iter().map(|(name, _)| *name).chain(MEMORY_COUNTERS);
    lab.chain(events.iter().map(EventSpec::key).filter(is_identifier))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(list: &str) -> Result<(), (usize, String)> {
        check_list(&EventSpec::list(list).unwrap()).map_err(|(index, error)| (index, error.to_string()))
    }

    #[test]
    fn names_that_mean_something_already_are_refused_at_their_place() {
        assert_eq!(checked("cache-misses,cache-misses:u,r1,cpu/event=1,name=hits/"), Ok(()));
        for (list, index, part) in [
            ("r1,cs,r1", 2, "two events would be called `r1`"),
            ("cpu/event=1,name=a/,cpu/event=2,name=a/", 1, "`a`"),
            ("r1,cycles", 1, "another event, cycles:k"),
            ("r1,task_clock", 1, "a counter that every run has: leave it out"),
            (
                "cpu/event=1,name=l1d_loads/",
                0,
                "`l1d_loads` is a counter that every run has: give the event another name",
            ),
            ("cpu/event=1,name=ns/", 0, "ns_per_op"),
            ("cpu/event=1,name=ops/", 0, "`ops`: claims know ops_per_second"),
        ] {
            let (at, error) = checked(list).expect_err(list);
            assert!(at == index && error.contains(part), "{list}: {at} {error}");
        }
    }

    #[test]
    fn there_is_room_for_thirty_two() {
        let list = |count: usize| (0..count).map(|i| format!("r{i:x}")).collect::<Vec<_>>().join(",");
        assert_eq!(checked(&list(32)), Ok(()));
        assert_eq!(checked(&list(33)).map_err(|(index, _)| index), Err(32));
    }

    #[test]
    fn claims_can_name_what_looks_like_a_name() {
        let events = EventSpec::list("cpu/event=1,name=l1_hits/,cache-misses,faults,sched:sched_switch,r1").unwrap();
        let own: Vec<&str> = countable(&events).skip(COUNTERS.len() + MEMORY_COUNTERS.len()).collect();
        assert_eq!(own, ["l1_hits", "faults", "r1"]);
    }
}

//! What counters say of a sick arm, as the field reads them: events a pass, against one worker alone.
//!
//! A count is compared by its rate per pass, so that arms of different speed and numbers of workers can be held against
//! each other. What was not counted is named with its reason, a row for each reason.
//!
//! # References
//! What each counter counts on which processor: docs/counters.md.

use super::Sick;
use crate::counters;
use crate::view::View;
use crate::words::{figure, list};
use plan::event::COUNTERS;
use plan::{ArmKind, BoundArm};
use record::{Evidence, Reading};

/// How the names of counts begin that tell lines from other cores' caches, and of those the ones that only writes make.
const TRANSFERS: &str = "transfers_";
const WRITES: &str = "transfers_write";

/// Counts that rise where a line is fetched again; which of them do depends on the processor.
const MISSES: [&str; 3] = ["l1d_load_misses", "llc_load_misses", "cache_misses"];

/// Counts of a line being taken away or asked for again. Few processors have them: shown where counted, else not missed.
const BESIDE: [&str; 2] = ["l1d_invalidations", "upgrades"];

/// What the sum of several ways is called in evidence, and what a lack of all of them.
const ALL_TRANSFERS: &str = "transfers";
const ALL_WRITES: &str = "transfers by writes";

/// Fewest events that a ratio is divided by: of fewer, chance alone moves the count by over a tenth (the root of a
/// Poisson count is its spread).
const FEWEST_EVENTS: u64 = 100;

/// Fewest events a pass that belong to the loop and not to what interrupts it: below one in a thousand passes, a ratio
/// would say how often an interrupt ran.
const LEAST_PER_OP: f64 = 0.001;

/// From which ratio on a count explains something: less is what regimes and prefetchers make of one loop.
const TELLING_RATIO: f64 = 2.0;

/// Counts in the sentence; a fourth would bury the first.
const MOST_SAID: usize = 3;

/// A way by which so many times fewer lines came than by another is not named in the sentence.
const MUCH_MORE: f64 = 10.0;

/// Share of windows, and involuntary switches a second, from which on the kernel's evidence explains something.
const WORTH_SHARE: f64 = 0.01;
const WORTH_SWITCHES: f64 = 100.0;

/// The counts of lines from other cores' caches, as far as the processor tells: those of writes alone, or the others.
///
/// Within either a line arrives by one way, so its ways add up, but see [`Arms::adds_up`]. The two do not: Intel counts
/// what retired loads met and what requests for ownership (RFO) met, and a locked instruction is both. It is among the
/// retired loads (`MEM_INST_RETIRED.LOCK_LOADS` counts those with a lock), and it asks for the line to own it.
fn transfers(of_writes: bool) -> impl Iterator<Item = &'static str> {
    let ways = COUNTERS.iter().map(|(name, _)| *name).filter(|name| name.starts_with(TRANSFERS));
    ways.filter(move |name| name.starts_with(WRITES) == of_writes)
}

/// One count of a role in one arm.
#[derive(Copy, Clone)]
struct Count {
    events: u64,
    per_op: f64,
    scaled: bool,
}

/// A telling counter, or the sum of several.
struct Tale {
    /// As evidence calls it.
    name: String,
    parts: Vec<&'static str>,
}

impl Tale {
    fn is_of_transfers(&self) -> bool {
        self.parts[0].starts_with(TRANSFERS)
    }

    fn is_of_writes(&self) -> bool {
        self.parts[0].starts_with(WRITES)
    }
}

/// The arms a diagnosis holds against each other, for the role that pays.
struct Arms<'a> {
    view: &'a View<'a>,
    role: &'a str,
    sick: &'a str,
    other: &'a str,
    /// One worker alone; where there is no such arm a copy for each, and else the other.
    base: &'a str,
    alone: bool,
}

impl<'a> Arms<'a> {
    fn of(view: &'a View<'a>, sick: &'a Sick<'a>) -> Arms<'a> {
        let (arm, role, other) = (sick.arm, sick.cost.role.as_str(), sick.cost.against.as_str());
        let ran = |b: &&BoundArm| !view.workers(&b.arm.name, Some(role)).is_empty();
        let base = [true, false].into_iter().find_map(|solo| view.baseline(arm, role, solo).filter(ran));
        Arms {
            view,
            role,
            sick: &arm.arm.name,
            other,
            base: base.map_or(other, |b| &b.arm.name),
            alone: base.is_some_and(|b| matches!(b.arm.kind, ArmKind::Solo { .. })),
        }
    }

    /// Each arm once, the sick one first.
    fn each(&self) -> Vec<&'a str> {
        let mut all = vec![self.sick];
        for arm in [self.other, self.base] {
            if !all.contains(&arm) {
                all.push(arm);
            }
        }
        all
    }

    fn reading(&self, arm: &str, counter: &str) -> Reading {
        counters::measured(&self.view.workers(arm, Some(self.role)), counter).reading
    }

    /// A count of an arm, all its parts added up; `None` where one of them was not counted, or there was no pass.
    fn count(&self, arm: &str, tale: &Tale) -> Option<Count> {
        let workers = self.view.workers(arm, Some(self.role));
        let parts = tale.parts.iter().map(|part| {
            let measured = counters::measured(&workers, part);
            let scaled = matches!(measured.reading, Reading::Scaled { .. });
            Some(Count { events: measured.reading.value()?, per_op: measured.per_op?, scaled })
        });
        let add = |a: Count, b: Count| Count {
            events: a.events.saturating_add(b.events),
            per_op: a.per_op + b.per_op,
            scaled: a.scaled || b.scaled,
        };
        parts.collect::<Option<Vec<Count>>>()?.into_iter().reduce(add)
    }

    /// The sick arm over the base; `None` where there is too little in the base to divide by.
    fn ratio(&self, tale: &Tale) -> Option<f64> {
        let (sick, base) = (self.count(self.sick, tale)?, self.count(self.base, tale)?);
        (base.events >= FEWEST_EVENTS && base.per_op >= LEAST_PER_OP).then(|| sick.per_op / base.per_op)
    }

    /// Arm's REMOTE_ACCESS counts again what its refills count (Arm Architecture Reference Manual, "PMU events").
    fn adds_up(&self, way: &str) -> bool {
        let of_arm = |event: &record::CountedEvent| event.event.as_ref().is_some_and(|text| text.starts_with("arm"));
        way != "transfers_remote" || !self.view.events.of(way).any(of_arm)
    }

    /// The counts of a tale in words: of several, those that make up most of it.
    fn words(&self, tale: &Tale) -> String {
        let part = |name: &&'static str| self.count(self.sick, &Tale { name: String::new(), parts: vec![name] });
        let most = tale.parts.iter().filter_map(part).map(|count| count.per_op).fold(0.0, f64::max);
        let worth = |name: &&&'static str| part(name).is_some_and(|count| count.per_op * MUCH_MORE >= most);
        let named: Vec<String> = tale.parts.iter().filter(worth).map(|name| self.view.events.shown(name)).collect();
        named.join(" + ")
    }

    /// What the sick arm counted: the transfers, those of writes behind the others, then the misses, then what stands
    /// beside.
    fn tales(&self) -> Vec<Tale> {
        let counted = |name: &&'static str| self.reading(self.sick, name).value().is_some();
        let single = |name: &'static str| Tale { name: name.to_owned(), parts: vec![name] };
        let transfers = [false, true].into_iter().flat_map(|of_writes| {
            let ways: Vec<&'static str> = transfers(of_writes).filter(counted).collect();
            self.together(&ways, of_writes).into_iter().chain(ways.into_iter().map(single))
        });
        let rest = MISSES.into_iter().chain(BESIDE).filter(counted);
        transfers.chain(rest.map(single)).collect()
    }

    /// The sum of several ways by which lines came.
    fn together(&self, ways: &[&'static str], of_writes: bool) -> Option<Tale> {
        let parts: Vec<&'static str> = ways.iter().copied().filter(|name| self.adds_up(name)).collect();
        let all = if of_writes { ALL_WRITES } else { ALL_TRANSFERS };
        (parts.len() > 1).then(|| Tale { name: format!("{all} ({})", parts.join(" + ")), parts })
    }
}

/// Rows for the evidence: each telling count in each arm and against the base, then what was missing.
pub(super) fn rows(view: &View, sick: &Sick) -> Vec<Evidence> {
    let arms = Arms::of(view, sick);
    let mut rows: Vec<Evidence> = arms.tales().iter().flat_map(|tale| tale_rows(&arms, tale)).collect();
    rows.extend(kernel(&arms));
    rows.extend(missing(&arms));
    rows
}

fn source(scaled: bool) -> &'static str {
    if scaled { "measured, scaled" } else { "measured" }
}

fn tale_rows(arms: &Arms, tale: &Tale) -> Vec<Evidence> {
    let what = format!("{} per pass of `{}`", tale.name, arms.role);
    let unit = if tale.parts.len() > 1 { "lines per op" } else { "per op" };
    let per_op = |arm: &&str| {
        let count = arms.count(arm, tale)?;
        Some(Evidence::new(format!("{what} in `{arm}`"), Some(count.per_op), unit, source(count.scaled)))
    };
    let mut rows: Vec<Evidence> = arms.each().iter().filter_map(per_op).collect();
    if let Some(ratio) = arms.ratio(tale) {
        let scaled = [arms.sick, arms.base].iter().any(|arm| arms.count(arm, tale).is_some_and(|c| c.scaled));
        let name = format!("{what} in `{}` over `{}`", arms.sick, arms.base);
        rows.push(Evidence::new(name, Some(ratio), "times", source(scaled)));
    }
    rows
}

/// What kept workers from running, in the arms compared, where it was enough to explain something.
fn kernel(arms: &Arms) -> Vec<Evidence> {
    let mut rows = Vec::new();
    for arm in arms.each() {
        let all = || arms.view.workers(arm, None);
        let took = [
            ("stolen_ns: time the hypervisor took", counters::share_taken(all(), "stolen_ns")),
            ("throttled_ns: time a CPU quota took", counters::share_taken(all(), "throttled_ns")),
        ];
        for (what, share) in took {
            let share = share.filter(|share| *share > WORTH_SHARE);
            let name = format!("{what} from `{arm}`");
            rows.extend(
                share.map(|share| Evidence::new(name, Some(share * 100.0), "% of warm-up and windows", "measured")),
            );
        }
        let workers = arms.view.workers(arm, Some(arms.role));
        let switches = counters::measured(&workers, "context_switches_involuntary").per_second;
        let name = format!("context_switches_involuntary of `{}` in `{arm}`", arms.role);
        let switches = switches.filter(|n| *n > WORTH_SWITCHES);
        rows.extend(switches.map(|n| Evidence::new(name, Some(n), "a second", "measured")));
    }
    rows
}

/// Telling counters that some of the arms lack: a row for each reason.
fn missing(arms: &Arms) -> Vec<Evidence> {
    let mut by_reason: Vec<(String, Vec<String>)> = Vec::new();
    let mut add = |why: String, name: String| match by_reason.iter_mut().find(|(known, _)| cause(known) == cause(&why))
    {
        Some((_, names)) if names.contains(&name) => {}
        Some((_, names)) => names.push(name),
        None => by_reason.push((why, vec![name])),
    };
    for counter in MISSES {
        for (why, name) in gaps(arms, counter) {
            add(why, name);
        }
    }
    for (why, name) in missed_transfers(arms) {
        add(why, name);
    }
    let row =
        |(why, names): (String, Vec<String>)| Evidence::new(names.join(", "), None, "", &format!("missing: {why}"));
    by_reason.into_iter().map(row).collect()
}

/// A reason without what stands in brackets, which is where it was met: in a call, in a folder.
fn cause(why: &str) -> String {
    why.split('(').map(|part| part.split_once(')').map_or(part, |(_, behind)| behind)).collect()
}

/// Where one counter lacks, with the reason; by its name alone where all arms lack it.
fn gaps(arms: &Arms, name: &str) -> Vec<(String, String)> {
    let all = arms.each();
    let lacking = |arm| Some((counters::why_not(&arms.reading(arm, name))?, arm));
    let found: Vec<(String, &str)> = all.iter().copied().filter_map(lacking).collect();
    match found.len() == all.len() {
        true => found.into_iter().take(1).map(|(why, _)| (why, name.to_owned())).collect(),
        false => found.into_iter().map(|(why, arm)| (why, format!("{name} in `{arm}`"))).collect(),
    }
}

/// Gaps in the transfers. Where none is counted they are one thing that is missing, for the reason that keeps most of
/// them away; where some are, a processor's lack of another is no gap: its events tell the ways that it knows.
fn missed_transfers(arms: &Arms) -> Vec<(String, String)> {
    let ways = transfers(false).chain(transfers(true));
    let readings: Vec<(&str, Reading)> = ways.map(|name| (name, arms.reading(arms.sick, name))).collect();
    if readings.iter().any(|(_, reading)| reading.value().is_some()) {
        let known = readings.iter().filter(|(_, reading)| !matches!(reading, Reading::Unsupported { .. }));
        return known.flat_map(|(name, _)| gaps(arms, name)).collect();
    }
    let reasons: Vec<String> = readings.iter().filter_map(|(_, reading)| counters::why_not(reading)).collect();
    let times = |why: &&String| reasons.iter().filter(|other| other == why).count();
    // The first of equals: what `max_by_key` finds from behind.
    let main = reasons.iter().rev().max_by_key(times);
    main.map(|why| (why.clone(), ALL_TRANSFERS.to_owned())).into_iter().collect()
}

/// What was counted and says something, in a sentence; `None` where nothing was or does.
pub(super) fn sentence(view: &View, sick: &Sick) -> Option<String> {
    let arms = Arms::of(view, sick);
    let tales = arms.tales();
    // The first of each is the sum, where there is one.
    let first = |of_writes| tales.iter().find(|tale| tale.is_of_transfers() && tale.is_of_writes() == of_writes);
    let misses = tales.iter().filter(|tale| MISSES.contains(&tale.parts[0]));
    let worth = first(false).into_iter().chain(first(true)).chain(misses);
    let said: Vec<String> = worth.filter_map(|tale| phrase(&arms, tale)).collect();
    let said = &said[..said.len().min(MOST_SAID)];
    (!said.is_empty()).then(|| format!("Counted: {}.", said.join("; ")))
}

/// One count in words, where the sick arm has much more of it than the base.
fn phrase(arms: &Arms, tale: &Tale) -> Option<String> {
    let (sick, base) = (arms.count(arms.sick, tale)?, arms.count(arms.base, tale)?);
    if sick.per_op < LEAST_PER_OP {
        return None;
    }
    let transfers = tale.is_of_transfers();
    let what = match (transfers, tale.is_of_writes()) {
        (true, true) => format!("transfers of lines by writes ({})", arms.words(tale)),
        (true, false) => format!("transfers of lines ({})", arms.words(tale)),
        (false, _) => arms.words(tale),
    };
    let base_name = list(&[arms.base]);
    let Some(ratio) = arms.ratio(tale) else {
        // Too few to divide by are few by themselves only where they are few a pass.
        let few = if base.events == 0 { "none" } else { "next to none" };
        let said = format!("{what}, {} a pass, {few} in {base_name}", figure(sick.per_op));
        return (base.per_op < LEAST_PER_OP).then_some(said);
    };
    let rate = match arms.alone {
        true => "the single-process rate".to_owned(),
        false => format!("the rate in {base_name}"),
    };
    let each = if transfers { format!(", {} a pass,", figure(sick.per_op)) } else { String::new() };
    (ratio >= TELLING_RATIO).then(|| format!("{what}{each} are {} times {rate}", figure(ratio)))
}

#[cfg(test)]
mod tests {
    use crate::testkit::{Bench, counted_event};
    use record::{Diagnosis, Evidence, Observation, Reading};

    /// Two counters in one line against lines of their own and one worker alone, every window of a million passes.
    fn false_sharing(read: impl Fn(&mut Observation)) -> Diagnosis {
        diagnosed(Bench::new(&["packed", "padded-64"]).with_solo(), read)
    }

    fn diagnosed(mut bench: Bench, read: impl Fn(&mut Observation)) -> Diagnosis {
        bench.events = vec![
            counted_event("l1d_load_misses", "L1D requests to L2", plan::CountedBy::Processor),
            counted_event("transfers_local", "fills: other CCX, near", plan::CountedBy::Processor),
        ];
        bench.run(10, |arm, _| if arm == "packed" || arm == "control" { 23.0 } else { 2.3 });
        bench.observations.iter_mut().for_each(|o| o.passes = 1_000_000);
        bench.observations.iter_mut().for_each(read);
        let found = bench.analyse().diagnosis.remove(0);
        assert_eq!(found.kind, "false_sharing");
        found
    }

    /// A reading of so many events, fewer in arms that are not sick.
    fn count(o: &mut Observation, counter: &str, sick: u64, well: u64) {
        let value = if o.arm == "packed" { sick } else { well };
        o.counters.insert(counter.into(), Reading::Counted { value });
    }

    fn every_way() -> impl Iterator<Item = &'static str> {
        super::transfers(false).chain(super::transfers(true))
    }

    fn row<'a>(found: &'a Diagnosis, name: &str) -> &'a Evidence {
        let named = |e: &&Evidence| e.name == name;
        found.evidence.iter().find(named).unwrap_or_else(|| panic!("{name} is not in {:#?}", found.evidence))
    }

    fn missing(found: &Diagnosis) -> Vec<(&str, &str)> {
        let lacking = found.evidence.iter().filter(|e| e.value.is_none());
        lacking.map(|e| (e.name.as_str(), e.source.as_str())).collect()
    }

    #[test]
    fn misses_are_told_as_so_many_times_the_single_process_rate() {
        let found = false_sharing(|o| count(o, "l1d_load_misses", 800_000, 20_000));
        let per_pass = |arm: &str| row(&found, &format!("l1d_load_misses per pass of `counter` in `{arm}`")).clone();
        assert_eq!(["packed", "padded-64", "solo:counter"].map(|arm| per_pass(arm).value), [0.8, 0.02, 0.02].map(Some));
        assert_eq!((per_pass("packed").unit.as_str(), per_pass("packed").source.as_str()), ("per op", "measured"));
        let times = row(&found, "l1d_load_misses per pass of `counter` in `packed` over `solo:counter`");
        assert!((times.value.unwrap() - 40.0).abs() < 1e-9 && times.unit == "times", "{times:?}");
        let said = "Counted: L1D requests to L2 are 40.0 times the single-process rate.";
        assert!(found.text.ends_with(said), "{}", found.text);
    }

    #[test]
    fn where_hardly_any_are_counted_alone_nothing_is_divided() {
        for (alone, said) in [(0, "none"), (40, "next to none"), (900, "next to none")] {
            let found = false_sharing(|o| count(o, "l1d_load_misses", 800_000, alone));
            let text = format!("Counted: L1D requests to L2, 0.800 a pass, {said} in `solo:counter`.");
            assert!(found.text.ends_with(&text), "{}", found.text);
            assert!(!found.evidence.iter().any(|e| e.name.contains("over `solo:counter`")), "{:#?}", found.evidence);
        }
    }

    #[test]
    fn a_count_that_stays_flat_is_evidence_and_no_sentence() {
        let found = false_sharing(|o| {
            count(o, "l1d_load_misses", 30_000, 20_000);
            count(o, "llc_load_misses", 4, 0);
        });
        assert!(!found.text.contains("Counted"), "{}", found.text);
        assert_eq!(row(&found, "llc_load_misses per pass of `counter` in `packed`").value, Some(4e-6));
        let times = row(&found, "l1d_load_misses per pass of `counter` in `packed` over `solo:counter`");
        assert!((times.value.unwrap() - 1.5).abs() < 1e-9);
    }

    #[test]
    fn without_a_solo_arm_the_copies_are_the_base_and_without_those_the_cure() {
        let read = |o: &mut Observation| count(o, "cache_misses", 800_000, 20_000);
        let unshared = diagnosed(Bench::new(&["packed", "padded-64"]).with_unshared(), read);
        assert!(
            unshared.text.ends_with("cache misses are 40.0 times the rate in `unshared:packed`."),
            "{}",
            unshared.text
        );
        let bare = diagnosed(Bench::new(&["packed", "padded-64"]), read);
        assert!(bare.text.ends_with("cache misses are 40.0 times the rate in `padded-64`."), "{}", bare.text);
        let rows = bare.evidence.iter().filter(|e| e.name.starts_with("cache_misses")).count();
        assert_eq!(rows, 3, "an arm that is cure and base stands once: {:#?}", bare.evidence);
    }

    #[test]
    fn transfers_add_up_and_stand_by_themselves() {
        let found = false_sharing(|o| {
            count(o, "transfers_local", 700_000, 0);
            count(o, "transfers_remote", 200_000, 10);
            let none = Reading::Unsupported { why: "Zen has no event of it".into() };
            o.counters.insert("transfers_write".into(), none);
        });
        let value = |name: &str| row(&found, &format!("{name} per pass of `counter` in `packed`")).value;
        assert!((value("transfers (transfers_local + transfers_remote)").unwrap() - 0.9).abs() < 1e-9);
        assert_eq!([value("transfers_local"), value("transfers_remote")], [Some(0.7), Some(0.2)]);
        let said = "Counted: transfers of lines (fills: other CCX, near + transfers remote), 0.900 a pass, next to none in \
                    `solo:counter`.";
        assert!(found.text.ends_with(said), "{}", found.text);
        assert!(missing(&found).iter().all(|(name, _)| !name.contains("transfers")), "{:?}", missing(&found));
    }

    #[test]
    fn what_a_locked_instruction_counts_as_load_and_as_write_is_not_added_up() {
        let found = false_sharing(|o| {
            count(o, "transfers_local", 900_000, 0);
            count(o, "transfers_write", 800_000, 0);
        });
        let value = |name: &str| row(&found, &format!("{name} per pass of `counter` in `packed`")).value;
        assert_eq!([value("transfers_local"), value("transfers_write")], [Some(0.9), Some(0.8)]);
        assert!(found.evidence.iter().all(|e| !e.name.contains(" + ")), "no sum: {:#?}", found.evidence);
        let said = "Counted: transfers of lines (fills: other CCX, near), 0.900 a pass, none in `solo:counter`; \
                    transfers of lines by writes (transfers write), 0.800 a pass, none in `solo:counter`.";
        assert!(found.text.ends_with(said), "{}", found.text);
    }

    #[test]
    fn what_arm_counts_twice_is_added_once() {
        let mut bench = Bench::new(&["packed", "padded-64"]);
        let event = |name: &str, text: &str| record::CountedEvent {
            event: Some(text.into()),
            ..counted_event(name, name, plan::CountedBy::Processor)
        };
        bench.events = vec![event("transfers_remote", "armv8_pmuv3_0/event=0x31/")];
        bench.run(10, |arm, _| if arm == "packed" || arm == "control" { 23.0 } else { 2.3 });
        for o in &mut bench.observations {
            o.passes = 1_000_000;
            for name in ["transfers_cluster", "transfers_local", "transfers_remote"] {
                count(o, name, 300_000, 0);
            }
        }
        let found = bench.analyse().diagnosis.remove(0);
        let sum = row(&found, "transfers (transfers_cluster + transfers_local) per pass of `counter` in `packed`");
        assert!((sum.value.unwrap() - 0.6).abs() < 1e-9);
        assert!(found.evidence.iter().any(|e| e.name.starts_with("transfers_remote per pass")));
    }

    #[test]
    fn scaled_counts_say_so_in_their_source() {
        let found = false_sharing(|o| {
            let value = if o.arm == "packed" { 800_000 } else { 20_000 };
            let reading = match o.arm.as_str() {
                "packed" => Reading::Scaled { value, ratio: 0.5 },
                _ => Reading::Counted { value },
            };
            o.counters.insert("l1d_load_misses".into(), reading);
        });
        let source =
            |name: &str| row(&found, &format!("l1d_load_misses per pass of `counter` in {name}")).source.as_str();
        let sources = ["`packed`", "`padded-64`", "`packed` over `solo:counter`"].map(source);
        assert_eq!(sources, ["measured, scaled", "measured", "measured, scaled"]);
    }

    #[test]
    fn what_was_missing_is_a_row_a_cause() {
        let no_pmu = || Reading::Unsupported { why: "this machine exposes no hardware PMU".into() };
        let all = ["l1d_load_misses", "llc_load_misses", "cache_misses"].into_iter().chain(every_way());
        let names: Vec<&str> = all.collect();
        let found = false_sharing(|o| names.iter().for_each(|name| drop(o.counters.insert((*name).into(), no_pmu()))));
        let why = "missing: this machine exposes no hardware PMU";
        assert_eq!(missing(&found), [("l1d_load_misses, llc_load_misses, cache_misses, transfers", why)]);
        assert!(!found.text.contains("Counted"), "{}", found.text);

        let met = |place: &str| Reading::Unsupported { why: format!("no hardware PMU ({place}): none passed through") };
        let found = false_sharing(|o| {
            names.iter().for_each(|name| drop(o.counters.insert((*name).into(), met("ENOENT"))));
            every_way().for_each(|name| drop(o.counters.insert(name.into(), met("no such folder"))));
        });
        assert_eq!(missing(&found).len(), 1, "one cause, met in two places: {:?}", missing(&found));

        let found = false_sharing(|o| {
            names.iter().for_each(|name| drop(o.counters.insert((*name).into(), no_pmu())));
            let why = "Zen has no event of it".to_owned();
            o.counters.insert("transfers_write".into(), Reading::Unsupported { why });
        });
        assert_eq!(missing(&found).len(), 1, "no part of what is missing altogether: {:?}", missing(&found));

        let found = false_sharing(|o| {
            names.iter().for_each(|name| count(o, name, 5_000, 5_000));
            o.counters.insert("llc_load_misses".into(), no_pmu());
            if o.arm == "solo:counter" {
                o.counters.insert("cache_misses".into(), Reading::NotScheduled);
            }
        });
        let never = Reading::NotScheduled;
        let never = format!("missing: {}; {}", never.why().unwrap(), never.cure().unwrap());
        assert_eq!(missing(&found), [("llc_load_misses", why), ("cache_misses in `solo:counter`", never.as_str())]);
    }

    #[test]
    fn the_kernel_s_evidence_stands_where_it_explains_something() {
        let found = false_sharing(|o| {
            count(o, "stolen_ns", 5_000_000, 0);
            count(o, "throttled_ns", 0, 40_000_000);
            count(o, "context_switches_involuntary", 50, 2);
        });
        assert_eq!(row(&found, "stolen_ns: time the hypervisor took from `packed`").value, Some(4.0));
        assert_eq!(row(&found, "throttled_ns: time a CPU quota took from `padded-64`").value, Some(16.0));
        let switches = row(&found, "context_switches_involuntary of `counter` in `packed`");
        assert_eq!((switches.value, switches.unit.as_str()), (Some(1000.0), "a second"));
        let kernel = |e: &&Evidence| e.unit == "a second" || e.unit == "% of warm-up and windows";
        // The quota stopped the lone worker too.
        assert_eq!(found.evidence.iter().filter(kernel).count(), 4, "{:#?}", found.evidence);
    }
}

//! From layout and figures to a named cause: one rule a file. A rule fires where the layout shows the pattern *and* the
//! run measured its cost; a pattern without a cost is no diagnosis, nor a cost without a pattern.
//!
//! Locks are left out of the data rules: all workers write a lock's word by design; and so is what one lock protects from
//! the rule on true sharing, since it moves with its lock. Rules of their own look at who waits for whom, and why.

mod adjacent_line;
mod convoy;
mod cost;
mod costly_handoff;
mod counts;
mod evidence;
mod false_sharing;
mod held;
mod lines;
mod lock_contention;
#[cfg(test)]
mod lock_tests;
mod lock_word;
mod locks;
mod long_hold;
mod none;
mod oversubscribed;
mod own_lines;
mod owner_died;
mod queue;
mod reader_invalidation;
mod shootdown;
#[cfg(test)]
mod shootdown_tests;
mod starved;
mod true_sharing;
mod unfair;

use crate::view::View;
use cost::Cost;
use lines::element_names;
use plan::{BoundArm, Placed, Program};
use record::{ArmSummary, Diagnosis, Severity};
use std::collections::BTreeSet;

/// Every kind of diagnosis: those of data, those of locks, those of memory given back, and that nothing was found.
pub const KINDS: [&str; 15] = [
    "false_sharing",
    "true_sharing",
    "reader_invalidation",
    "adjacent_line",
    "long_hold",
    "convoy",
    "costly_handoff",
    "unfair",
    "starved",
    "oversubscribed",
    "lock_word_shares_line",
    "owner_died",
    "lock_contention",
    "tlb_shootdown",
    "none",
];

/// What is wrong, most severe first; at most one diagnosis a kind (of `tlb_shootdown` one between processes and one between
/// threads: their causes and cures differ), and `none` where no rule fires.
pub(crate) fn diagnose(view: &View, arms: &[ArmSummary]) -> Vec<Diagnosis> {
    let rules = [false_sharing::find, true_sharing::find, reader_invalidation::find, adjacent_line::find];
    let of_locks = [
        long_hold::find,
        convoy::find,
        costly_handoff::find,
        unfair::find,
        starved::find,
        oversubscribed::find,
        lock_word::find,
        owner_died::find,
    ];
    let mut found: Vec<(f64, Diagnosis)> = rules.iter().filter_map(|rule| rule(view)).collect();
    let mut at_locks: Vec<(f64, Diagnosis)> = of_locks.iter().filter_map(|rule| rule(view, arms)).collect();
    at_locks.extend(lock_contention::find(view, arms, &at_locks));
    found.append(&mut at_locks);
    found.extend(shootdown::find(view));
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let found: Vec<Diagnosis> = match found.is_empty() {
        true => vec![none::explain(view, arms)],
        false => found.into_iter().map(|(_, diagnosis)| diagnosis).collect(),
    };
    // Whoever explains diagnoses goes by the list.
    debug_assert!(found.iter().all(|diagnosis| KINDS.contains(&diagnosis.kind.as_str())));
    found
}

/// One place where a rule fires: elements of a variant, and what they cost one role.
struct Sick<'a> {
    arm: &'a BoundArm,
    program: &'a Program,
    elements: Vec<&'a Placed>,
    cost: Cost,
}

/// What a rule says in its own words.
struct Words {
    kind: &'static str,
    text: String,
    cure: String,
}

/// A rule's findings as one diagnosis of the worst of them, with its cost: the other variants it was seen in are named.
fn report(view: &View, mut found: Vec<Sick>, words: impl Fn(&Sick) -> Words) -> Option<(f64, Diagnosis)> {
    found.sort_by(|a, b| b.cost.ratio.median.total_cmp(&a.cost.ratio.median));
    let worst = found.first()?;
    let mut arms: Vec<String> = Vec::new();
    for sick in &found {
        if !arms.contains(&sick.arm.arm.name) {
            arms.push(sick.arm.arm.name.clone());
        }
    }
    let same_arm = found.iter().filter(|s| s.arm.arm.name == worst.arm.arm.name);
    let fields: BTreeSet<&str> = same_arm.flat_map(|s| s.elements.iter().map(|e| e.field.as_str())).collect();
    let Words { kind, mut text, cure } = words(worst);
    if let Some(counted) = counts::sentence(view, worst) {
        text = format!("{text} {counted}");
    }
    let diagnosis = Diagnosis {
        kind: kind.to_owned(),
        severity: severity(worst.cost.ratio.median),
        text,
        arms,
        fields: fields.into_iter().map(str::to_owned).collect(),
        roles: lines::roles(worst.program, &worst.elements),
        evidence: evidence::of(view, worst),
        cure,
        expected_gain: worst.cost.gain.clone(),
    };
    Some((worst.cost.ratio.median, diagnosis))
}

fn severity(times_as_long: f64) -> Severity {
    match times_as_long {
        ratio if ratio < 1.2 => Severity::Low,
        ratio if ratio < 2.0 => Severity::Medium,
        _ => Severity::High,
    }
}

/// Elements named one by one in a sentence.
const MOST_NAMED: usize = 4;

/// The elements of a finding in a sentence: `hits[0]` and `hits[1]`; of many the first, and how many more.
fn names(sick: &Sick) -> String {
    let all = element_names(sick.program, &sick.elements);
    match all.len() > MOST_NAMED {
        true => format!(
            "{} and {} more",
            all[..MOST_NAMED - 1].iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", "),
            all.len() - MOST_NAMED + 1
        ),
        false => crate::words::list(&all),
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::{Bench, Spot};
    use record::{Diagnosis, Reading, Severity};

    fn kinds(found: &[Diagnosis]) -> Vec<&str> {
        found.iter().map(|d| d.kind.as_str()).collect()
    }

    fn spots(offsets: [u64; 2], first: (&[u32], &[u32]), second: (&[u32], &[u32])) -> Vec<Spot> {
        vec![Spot::data("a", offsets[0], first.0, first.1), Spot::data("b", offsets[1], second.0, second.1)]
    }

    /// Two writers of their own words, packed or apart.
    fn two_writers(packed_ns: f64, padded_ns: f64) -> Bench {
        let mut bench = Bench::new(&["packed", "padded-64", "padded-128"]);
        bench.run(10, |arm, block| {
            let drift = 1.0 + 0.02 * f64::from(block % 5);
            if arm == "packed" || arm == "control" { packed_ns * drift } else { padded_ns * drift }
        });
        bench
    }

    #[test]
    fn writers_in_one_line_are_false_sharing_with_its_gain() {
        let found = two_writers(23.0, 2.3).analyse().diagnosis;
        assert_eq!(kinds(&found), ["false_sharing"]);
        let one = &found[0];
        assert_eq!((one.severity, one.arms.as_slice()), (Severity::High, ["packed".to_owned()].as_slice()));
        assert_eq!(
            (one.fields.as_slice(), one.roles.as_slice()),
            (["hits".to_owned()].as_slice(), ["counter".to_owned()].as_slice())
        );
        let gain = one.expected_gain.as_ref().unwrap();
        assert_eq!(gain.arm, "padded-64", "128 bytes buy nothing more");
        assert!((gain.ratio.median - 10.0).abs() < 1e-6);
        assert!(one.text.contains("`hits[0]` and `hits[1]`") && one.text.contains("10.0 times"), "{}", one.text);
    }

    #[test]
    fn a_shared_line_that_costs_nothing_is_none() {
        let found = two_writers(2.3, 2.3).analyse().diagnosis;
        assert_eq!(kinds(&found), ["none"]);
        assert_eq!(found[0].severity, Severity::None);
        assert!(found[0].text.contains("packed"), "{}", found[0].text);
    }

    #[test]
    fn a_cost_without_the_pattern_is_none() {
        // padded-128 is somehow slow: no line of it is shared.
        let mut bench = Bench::new(&["padded-64", "padded-128"]);
        bench.run(10, |arm, _| if arm == "padded-128" { 9.0 } else { 2.0 });
        assert_eq!(kinds(&bench.analyse().diagnosis), ["none"]);
    }

    #[test]
    fn unshared_alone_proves_false_sharing_but_holds_no_cure() {
        let mut bench = Bench::new(&["packed"]).with_unshared();
        bench.run(10, |arm, _| if arm.starts_with("unshared") { 2.0 } else { 20.0 });
        let found = bench.analyse().diagnosis;
        assert_eq!(kinds(&found), ["false_sharing"]);
        assert_eq!(found[0].expected_gain, None);
    }

    #[test]
    fn missing_counters_are_named_in_the_evidence_with_the_reason() {
        let mut bench = two_writers(23.0, 2.3);
        for o in &mut bench.observations {
            o.counters.insert("l1d_load_misses".into(), Reading::Unsupported { why: "no PMU here".into() });
        }
        let found = bench.analyse().diagnosis;
        let missing: Vec<_> = found[0].evidence.iter().filter(|e| e.source.starts_with("missing")).collect();
        assert!(missing.iter().any(|e| e.source == "missing: no PMU here" && e.value.is_none()));
        assert!(
            found[0].evidence.iter().any(|e| e.source == "layout")
                && found[0].evidence.iter().any(|e| e.source == "measured")
        );
    }

    #[test]
    fn one_word_written_by_all_is_true_sharing() {
        let shared = vec![Spot::data("total", 0, &[0, 1], &[])];
        let mut bench = Bench::new(&["one"]).with_unshared().with_layout("one", shared.clone());
        bench = bench.with_layout("unshared:one", shared);
        bench.run(10, |arm, _| if arm.starts_with("unshared") { 2.0 } else { 25.0 });
        let found = bench.analyse().diagnosis;
        assert_eq!(kinds(&found), ["true_sharing"]);
        assert_eq!((found[0].fields[0].as_str(), found[0].expected_gain.as_ref()), ("total", None));
    }

    #[test]
    fn a_sharded_variant_is_the_cure_of_true_sharing() {
        let shared = vec![Spot::data("total", 0, &[0, 1], &[])];
        let mut bench = Bench::new(&["one", "padded-64"]).with_layout("one", shared).with_steps("one", "add total");
        bench.run(10, |arm, _| if arm == "padded-64" { 2.5 } else { 25.0 });
        let found = bench.analyse().diagnosis;
        assert_eq!(kinds(&found), ["true_sharing"]);
        assert_eq!(found[0].expected_gain.as_ref().unwrap().arm, "padded-64");
    }

    /// Copies of everything can be faster for other reasons than the shared word.
    #[test]
    fn a_cure_that_was_compared_and_gained_nothing_is_no_true_sharing() {
        let shared = vec![Spot::data("total", 0, &[0, 1], &[])];
        let mut bench = Bench::new(&["one", "padded-64"]).with_unshared().with_layout("one", shared.clone());
        bench = bench.with_steps("one", "add total").with_layout("unshared:one", shared);
        bench = bench.with_steps("unshared:one", "add total");
        bench.run(10, |arm, _| if arm.starts_with("unshared") { 2.0 } else { 25.0 });
        assert_eq!(kinds(&bench.analyse().diagnosis), ["none"]);
    }

    #[test]
    fn a_true_sharing_line_is_not_also_false_sharing() {
        let both = vec![Spot::data("total", 0, &[0, 1], &[]), Spot::data("own", 8, &[0], &[])];
        let apart = vec![Spot::data("total", 0, &[0, 1], &[]), Spot::data("own", 64, &[0], &[])];
        let mut bench = Bench::new(&["together", "apart"]).with_layout("together", both).with_layout("apart", apart);
        bench.run(10, |arm, _| if arm == "apart" { 20.0 } else { 30.0 });
        assert_eq!(kinds(&bench.analyse().diagnosis), ["none"]);
    }

    /// Worker 0 (`writer`) writes `a`, worker 1 (`reader`) reads `b`.
    fn reader_beside_writer(reader_ns: [f64; 2], writer_ns: [f64; 2]) -> Bench {
        let near = spots([0, 8], (&[0], &[]), (&[], &[1]));
        let far = spots([0, 128], (&[0], &[]), (&[], &[1]));
        let mut bench = Bench::with_roles(&["near", "far"], &["writer", "reader"]);
        bench = bench.with_layout("near", near).with_layout("far", far);
        bench.run(10, |_, _| 1.0);
        for o in &mut bench.observations {
            let place = usize::from(o.arm == "far");
            o.ns_per_op = Some(if o.role == "reader" { reader_ns[place] } else { writer_ns[place] });
        }
        bench
    }

    #[test]
    fn a_reader_slowed_by_its_neighbours_writes_is_reader_invalidation() {
        let found = reader_beside_writer([12.0, 0.5], [3.0, 1.0]).analyse().diagnosis;
        assert_eq!(
            kinds(&found),
            ["reader_invalidation"],
            "the headline role is the writer, the reader's figure decides"
        );
        let gain = found[0].expected_gain.as_ref().unwrap();
        assert!((gain.ratio.median - 24.0).abs() < 1e-6);
        assert_eq!(found[0].roles, ["writer", "reader"]);
        assert!(found[0].text.contains("`reader`"), "{}", found[0].text);
    }

    #[test]
    fn where_only_the_writer_pays_it_is_false_sharing() {
        assert_eq!(kinds(&reader_beside_writer([0.5, 0.5], [3.0, 1.0]).analyse().diagnosis), ["false_sharing"]);
        assert_eq!(kinds(&reader_beside_writer([0.5, 0.5], [1.0, 1.0]).analyse().diagnosis), ["none"]);
    }

    #[test]
    fn lines_of_one_pair_are_adjacent_line_if_parting_them_pays() {
        let run = |pair_ns: f64| {
            let mut bench = Bench::new(&["padded-64", "padded-128"]);
            bench.run(10, |arm, _| if arm == "padded-128" { 2.0 } else { pair_ns });
            bench.analyse().diagnosis
        };
        let found = run(2.6);
        assert_eq!(kinds(&found), ["adjacent_line"]);
        assert_eq!(
            (found[0].severity, found[0].expected_gain.as_ref().unwrap().arm.as_str()),
            (Severity::Medium, "padded-128")
        );
        assert_eq!(kinds(&run(2.04)), ["none"]);
        assert_eq!(kinds(&run(1.5)), ["none"]);
    }

    #[test]
    fn a_lock_alone_is_none_and_says_what_was_looked_at() {
        let lock = vec![Spot::lock("m", 0, &[0, 1])];
        let mut bench = Bench::new(&["mutex"]).with_unshared().with_lock("m");
        bench = bench.with_layout("mutex", lock.clone()).with_layout("unshared:mutex", lock);
        bench.run(10, |arm, _| if arm.starts_with("unshared") { 10.0 } else { 60.0 });
        let found = bench.analyse().diagnosis;
        assert_eq!(kinds(&found), ["none"]);
        assert!(found[0].text.contains("`m`"), "{}", found[0].text);
    }

    #[test]
    fn words_that_workers_hand_over_are_named_where_nothing_measures_their_cost() {
        let ball = vec![Spot::data("ping", 0, &[0], &[1]), Spot::data("pong", 64, &[1], &[0])];
        let mut bench = Bench::new(&["ball"]).with_layout("ball", ball);
        bench.run(10, |_, _| 450.0);
        let found = bench.analyse().diagnosis;
        assert_eq!(kinds(&found), ["none"]);
        assert!(found[0].text.contains("`ping` and `pong`"), "{}", found[0].text);
    }

    #[test]
    fn an_effect_below_the_resolution_is_not_diagnosed() {
        let mut bench = Bench::new(&["packed", "padded-64"]);
        bench.run(10, |arm, block| match arm {
            "packed" => 4.0,
            "control" => [2.0, 8.0][block as usize % 2],
            _ => 3.0,
        });
        assert_eq!(kinds(&bench.analyse().diagnosis), ["none"]);
    }

    #[test]
    fn an_unresolved_run_says_that_it_cannot_tell() {
        let mut bench = two_writers(23.0, 2.3);
        bench.observations.iter_mut().for_each(|o| o.spoiled.push("lost_time".into()));
        let findings = bench.analyse();
        assert!(!findings.conclusive);
        assert_eq!(kinds(&findings.diagnosis), ["none"]);
        assert!(findings.diagnosis[0].text.contains("cannot tell"), "{}", findings.diagnosis[0].text);
    }

    #[test]
    fn the_worst_arm_speaks_and_the_others_are_named() {
        let mut bench = Bench::new(&["packed", "shifted", "padded-64"]);
        bench.run(10, |arm, _| match arm {
            "packed" | "control" => 10.0,
            "shifted" => 30.0,
            _ => 2.0,
        });
        let found = bench.analyse().diagnosis;
        assert_eq!(kinds(&found), ["false_sharing"]);
        assert_eq!(found[0].arms, ["shifted", "packed"]);
        assert!((found[0].expected_gain.as_ref().unwrap().ratio.median - 15.0).abs() < 1e-6);
    }
}

//! A run as points in time: what a database of time series takes, and the rows of a tidy table.
//!
//! Nothing is chosen by hand: a point is an object of `run.json`, its fields are that object's figures and words under
//! their own names, and its tags say whose they are. A key that is added to `run.json` is exported without a change
//! here.

use crate::export::tag::{Tag, tag, with};
use crate::export::timeline;
use crate::saved::Saved;
use record::{ArmSummary, Observation, Run};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::time::UNIX_EPOCH;

/// What is known of one thing at one instant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    /// What the point is of: `lab_arm`, ….
    pub(crate) measurement: String,
    /// Whose: with the measurement the series that the point belongs to. None is empty, none there twice.
    pub(crate) tags: Vec<Tag>,
    /// Figures and words, at least one. What was not had is not among them.
    pub(crate) fields: Vec<(String, Field)>,
    /// Nanoseconds since 1970 in UTC: the run's start, and in a timeline how long after its window's opening.
    pub(crate) time_ns: i64,
}

/// A figure or a word.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Field {
    /// A count.
    Integer(i64),
    /// Anything else that is measured.
    Float(f64),
    /// Words.
    Text(String),
    /// Yes or no.
    Flag(bool),
}

/// A run's points.
#[derive(Debug)]
pub(crate) struct Exported {
    /// All of them; no two of one series at one instant.
    pub(crate) points: Vec<Point>,
    /// What of a timeline is in no point, in words.
    pub(crate) unread: Vec<String>,
}

/// Why a run has no points.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PointError {
    /// The start is no time.
    #[error("the run's `started_utc` is `{0}`, which is no time between 1970 and 2262 as RFC 3339 writes it")]
    Started(String),
    /// A count that no database of time series holds.
    #[error("`{key}` of a `{measurement}` is {value}: points hold counts up to 2^63 - 1")]
    TooLarge { measurement: String, key: String, value: u64 },
}

/// The points of a run.
///
/// # Errors
/// [`PointError`]: what in the record cannot be a point.
pub(crate) fn points(saved: &Saved) -> Result<Exported, PointError> {
    let run = &saved.run;
    let started_ns = started_ns(&run.started_utc)?;
    let mut series = Series { started_ns, of_run: of_run(run), points: Vec::new(), taken: HashSet::new() };
    series.run(run)?;
    for arm in &run.arms {
        series.arm(arm)?;
    }
    for seen in &run.observations {
        series.observation(seen, run.arms.iter().find(|arm| arm.name == seen.arm))?;
    }
    series.findings(run)?;
    let unread = series.timelines(run)?;
    Ok(Exported { points: series.points, unread })
}

fn started_ns(started_utc: &str) -> Result<i64, PointError> {
    let since_epoch = humantime::parse_rfc3339(started_utc).ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
    let ns = since_epoch.and_then(|since| i64::try_from(since.as_nanos()).ok());
    ns.ok_or_else(|| PointError::Started(started_utc.to_owned()))
}

/// What tells runs apart. A run is known by its start and seed, so that it has one name wherever its folder lies, and
/// exporting it twice writes the same points.
fn of_run(run: &Run) -> Vec<Tag> {
    let path = Path::new(&run.scenario.path);
    let scenario = path.file_stem().map_or_else(|| run.scenario.path.clone(), |stem| stem.to_string_lossy().into());
    vec![
        tag("run", format!("{}-{}", run.started_utc, run.seed)),
        tag("scenario", scenario),
        tag("host", &run.host.hostname),
    ]
}

fn of_arm(arm: &ArmSummary) -> Vec<Tag> {
    let kind = json(&arm.kind);
    let mut tags =
        vec![tag("arm", &arm.name), tag("kind", kind.as_str().unwrap_or_default()), tag("variant", &arm.variant)];
    tags.extend(arm.sweep.iter().map(|(key, at)| tag(&format!("sweep_{key}"), at)));
    tags
}

/// A part of a record as `run.json` has it. Its types decide which of its figures are counts.
fn json(part: &impl Serialize) -> Value {
    serde_json::to_value(part).expect("records have string keys and no failing serialisers")
}

/// The points made so far.
struct Series {
    started_ns: i64,
    of_run: Vec<Tag>,
    points: Vec<Point>,
    taken: HashSet<(String, Vec<Tag>, i64)>,
}

impl Series {
    /// Adds a point at the run's start.
    fn add(&mut self, measurement: &str, tags: Vec<Tag>, part: &Value) -> Result<(), PointError> {
        let fields = fields(measurement, part, &tags)?;
        self.add_at(measurement, tags, fields, 0);
        Ok(())
    }

    /// Adds a point. To a server two points of one series at one instant are one: the later moves on by a nanosecond.
    fn add_at(&mut self, measurement: &str, tags: Vec<Tag>, fields: Vec<(String, Field)>, offset_ns: i64) {
        if fields.is_empty() {
            return;
        }
        let known = self.of_run.iter().cloned().chain(tags).filter(|(_, value)| !value.is_empty());
        let tags: Vec<Tag> = known.collect();
        let mut time_ns = self.started_ns.saturating_add(offset_ns);
        while !self.taken.insert((measurement.to_owned(), tags.clone(), time_ns)) {
            time_ns += 1;
        }
        self.points.push(Point { measurement: measurement.to_owned(), tags, fields, time_ns });
    }

    fn run(&mut self, run: &Run) -> Result<(), PointError> {
        let bare = Run {
            arms: Vec::new(),
            observations: Vec::new(),
            scenario: record::ScenarioText { text: String::new(), ..run.scenario.clone() },
            ..run.clone()
        };
        let mut whole = json(&bare);
        without(&mut whole["scenario"], &["text"]);
        // Beyond what a point's integers hold, and no quantity.
        whole["seed"] = Value::String(run.seed.to_string());
        self.add("lab_run", Vec::new(), &whole)?;
        for regime in &run.method.regimes {
            let mut row = json(regime);
            without(&mut row, &["number"]);
            self.add("lab_regime", vec![tag("regime", regime.number)], &row)?;
        }
        Ok(())
    }

    fn arm(&mut self, arm: &ArmSummary) -> Result<(), PointError> {
        let tags = of_arm(arm);
        let mut row = json(arm);
        without(&mut row, &["name", "sweep", "headline_role", "modelled", "timeline"]);
        self.add("lab_arm", with(&tags, [tag("role", &arm.headline_role)]), &row)?;
        for role in &arm.roles {
            let of_role = with(&tags, [tag("role", &role.role)]);
            let mut row = json(role);
            without(&mut row, &["counters"]);
            self.add("lab_role", of_role.clone(), &row)?;
            for (name, counter) in &role.counters {
                self.add("lab_counter", with(&of_role, [tag("counter", name)]), &json(counter))?;
            }
        }
        for worker in &arm.workers {
            let mut row = json(worker);
            without(&mut row, &["index"]);
            self.add("lab_worker", with(&tags, [tag("role", &worker.role), tag("worker", worker.index)]), &row)?;
        }
        self.locks(arm, &tags)?;
        self.modelled(arm, &tags)
    }

    fn locks(&mut self, arm: &ArmSummary, tags: &[Tag]) -> Result<(), PointError> {
        for lock in &arm.locks {
            let of_lock = with(tags, [tag("lock", &lock.lock), tag("lock_kind", &lock.kind)]);
            let mut row = json(lock);
            without(&mut row, &["kind"]);
            self.add("lab_lock", of_lock.clone(), &row)?;
            for own in &lock.by_worker {
                let of_worker = with(&of_lock, [tag("role", &own.role), tag("worker", own.worker)]);
                self.add("lab_lock_worker", of_worker, &json(own))?;
            }
        }
        Ok(())
    }

    /// What the model computed stands under names of its own, never where a measured figure is looked for.
    fn modelled(&mut self, arm: &ArmSummary, tags: &[Tag]) -> Result<(), PointError> {
        let Some(modelled) = &arm.modelled else { return Ok(()) };
        let tags = with(tags, [tag("machine", &modelled.machine)]);
        for role in &modelled.roles {
            let mut row = json(role);
            without(&mut row, &["counters"]);
            self.add("lab_modelled_role", with(&tags, [tag("role", &role.role)]), &row)?;
        }
        for worker in &modelled.workers {
            let mut row = json(worker);
            without(&mut row, &["counters", "index"]);
            let of_worker = with(&tags, [tag("role", &worker.role), tag("worker", worker.index)]);
            self.add("lab_modelled_worker", of_worker, &row)?;
        }
        for lock in &modelled.locks {
            let mut row = json(lock);
            without(&mut row, &["kind"]);
            let of_lock = with(&tags, [tag("lock", &lock.lock), tag("lock_kind", &lock.kind)]);
            self.add("lab_modelled_lock", of_lock, &row)?;
        }
        for line in &modelled.lines {
            let mut row = json(line);
            without(&mut row, &["index", "owners"]);
            self.add("lab_modelled_line", with(&tags, [tag("line", line.index)]), &row)?;
        }
        Ok(())
    }

    fn observation(&mut self, seen: &Observation, arm: Option<&ArmSummary>) -> Result<(), PointError> {
        let mut tags = arm.map_or_else(|| vec![tag("arm", &seen.arm)], of_arm);
        tags.extend([tag("role", &seen.role), tag("worker", seen.worker), tag("block", seen.block)]);
        tags.extend(seen.regime.map(|regime| tag("regime", regime)));
        let mut row = json(seen);
        without(&mut row, &["counters"]);
        // An empty list of reasons would be left out, and with it that the repetition counts.
        row["counts"] = Value::Bool(seen.spoiled.is_empty());
        self.add("lab_repetition", tags.clone(), &row)?;
        for (name, reading) in &seen.counters {
            self.add("lab_repetition_counter", with(&tags, [tag("counter", name)]), &json(reading))?;
        }
        for lock in &seen.locks {
            self.add("lab_repetition_lock", with(&tags, [tag("lock", &lock.lock)]), &json(lock))?;
        }
        Ok(())
    }

    fn findings(&mut self, run: &Run) -> Result<(), PointError> {
        for expect in &run.expect {
            self.add("lab_expect", vec![tag("claim", &expect.claim)], &json(expect))?;
        }
        for (number, prediction) in run.predictions.iter().enumerate() {
            let tags = vec![tag("prediction", &prediction.text), tag("number", number)];
            let mut row = json(prediction);
            without(&mut row, &["text"]);
            self.add("lab_prediction", tags, &row)?;
        }
        for (number, diagnosis) in run.diagnosis.iter().enumerate() {
            let tags = vec![tag("diagnosis", &diagnosis.kind), tag("number", number)];
            let mut row = json(diagnosis);
            without(&mut row, &["kind"]);
            self.add("lab_diagnosis", tags.clone(), &row)?;
            for evidence in &diagnosis.evidence {
                let mut row = json(evidence);
                without(&mut row, &["name"]);
                self.add("lab_evidence", with(&tags, [tag("evidence", &evidence.name)]), &row)?;
            }
        }
        for warning in &run.warnings {
            let mut row = json(warning);
            without(&mut row, &["id"]);
            self.add("lab_warning", vec![tag("warning", &warning.id)], &row)?;
        }
        Ok(())
    }

    /// What timelines say. Gives in words what is in no point.
    fn timelines(&mut self, run: &Run) -> Result<Vec<String>, PointError> {
        let mut unread = Vec::new();
        for arm in &run.arms {
            let found = timeline::rows(&json(&arm.timeline));
            unread.extend(found.unread.into_iter().map(|what| format!("{what} of arm `{}`", arm.name)));
            for row in found.rows {
                let tags: Vec<Tag> = of_arm(arm).into_iter().chain(row.tags).collect();
                let fields = fields(&row.measurement, &Value::Object(row.figures), &tags)?;
                self.add_at(&row.measurement, tags, fields, row.offset_ns);
            }
        }
        Ok(unread)
    }
}

/// Takes keys away that are no fields: a tag says them, or points of their own.
fn without(part: &mut Value, keys: &[&str]) {
    if let Value::Object(map) = part {
        keys.iter().for_each(|key| drop(map.remove(*key)));
    }
}

/// An object's figures and words by name, those of objects in it under joined names. Lists of words become words with
/// semicolons between them; other lists are no fields, nor is what a tag of the point says already.
fn fields(measurement: &str, part: &Value, tags: &[Tag]) -> Result<Vec<(String, Field)>, PointError> {
    let mut found = Vec::new();
    if let Value::Object(map) = part {
        gather(measurement, map, None, &mut found)?;
    }
    let said: BTreeSet<&str> = tags.iter().map(|(name, _)| name.as_str()).collect();
    found.retain(|(name, _)| !said.contains(name.as_str()));
    Ok(found)
}

fn gather(
    measurement: &str,
    map: &Map<String, Value>,
    parent: Option<&str>,
    found: &mut Vec<(String, Field)>,
) -> Result<(), PointError> {
    let times = map.contains_key("p999");
    for (key, value) in map {
        let name = parent.map_or_else(|| key.clone(), |parent| joined(parent, key, times));
        match value {
            Value::Null => {}
            Value::Bool(flag) => found.push((name, Field::Flag(*flag))),
            Value::String(text) => found.push((name, Field::Text(text.clone()))),
            Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(count), ..) => found.push((name, Field::Integer(count))),
                (None, Some(value), _) => {
                    return Err(PointError::TooLarge { measurement: measurement.to_owned(), key: name, value });
                }
                (None, None, figure) => found.extend(figure.map(|figure| (name, Field::Float(figure)))),
            },
            Value::Array(list) => found.extend(words(list).map(|text| (name, Field::Text(text)))),
            Value::Object(inner) => gather(measurement, inner, Some(&name), found)?,
        }
    }
    Ok(())
}

/// `ns_per_op` and `median` are `ns_per_op_median`. Of a distribution of times the unit goes to the end, where
/// expectations write it too, and its count has none: `latency_ns` and `p99` are `latency_p99_ns`, `wait_ns_all` and
/// `count` are `wait_all_count`.
fn joined(parent: &str, key: &str, times: bool) -> String {
    let unit = if key == "count" { "" } else { "_ns" };
    match parent.replacen("_ns", "", 1) {
        bare if times && bare != parent => format!("{bare}_{key}{unit}"),
        _ => format!("{parent}_{key}"),
    }
}

fn words(list: &[Value]) -> Option<String> {
    let words: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
    words.filter(|words| !words.is_empty()).map(|words| words.join(";"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing;
    use serde_json::json;
    use std::path::PathBuf;

    fn saved(run: &Run) -> Saved {
        let text = serde_json::to_vec_pretty(run).unwrap();
        Saved { path: PathBuf::from("run.json"), run: serde_json::from_slice(&text).unwrap(), text }
    }

    fn all(run: &Run) -> Vec<Point> {
        points(&saved(run)).unwrap().points
    }

    /// The points with these tags, among others.
    fn find<'a>(points: &'a [Point], measurement: &str, tags: &[(&str, &str)]) -> Vec<&'a Point> {
        let has = |p: &Point, (name, value): &(&str, &str)| p.tags.iter().any(|(n, v)| n == name && v == value);
        points.iter().filter(|p| p.measurement == measurement && tags.iter().all(|tag| has(p, tag))).collect()
    }

    fn field<'a>(point: &'a Point, name: &str) -> Option<&'a Field> {
        point.fields.iter().find(|(found, _)| found == name).map(|(_, value)| value)
    }

    #[test]
    fn figures_are_those_of_the_record_under_its_names() {
        let run = testing::open_loop();
        let points = all(&run);
        for seen in &run.observations {
            let (worker, block) = (seen.worker.to_string(), seen.block.to_string());
            let found = find(&points, "lab_repetition", &[("arm", &seen.arm), ("worker", &worker), ("block", &block)]);
            let [point] = found[..] else { panic!("{} points of one observation", found.len()) };
            assert_eq!(field(point, "ns_per_op"), seen.ns_per_op.map(Field::Float).as_ref());
            assert_eq!(field(point, "passes"), Some(&Field::Integer(seen.passes as i64)));
            assert_eq!(field(point, "counts"), Some(&Field::Flag(seen.spoiled.is_empty())));
            let why = (!seen.spoiled.is_empty()).then(|| Field::Text(seen.spoiled.join(";")));
            assert_eq!(field(point, "spoiled"), why.as_ref());
            let reading =
                find(&points, "lab_repetition_counter", &[("arm", &seen.arm), ("counter", "l1d_load_misses")]);
            assert_eq!(field(reading[0], "value"), None, "what was not counted is not zero");
            assert_eq!(field(reading[0], "state"), Some(&Field::Text("unsupported".to_owned())));
        }
        let arm = find(&points, "lab_arm", &[("arm", "packed")])[0];
        assert_eq!(field(arm, "ns_per_op_median"), run.arms[0].ns_per_op.map(|ns| Field::Float(ns.median)).as_ref());
        assert_eq!(field(arm, "repetitions_spoiled"), Some(&Field::Integer(1)));
        assert_eq!(field(arm, "bytes"), Some(&Field::Integer(16)));
        let role = find(&points, "lab_role", &[("arm", "packed"), ("role", "counter")])[0];
        assert_eq!(field(role, "latency_p99_ns"), Some(&Field::Integer(90_111)));
        assert_eq!(field(role, "latency_count"), Some(&Field::Integer(40_012)));
        assert_eq!(field(role, "service_corrected_max_ns"), Some(&Field::Integer(301_055)));
        assert_eq!(field(role, "contention_solo_median"), Some(&Field::Float(70.0)));
        let lock = find(&points, "lab_lock", &[("arm", "packed"), ("lock", "m")])[0];
        let waits = run.arms[0].locks[0].wait_ns_all.unwrap();
        assert_eq!(field(lock, "wait_all_p999_ns"), Some(&Field::Integer(waits.p999 as i64)));
        assert_eq!(field(lock, "wait_all_count"), Some(&Field::Integer(waits.count as i64)));
        let whole = find(&points, "lab_run", &[("scenario", "false_sharing"), ("run", "2026-11-24T12:34:56Z-42")])[0];
        assert_eq!(field(whole, "scenario_title"), Some(&Field::Text(run.scenario.title.clone())));
        assert_eq!((field(whole, "scenario_text"), field(whole, "seed")), (None, Some(&Field::Text("42".to_owned()))));
        assert_eq!(whole.time_ns, 1_795_523_696_000_000_000);
    }

    #[test]
    fn every_part_of_a_run_has_points_and_no_two_are_one_to_a_server() {
        let mut run = testing::modelled();
        run.seed = u64::MAX;
        // The same evidence twice, which tags alone do not tell apart.
        let again = run.diagnosis[0].evidence[0].clone();
        run.diagnosis[0].evidence.push(again);
        run.arms[0].sweep.insert("kind".to_owned(), "ticket".to_owned());
        run.arms[0].locks = testing::mutex().arms[0].locks.clone();
        let points = all(&run);
        let mut known = HashSet::new();
        for point in &points {
            assert!(known.insert((&point.measurement, &point.tags, point.time_ns)), "twice: {point:?}");
            let names: Vec<&String> =
                point.tags.iter().map(|(n, _)| n).chain(point.fields.iter().map(|(n, _)| n)).collect();
            assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "a name twice: {point:?}");
            assert!(!point.fields.is_empty() && point.tags.iter().all(|(_, value)| !value.is_empty()));
        }
        let measurements: BTreeSet<&str> = points.iter().map(|p| p.measurement.as_str()).collect();
        for part in [
            "run",
            "regime",
            "arm",
            "role",
            "counter",
            "worker",
            "lock",
            "repetition",
            "expect",
            "prediction",
            "diagnosis",
        ] {
            assert!(measurements.contains(format!("lab_{part}").as_str()), "{part}: {measurements:?}");
        }
        assert!(measurements.contains("lab_modelled_role") && measurements.contains("lab_modelled_line"));
        assert_eq!(find(&points, "lab_arm", &[("sweep_kind", "ticket"), ("kind", "variant")]).len(), 1);
        let evidence: usize = run.diagnosis.iter().map(|d| d.evidence.len()).sum();
        assert_eq!(find(&points, "lab_evidence", &[]).len(), evidence);
    }

    #[test]
    fn a_timeline_has_points_at_its_own_instants() {
        let bucket = |start_ns: f64, count: u64, p99_ns: f64| json!({"start_ns": start_ns, "count": count, "min_ns": 300.0, "p50_ns": 310.0, "p99_ns": p99_ns, "max_ns": 1e4});
        let mut timeline = json!({"block": 1, "bucket_ns": 1e6, "workers": [
            {"worker": 0, "role": "victim", "buckets": [bucket(2e6, 12, 431.5), bucket(3e6, 7, 1e4)], "calls": []},
            {"worker": 1, "role": "culprit", "buckets": [],
             "calls": [{"step": "punch shared", "start_ns": 2_400_000.5, "end_ns": 2_409_000.5}]},
        ]});
        for worker in timeline["workers"].as_array_mut().unwrap() {
            (worker["stalls"], worker["stalls_left_out"], worker["calls_left_out"]) = (json!([]), json!(0), json!(3));
        }
        let mut run = testing::false_sharing();
        run.arms[0].timeline = Some(serde_json::from_value(timeline).unwrap());
        let exported = points(&saved(&run)).unwrap();
        assert_eq!(exported.unread, Vec::<String>::new());
        let start = 1_795_523_696_000_000_000;
        let tags = [("arm", "packed"), ("role", "victim"), ("worker", "0"), ("block", "1")];
        let buckets = find(&exported.points, "lab_timeline_buckets", &tags);
        assert_eq!(buckets.iter().map(|p| p.time_ns).collect::<Vec<_>>(), [start + 2_000_000, start + 3_000_000]);
        assert_eq!(field(buckets[0], "p99_ns"), Some(&Field::Float(431.5)));
        assert_eq!(field(buckets[1], "count"), Some(&Field::Integer(7)));
        let left_out = find(&exported.points, "lab_timeline_workers", &[("role", "culprit"), ("block", "1")]);
        assert_eq!(field(left_out[0], "calls_left_out"), Some(&Field::Integer(3)));
        let calls = find(&exported.points, "lab_timeline_calls", &[("step", "punch shared"), ("worker", "1")]);
        assert_eq!((calls.len(), calls[0].time_ns), (1, start + 2_400_000));
        assert_eq!(field(calls[0], "end_ns"), Some(&Field::Float(2_409_000.5)));
    }

    #[test]
    fn what_no_point_can_say_is_an_error_that_names_it() {
        let mut run = testing::mutex();
        run.observations[0].passes = u64::MAX;
        let said = points(&saved(&run)).unwrap_err().to_string();
        assert!(said.contains("`passes` of a `lab_repetition` is 18446744073709551615"), "{said}");
        let mut run = testing::mutex();
        for wrong in ["yesterday", "1969-12-31T23:59:59Z", "2300-01-01T00:00:00Z"] {
            wrong.clone_into(&mut run.started_utc);
            assert!(points(&saved(&run)).unwrap_err().to_string().contains(wrong));
        }
    }
}

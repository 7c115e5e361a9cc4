//! Whether every figure of a run's JSON says where it comes from: what is measured and what is modelled each in its own
//! place. Read by the tests of the page too, on runs made by hand.

use serde_json::Value;

/// Every place in `run.json` where a count, or what a diagnosis rests on, stands without its source. Empty where all is
/// as it should be.
pub(crate) fn unsourced(run: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(run, "run", &mut found);
    for diagnosis in all(&run["diagnosis"]) {
        all(&diagnosis["evidence"]).iter().filter(|one| !has_source(one)).for_each(|one| found.push(one.to_string()));
    }
    for event in all(&run["events"]) {
        let said = |key: &str| event[key].as_str().is_some_and(|text| !text.is_empty());
        let counted_by = matches!(event["counted_by"].as_str(), Some("processor" | "kernel"));
        if !(["name", "shown", "counts", "source", "cpus"].into_iter().all(said) && counted_by) {
            found.push(event.to_string());
        }
    }
    found
}

fn all(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn has_source(evidence: &Value) -> bool {
    let source = evidence["source"].as_str().unwrap_or_default();
    let of = |kind: &str| source == kind || source.starts_with(&format!("{kind}, "));
    match evidence["value"].is_null() {
        true => source.strip_prefix("missing: ").is_some_and(|why| !why.is_empty()),
        false => ["measured", "modelled", "layout"].into_iter().any(of),
    }
}

/// Looks at every object and list, however deep.
fn walk(value: &Value, place: &str, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| walk(item, &format!("{place}[{index}]"), found));
        }
        Value::Object(items) => {
            for (key, item) in items {
                let place = format!("{place}.{key}");
                match key.as_str() {
                    "counters" => counters(item, &place, found),
                    "modelled" if is_arm(&place) => modelled_arm(item, &place, found),
                    // A figure of a counter outside `counters` could not say what it is.
                    "per_op" | "per_second" | "modelled" => found.push(place),
                    _ => walk(item, &place, found),
                }
            }
        }
        _ => {}
    }
}

/// `run.arms[0].modelled`: what a model made of an arm.
fn is_arm(place: &str) -> bool {
    place.strip_prefix("run.arms[").and_then(|rest| rest.split_once("].")).is_some_and(|(_, key)| key == "modelled")
}

/// All in it is modelled: nothing there may call itself measured, and it names the machine.
fn modelled_arm(arm: &Value, place: &str, found: &mut Vec<String>) {
    let counters = ["roles", "workers"].into_iter().flat_map(|of| all(&arm[of]));
    let figures = counters.flat_map(|of| of["counters"].as_object().into_iter().flat_map(|counters| counters.values()));
    let sound = figures.into_iter().all(|figure| figure.is_object() && is_modelled(figure));
    if !sound || arm["machine"].as_str().is_none_or(str::is_empty) {
        found.push(place.to_owned());
    }
}

fn counters(value: &Value, place: &str, found: &mut Vec<String>) {
    let Some(counters) = value.as_object() else { return found.push(place.to_owned()) };
    for (name, counter) in counters {
        let sound = match counter.get("measured") {
            Some(measured) => {
                let keys = counter.as_object().into_iter().flat_map(|of| of.keys());
                keys.into_iter().all(|key| key == "measured" || key == "modelled")
                    && is_reading(measured)
                    && is_modelled(&counter["modelled"])
            }
            // A single worker's reading, in `observations`: measured as a matter of course.
            None => place.starts_with("run.observations") && is_reading(counter),
        };
        if !sound {
            found.push(format!("{place}.{name}: {counter}"));
        }
    }
}

/// A state, and figures in those states alone that have them.
fn is_reading(reading: &Value) -> bool {
    let figures = ["value", "per_op", "per_second"].into_iter().any(|key| reading[key].is_number());
    let said = |key: &str| reading[key].as_str().is_some_and(|text| !text.is_empty());
    match reading["state"].as_str() {
        Some("counted") => reading["value"].is_u64(),
        Some("scaled") => reading["value"].is_u64() && reading["ratio"].as_f64().is_some_and(|r| 0.0 < r && r < 1.0),
        Some("unsupported") => !figures && said("why"),
        Some("denied" | "not_scheduled") => !figures && said("why") && said("cure"),
        _ => false,
    }
}

fn is_modelled(modelled: &Value) -> bool {
    modelled.is_null()
        || modelled["value"].is_number() && modelled["per_op"].is_number() && modelled.get("state").is_none()
}

//! A great many bent inputs through every door. `PROPTEST_CASES=1000000` is the long form; see CONTRIBUTING.md for how to
//! repeat what was found.

use hostile::sound::{BTF, EXERCISES, MACHINES, PROGRAMS, RUN, SCENARIOS, Sound, TOPOLOGY};
use hostile::{Input, bend, bent, doors, through};
use proptest::prelude::{Strategy, any, prop};
use serde_json::Value;

/// Programs; `None`, having said why, where there is no compiler.
fn programs() -> Option<&'static [Sound]> {
    if PROGRAMS.is_empty() {
        testing::skip("gcc cannot be run");
        return None;
    }
    Some(&PROGRAMS)
}

/// A JSON text, bent as JSON.
fn bent_json(sound: &'static [Sound]) -> impl Strategy<Value = Input> {
    let value: Value = serde_json::from_slice(&sound[0].bytes).expect("sound JSON");
    bent(sound, move |_, moves| bend::json(&value, moves))
}

#[test]
fn scenarios() {
    through("scenarios", bent(&SCENARIOS, |of, moves| bend::text(of, &SCENARIOS, moves)), doors::scenario);
}

#[test]
fn machines() {
    through("machines", bent(&MACHINES, |of, moves| bend::text(of, &MACHINES, moves)), doors::machine);
}

#[test]
fn exercises() {
    through("exercises", bent(&EXERCISES, |of, moves| bend::text(of, &EXERCISES, moves)), doors::exercise);
}

#[test]
fn runs() {
    through("runs", bent_json(&RUN), doors::run);
}

#[test]
fn runs_with_text_changed() {
    // A line a value, so that a line is a value to change.
    let value: Value = serde_json::from_slice(&RUN[0].bytes).expect("sound JSON");
    let bytes = serde_json::to_vec_pretty(&value).expect("sound JSON");
    let sound = [Sound { name: "run.json".into(), bytes, read: Vec::new() }];
    through("runs with text changed", bent(&sound, |of, moves| bend::text(of, &sound, moves)), doors::run);
}

#[test]
fn topologies() {
    through("topologies", bent_json(&TOPOLOGY), doors::topology);
}

#[test]
fn programs_to_import() {
    let Some(programs) = programs() else { return };
    through("programs to import", bent(programs, bend::bytes), doors::structs);
}

#[test]
fn btf() {
    through("btf", bent(&BTF, bend::bytes), doors::structs);
}

/// Types that refer to each other in every way, loops among them.
#[test]
fn btf_of_any_types() {
    let types = prop::collection::vec((0_u32..22, 0_u32..12, 0_u32..4, any::<[u32; 12]>()), 1..12);
    through("btf of any types", types.prop_map(|types| Input::made(doors::any_btf(&types))), doors::structs);
}

#[test]
fn programs_that_are_watched() {
    let Some(programs) = programs() else { return };
    through("programs that are watched", bent(programs, bend::bytes), doors::symbols);
}

#[test]
fn segments() {
    let image = doors::sound_segment();
    let sound = [Sound { name: "segment".into(), read: vec![0..84, 128..152, 512..544], bytes: image }];
    through("segments", bent(&sound, bend::bytes), doors::segment);
}

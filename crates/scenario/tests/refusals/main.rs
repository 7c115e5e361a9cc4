//! Every refusal as it is printed: what is wrong, where, the text underlined, and the cure.
//!
//! Each test edits one sound scenario; [`printed`] gives the message as a terminal without colour would show it. They stand
//! by what of a scenario is refused.

mod arms;
mod claims;
mod fields;
mod file;
mod flags;
mod measure;
mod regions;
mod roles;
mod steps;

const SOUND: &str = r#"title = "Lab"
question = "What?"

[measure]
window = "10ms"
warm_up = "2ms"
repetitions = 4

[field.hits]
type = "u64"
each = "worker"

[field.total]
type = "u64"

[lock.m]
kind = "pthread"

[[variant]]
name = "packed"

[[variant]]
name = "padded"
placement = { pad = 64 }

[[role]]
name = "counter"
workers = 2
loop = ["add hits[me]"]

[[expect]]
claim = "ns_per_op(packed) >= 3 * ns_per_op(padded)"
"#;

/// The message for the sound scenario after `edits` (text and its replacement) and under `flags` (path and value).
fn printed(edits: &[(&str, &str)], flags: &[(&str, &str)]) -> String {
    let mut text = SOUND.to_owned();
    for (from, to) in edits {
        assert!(text.contains(from), "the scenario has no {from:?}");
        text = text.replacen(from, to, 1);
    }
    let flags: Vec<(String, String)> =
        flags.iter().map(|(path, value)| (path.to_string(), value.to_string())).collect();
    scenario::parse_with("lab.toml", &text, &flags).expect_err("refused").render(false)
}

/// A message that is written here with its longest lines folded: `\` ends a line that goes on in the next, without the
/// spaces that begin it.
fn unfolded(text: &str) -> String {
    let mut parts = text.split("\\\n");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |whole, part| whole + part.trim_start_matches(' '))
}

#[test]
fn the_scenario_that_the_others_edit_is_sound() {
    let loaded = scenario::parse("lab.toml", SOUND).unwrap_or_else(|refusal| panic!("{}", refusal.render(false)));
    assert_eq!(loaded.plan.arms.len(), 2);
}

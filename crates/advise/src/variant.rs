//! A candidate as a variant that can be added to its scenario.

use crate::candidate::Candidate;
use std::fmt::Write;

/// The `[[variant]]` that runs this candidate, as TOML behind what the scenario has. It is called `advised-NAME`: the
/// scenario may have a variant of the candidate's own name.
pub fn toml(candidate: &Candidate) -> String {
    let mut text = format!("[[variant]]\nname      = \"advised-{}\"\nplacement = {{ offsets = {{ ", candidate.name);
    let offsets: Vec<String> =
        candidate.offsets.iter().map(|(name, list)| format!("{name} = {}", offsets(list))).collect();
    text.push_str(&offsets.join(", "));
    text.push_str(" } }\n");
    if !candidate.set.is_empty() {
        text.push_str("[variant.set]\n");
    }
    for (path, value) in &candidate.set {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{path:?} = {value}");
    }
    text
}

fn offsets(list: &[u64]) -> String {
    match list {
        [only] => only.to_string(),
        several => format!("{several:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidate::candidates;
    use crate::units::tests::arm_of;

    #[test]
    fn every_candidate_reads_back_as_the_same_arm() {
        let text = r#"
[field.total]
type = "u64"
[field.slot]
type = "u32"
each = "worker"
[lock.m]
kind = "tas"
[[role]]
name = "counter"
workers = 2
loop = ["add total", "bump slot[me]", "lock m", "unlock m"]
"#;
        let arm = arm_of(text);
        let usage = plan::usage(&arm.case).unwrap();
        let placed = usage.items.iter().zip([0, 8, 12, 64]).map(|(item, offset)| plan::Placed {
            field: item.name.clone(),
            element: item.element,
            offset,
            bytes: item.bytes,
            lock: item.lock,
            writers: Vec::new(),
            readers: Vec::new(),
        });
        let layout = plan::Layout { placed: placed.collect(), bytes: 128 };
        let made = candidates(&arm, &layout).unwrap();
        assert!(made.iter().any(|candidate| !candidate.is_layout_only()) && made.len() > 4);
        for candidate in made {
            let read = arm_of(&format!("{text}{}", toml(&candidate)));
            assert_eq!(read.case, candidate.arm.case, "{}", candidate.name);
        }
    }
}

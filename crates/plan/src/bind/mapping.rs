//! Memory that a pass maps for itself: each `map` has its `unmap` behind it in the same passes, for the same bytes.

use super::{BindError, refuse_step};
use crate::region::{MemoryStep, MemoryVerb};
use crate::scenario::{Case, Role};
use crate::step::{Action, Step};

/// What a pass has mapped and not unmapped yet.
struct Held<'a> {
    memory: &'a MemoryStep,
    step: &'a Step,
}

pub(super) fn check(case: &Case) -> Result<(), BindError> {
    case.roles.iter().try_for_each(|role| check_role(case, role))
}

fn check_role(case: &Case, role: &Role) -> Result<(), BindError> {
    let mut held: Vec<Held<'_>> = Vec::new();
    for step in &role.steps {
        let Action::Memory(memory) = &step.action else { continue };
        let region = &case.regions[memory.region as usize];
        let open = held.iter().position(|held| held.memory.region == memory.region);
        let refuse = |why: &str, cure: String| Err(refuse_step(role, step, why, cure));
        match (memory.verb, open) {
            (MemoryVerb::Map, Some(_)) => {
                let why = format!("maps `{}`, which this pass has mapped already", region.name);
                return refuse(&why, format!("put `unmap {}` before it, or declare a second region", region.name));
            }
            (MemoryVerb::Map, None) => held.push(Held { memory, step }),
            (MemoryVerb::Unmap, None) if !region.shared => {
                let why = format!("unmaps `{}`, which this pass has not mapped", region.name);
                return refuse(&why, format!("put `{}` before it", step.text.replacen("unmap", "map", 1)));
            }
            (MemoryVerb::Unmap, Some(at)) => {
                let mapped = held.remove(at);
                if mapped.memory.bytes != memory.bytes || mapped.step.every != step.every {
                    let why = format!("does not unmap what `{}` has mapped", mapped.step.text);
                    return refuse(&why, "write the same size and the same `every` in both".to_owned());
                }
            }
            _ => {}
        }
    }
    let Some(Held { memory, step }) = held.first() else { return Ok(()) };
    let name = &case.regions[memory.region as usize].name;
    let why = format!("maps `{name}`, and the pass ends without unmapping it");
    Err(refuse_step(role, step, &why, format!("add `{}` to the loop", step.text.replacen("map", "unmap", 1))))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::fixtures::Scene;

    fn why(steps: &[&str]) -> String {
        let error = check(&Scene::new().region("heap", 8).role("r", 1, steps).0).unwrap_err();
        assert_eq!(error.path, format!("role.r.loop.{}", steps.len() - 1));
        format!("{}; {}", error.message, error.cure)
    }

    #[test]
    fn what_a_pass_maps_it_unmaps() {
        let fine = |steps: &[&str]| check(&Scene::new().region("heap", 8).region("b", 8).role("r", 1, steps).0);
        for steps in [
            &["map heap", "unmap heap"][..],
            &["map heap", "map b", "unmap heap", "unmap b", "map heap", "unmap heap"],
            &["every 3 map heap", "every 3 unmap heap", "touch heap", "free b"],
        ] {
            assert_eq!(fine(steps), Ok(()));
        }
        assert!(why(&["map heap"]).contains("ends without unmapping it; add `unmap heap` to the loop"));
        assert!(why(&["unmap heap"]).contains("has not mapped; put `map heap` before it"));
        assert!(why(&["map heap", "map heap"]).contains("mapped already; put `unmap heap` before it"));
        assert!(why(&["every 2 map heap", "unmap heap"]).contains("does not unmap what `every 2 map heap` has mapped"));
    }

    #[test]
    fn a_view_of_shared_memory_is_unmapped_without_more() {
        assert_eq!(check(&Scene::new().shared_region("seg", 8).role("r", 1, &["unmap seg"]).0), Ok(()));
    }
}

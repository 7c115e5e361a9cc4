//! Whether a pass gives back what it takes: each lock taken once, released by its taker, none held at the pass's end.

use super::{BindError, refuse_step};
use crate::scenario::{Case, Role};
use crate::step::{Action, Step};
use std::collections::BTreeMap;

pub(super) fn check(case: &Case) -> Result<(), BindError> {
    case.roles.iter().try_for_each(|role| check_role(case, role))
}

fn check_role(case: &Case, role: &Role) -> Result<(), BindError> {
    let mut held: BTreeMap<usize, &Step> = BTreeMap::new();
    for step in &role.steps {
        let (lock, takes) = match step.action {
            Action::Lock { lock, .. } => (lock, true),
            Action::Unlock { lock, .. } => (lock, false),
            _ => continue,
        };
        let name = &case.locks[lock].name;
        let holds = held.contains_key(&lock);
        if step.every > 1 {
            let cure = "lock and unlock in every pass; put `every` before the steps between them";
            return Err(refuse_step(
                role,
                step,
                "would run in some passes only, but what it does must hold in each",
                cure,
            ));
        } else if takes && holds {
            let cure = format!("put `unlock {name}` before it");
            return Err(refuse_step(role, step, &format!("takes `{name}`, which this pass holds already"), cure));
        } else if takes {
            held.insert(lock, step);
        } else if held.remove(&lock).is_none() {
            let cure = format!("put `lock {name}` before it, or remove it");
            return Err(refuse_step(role, step, &format!("releases `{name}`, which this pass does not hold"), cure));
        }
    }
    match held.into_iter().next() {
        None => Ok(()),
        Some((lock, step)) => {
            let name = &case.locks[lock].name;
            let cure = format!("add `unlock {name}` to the loop");
            Err(refuse_step(role, step, &format!("takes `{name}`, and the pass ends without releasing it"), cure))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::fixtures::Scene;

    fn refusal(steps: &[&str]) -> String {
        let scene = Scene::new().field("x").lock("m", None).lock("n", None).role("worker", 1, steps);
        let error = check(&scene.0).unwrap_err();
        assert!(error.path.starts_with("role.worker.loop."), "{}", error.path);
        assert!(!error.cure.is_empty());
        error.message
    }

    #[test]
    fn balanced_passes_are_accepted_nested_or_crossed() {
        for steps in [
            &["lock m", "bump x", "unlock m"][..],
            &["lock m", "lock n", "unlock n", "unlock m", "lock m", "unlock m"],
            &["lock m", "lock n", "unlock m", "every 64 add x", "unlock n"],
        ] {
            let scene = Scene::new().field("x").lock("m", None).lock("n", None).role("worker", 1, steps);
            assert_eq!(check(&scene.0), Ok(()));
        }
    }

    #[test]
    fn unbalanced_passes_name_the_step() {
        assert!(refusal(&["unlock m", "lock m"]).contains("step `unlock m` releases `m`"));
        assert!(refusal(&["lock m", "lock m", "unlock m"]).contains("`m`, which this pass holds already"));
        assert!(refusal(&["lock m", "lock n", "unlock m"]).contains("step `lock n` takes `n`, and the pass ends"));
    }

    #[test]
    fn a_lock_in_some_passes_only_is_refused() {
        assert!(refusal(&["every 4 lock m", "every 4 unlock m"]).contains("step `every 4 lock m` would run"));
        assert!(refusal(&["lock m", "every 2 unlock m"]).contains("step `every 2 unlock m` would run"));
    }
}

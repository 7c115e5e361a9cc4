//! Roles that end their own process: that they do so inside the window, in their last step, and that something is left
//! to measure.

use super::{BindError, refuse_step};
use crate::scenario::{Case, Role};
use crate::step::Action;

/// `headline` is the index of the role whose figures head an arm.
pub(super) fn check(case: &Case, headline: usize) -> Result<(), BindError> {
    let joined = |index: usize| case.roles[index].joins || case.roles.get(index + 1).is_some_and(|next| next.joins);
    let mut roles = case.roles.iter().enumerate();
    roles.try_for_each(|(index, role)| check_role(role, index == headline, joined(index)))
}

fn check_role(role: &Role, heads: bool, joined: bool) -> Result<(), BindError> {
    let Some(place) = role.steps.iter().position(|step| step.action == Action::Die) else { return Ok(()) };
    let step = &role.steps[place];
    let refuse = |why: &str, cure: &str| Err(refuse_step(role, step, why, cure));
    if heads {
        let why = "leaves no figures, and this role's are the arm's headline";
        return refuse(why, "name another role in [measure] headline");
    }
    if joined {
        let why = "would end the process of another role too, which is to leave figures";
        return refuse(why, "give the two roles processes of their own: leave `process` out");
    }
    if role.after.0 == 0 {
        let why = "would end the process in the warm-up, before anything is measured";
        return refuse(why, "say when the role begins: after = \"20ms\"");
    }
    if step.every == 1 && place + 1 < role.steps.len() {
        let cure = "put it last, or write `every N die`: the N-th pass is then the last";
        return refuse("ends the process in the first pass, so the steps behind it never run", cure);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::fixtures::Scene;

    fn scene(after: u64, steps: &[&str]) -> Scene {
        let mut scene = Scene::new().lock("m", None).role("waiter", 1, &["lock m", "unlock m"]).role("dier", 1, steps);
        scene.0.roles[1].after = crate::Nanos(after);
        scene
    }

    #[test]
    fn a_role_dies_inside_the_window_in_its_last_step() {
        assert_eq!(check(&scene(5, &["lock m", "die"]).0, 0), Ok(()));
        assert_eq!(check(&scene(5, &["lock m", "every 4 die", "unlock m"]).0, 0), Ok(()));
        for (after, headline, steps, why) in [
            (0, 0, &["lock m", "die"][..], "in the warm-up"),
            (0, 0, &["lock m", "every 4 die", "unlock m"], "in the warm-up"),
            (5, 1, &["lock m", "die"], "leaves no figures"),
            (5, 0, &["lock m", "die", "unlock m"], "the steps behind it never run"),
        ] {
            let error = check(&scene(after, steps).0, headline).unwrap_err();
            assert!(error.message.contains(why), "{error}");
            assert_eq!(error.path, "role.dier.loop.1");
        }
        let mut joined = scene(5, &["lock m", "die"]).0;
        joined.roles[1].joins = true;
        assert!(check(&joined, 0).unwrap_err().message.contains("the process of another role too"));
    }
}

//! Which arms a plan runs: the variants that are kept, and the references that say what sharing cost.

use crate::bind::BindError;
use crate::scenario::{Arm, ArmKind, Baseline, Plan};

impl Plan {
    /// The same plan with these variants alone, in the plan's order. Claims stay as they are, also those that name an
    /// arm which is gone. An empty list keeps everything.
    ///
    /// # Errors
    /// [`BindError`] at path `variant` for a name that no variant has; it lists the names there are.
    pub fn only(mut self, variants: &[String]) -> Result<Plan, BindError> {
        if variants.is_empty() {
            return Ok(self);
        }
        for wanted in variants {
            if !self.arms.iter().any(|arm| arm.variant == *wanted) {
                return Err(BindError::new(
                    "variant",
                    format!("no variant is called `{wanted}`"),
                    format!("the variants are {}", quoted(&self.variant_names())),
                ));
            }
        }
        self.arms.retain(|arm| variants.contains(&arm.variant));
        Ok(self)
    }

    /// The plan's arms, then its references, in the order in which results list them: `solo:ROLE` a role,
    /// `unshared:VARIANT`, `control`, `plain`. All references derive from one arm: the first variant at the point of
    /// the sweep with most workers among those that `can_run` says yes to; among all where it says yes to none.
    ///
    /// # Errors
    /// [`BindError`] at path `measure.baselines` for a baseline that is asked for and applies to no role.
    pub(crate) fn arms_with_references(&self, can_run: impl Fn(&Arm) -> bool) -> Result<Vec<Arm>, BindError> {
        let mut arms = self.arms.clone();
        if let Some(reference) = self.reference(can_run) {
            arms.extend(self.solo_arms(reference)?);
            arms.extend(self.unshared_arm(reference)?);
            arms.push(derived(reference, "control".to_owned(), ArmKind::Control));
            arms.extend(self.plain_arm(reference)?);
        }
        Ok(arms)
    }

    fn reference(&self, can_run: impl Fn(&Arm) -> bool) -> Option<&Arm> {
        let first = &self.arms.first()?.variant;
        let points: Vec<&Arm> = self.arms.iter().filter(|arm| arm.variant == *first).collect();
        let runnable: Vec<&Arm> = points.iter().copied().filter(|arm| can_run(arm)).collect();
        let candidates = if runnable.is_empty() { points } else { runnable };
        let most = candidates.iter().map(|arm| arm.case.worker_count()).max()?;
        candidates.into_iter().find(|arm| arm.case.worker_count() == most)
    }

    fn solo_arms(&self, reference: &Arm) -> Result<Vec<Arm>, BindError> {
        if !self.wants(Baseline::Solo) {
            return Ok(Vec::new());
        }
        let case = &reference.case;
        let alone = case.worker_count() == 1;
        let roles = case.roles.iter().enumerate();
        let arms: Vec<Arm> = roles
            .filter(|(_, role)| !alone && !role.waits() && !role.dies())
            .map(|(role, r)| derived(reference, format!("solo:{}", r.name), ArmKind::Solo { role }))
            .collect();
        if arms.is_empty() && self.measure.baselines.is_some() {
            let why = if alone {
                "the arm has one worker, which is alone already"
            } else {
                "every role waits for another, or ends its own process"
            };
            return Err(refused("solo", why));
        }
        Ok(arms)
    }

    fn unshared_arm(&self, reference: &Arm) -> Result<Option<Arm>, BindError> {
        if !self.wants(Baseline::Unshared) {
            return Ok(None);
        }
        let case = &reference.case;
        let why = match case.roles.iter().find(|role| role.waits()) {
            Some(role) => format!("role `{}` waits for another's post, which a copy never sees", role.name),
            None if case.worker_count() == 1 => "the arm has one worker, which shares nothing".to_owned(),
            None => {
                let name = format!("unshared:{}", reference.variant);
                return Ok(Some(derived(reference, name, ArmKind::Unshared)));
            }
        };
        if self.measure.baselines.is_some() { Err(refused("unshared", &why)) } else { Ok(None) }
    }

    fn plain_arm(&self, reference: &Arm) -> Result<Option<Arm>, BindError> {
        match reference.case.tries_first() {
            _ if !self.wants(Baseline::Plain) => Ok(None),
            true => Ok(Some(derived(reference, "plain".to_owned(), ArmKind::Plain))),
            false if self.measure.baselines.is_some() => {
                Err(refused("plain", "no lock of the first variant is tried before it is taken"))
            }
            false => Ok(None),
        }
    }

    fn wants(&self, baseline: Baseline) -> bool {
        self.measure.baselines.as_ref().is_none_or(|asked| asked.contains(&baseline))
    }

    fn variant_names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for arm in &self.arms {
            if !names.contains(&arm.variant.as_str()) {
                names.push(&arm.variant);
            }
        }
        names
    }
}

fn derived(reference: &Arm, name: String, kind: ArmKind) -> Arm {
    Arm { name, kind, ..reference.clone() }
}

fn refused(baseline: &str, why: &str) -> BindError {
    BindError::new(
        "measure.baselines",
        format!("the baseline `{baseline}` does not apply: {why}"),
        format!("remove `{baseline}` from the list; without the key, those that apply are taken"),
    )
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use crate::fixtures::{Scene, plan_of};
    use crate::scenario::{ArmKind, Baseline, Plan};

    fn sharing(workers: u32) -> Scene {
        Scene::new().array("hits", 8).role("counter", workers, &["add hits[me]"])
    }

    fn ping_pong() -> Scene {
        Scene::new().field("ball").field("back").role("ping", 1, &["post ball", "wait back"]).role(
            "pong",
            1,
            &["wait ball", "post back"],
        )
    }

    fn names(plan: &Plan) -> Vec<String> {
        plan.arms_with_references(|_| true).unwrap().into_iter().map(|arm| arm.name).collect()
    }

    #[test]
    fn references_follow_the_variants_in_a_fixed_order() {
        let two_roles = Scene::new().field("x").role("writer", 1, &["store x"]).role("reader", 1, &["load x"]);
        let plan = plan_of(vec![two_roles.arm("packed"), two_roles.arm("padded")]);
        let expected = ["packed", "padded", "solo:writer", "solo:reader", "unshared:packed", "control"];
        assert_eq!(names(&plan), expected);
    }

    #[test]
    fn the_reference_is_the_first_variant_with_most_workers() {
        let mut plan = plan_of(vec![
            sharing(1).arm("packed"),
            sharing(4).arm("packed"),
            sharing(2).arm("packed"),
            sharing(8).arm("padded"),
        ]);
        plan.arms[1].sweep = vec![("workers".to_owned(), "4".to_owned())];
        let arms = plan.arms_with_references(|_| true).unwrap();
        let control = arms.last().unwrap();
        assert_eq!(control.kind, ArmKind::Control);
        assert_eq!(control.case, plan.arms[1].case);
        assert_eq!(control.sweep, plan.arms[1].sweep);
        assert_eq!(control.variant, "packed");
    }

    #[test]
    fn only_keeps_the_named_variants_and_moves_the_reference() {
        let plan = plan_of(vec![sharing(2).arm("packed"), sharing(2).arm("padded")]);
        let kept = plan.clone().only(&["padded".to_owned()]).unwrap();
        assert_eq!(names(&kept), ["padded", "solo:counter", "unshared:padded", "control"]);
        let error = plan.only(&["paded".to_owned()]).unwrap_err();
        assert_eq!(error.path, "variant");
        assert!(error.message.contains("`paded`"), "{error}");
        assert_eq!(error.cure, "the variants are `packed`, `padded`");
    }

    #[test]
    fn only_with_no_name_keeps_everything() {
        let plan = plan_of(vec![sharing(2).arm("packed"), sharing(2).arm("padded")]);
        assert_eq!(plan.clone().only(&[]).unwrap(), plan);
    }

    #[test]
    fn baselines_that_do_not_apply_are_left_out_unless_asked_for() {
        let waiting = plan_of(vec![ping_pong().arm("near")]);
        assert_eq!(names(&waiting), ["near", "control"]);
        let alone = plan_of(vec![sharing(1).arm("packed")]);
        assert_eq!(names(&alone), ["packed", "control"]);
        for (plan, baseline) in [
            (&waiting, Baseline::Solo),
            (&waiting, Baseline::Unshared),
            (&alone, Baseline::Solo),
            (&alone, Baseline::Unshared),
        ] {
            let mut plan = plan.clone();
            plan.measure.baselines = Some(vec![baseline]);
            assert_eq!(plan.arms_with_references(|_| true).unwrap_err().path, "measure.baselines");
        }
    }

    #[test]
    fn asked_baselines_are_the_only_ones() {
        let mut plan = plan_of(vec![sharing(2).arm("packed")]);
        plan.measure.baselines = Some(vec![Baseline::Unshared]);
        assert_eq!(names(&plan), ["packed", "unshared:packed", "control"]);
        plan.measure.baselines = Some(Vec::new());
        assert_eq!(names(&plan), ["packed", "control"]);
    }

    #[test]
    fn the_plain_arm_is_made_where_a_lock_is_tried_first() {
        use crate::lock::LockKind;
        let taking = |kind| {
            let scene = Scene::new().lock("idle", None).lock_of("m", kind);
            plan_of(vec![scene.role("taker", 2, &["lock m", "unlock m"]).arm("v")])
        };
        for kind in LockKind::ALL {
            let mut plan = taking(kind);
            let has_plain = names(&plan).last().is_some_and(|name| name == "plain");
            assert_eq!(has_plain, kind.is_tried_first(), "{}", kind.name());
            plan.measure.baselines = Some(vec![Baseline::Plain]);
            match plan.arms_with_references(|_| true) {
                Ok(arms) => assert_eq!(arms.last().unwrap().kind, ArmKind::Plain),
                Err(error) => assert!(!kind.is_tried_first() && error.path == "measure.baselines", "{error}"),
            }
        }
        let mut plan = taking(LockKind::Pthread);
        plan.measure.baselines = Some(Vec::new());
        assert_eq!(names(&plan), ["v", "control"]);
    }

    #[test]
    fn a_role_that_ends_its_process_has_no_solo_arm() {
        let scene = Scene::new().lock("m", None).role("taker", 1, &["lock m", "unlock m"]).role("dier", 1, &["die"]);
        let plan = plan_of(vec![scene.arm("v")]);
        assert_eq!(names(&plan), ["v", "solo:taker", "unshared:v", "control", "plain"]);
    }

    #[test]
    fn a_role_that_does_not_wait_has_its_solo_arm_beside_one_that_does() {
        let scene = Scene::new().field("flag").role("poster", 1, &["post flag"]).role("waiter", 1, &["wait flag"]);
        let mut plan = plan_of(vec![scene.arm("packed")]);
        plan.measure.baselines = Some(vec![Baseline::Solo]);
        assert_eq!(names(&plan), ["packed", "solo:poster", "control"]);
    }
}

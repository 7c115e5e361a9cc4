//! Which elements of a field a worker's step touches.

use super::{BindError, Seat, refuse_step};
use crate::scenario::{Case, Count};
use crate::step::{Element, Step, Target};

/// The elements a step touches in one pass.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Elements {
    /// This one.
    One(u32),
    /// One of the first so many, drawn anew each pass.
    Any(u32),
    /// The first so many, each in turn.
    All(u32),
}

impl Elements {
    /// Every element that a pass can touch.
    pub(super) fn reachable(self) -> std::ops::Range<u32> {
        match self {
            Elements::One(element) => element..element + 1,
            Elements::Any(count) | Elements::All(count) => 0..count,
        }
    }
}

/// Resolves `target` of `step` for the worker in `seat`.
pub(super) fn elements(case: &Case, seat: Seat, step: &Step, target: &Target) -> Result<Elements, BindError> {
    let field = &case.fields[target.field];
    let count = field.count.elements(case.worker_count());
    let me = seat.index.0;
    let wanted = match target.element {
        Element::Only if field.count == Count::One => 0,
        Element::Only => {
            let why = format!("names no element of `{}`, which has {count}", field.name);
            let cure = format!("write `{0}[me]` or `{0}[0]`", field.name);
            return Err(refuse_step(&case.roles[seat.role], step, &why, cure));
        }
        Element::Me => me,
        Element::Next => (me + 1) % count.max(1),
        Element::Any => return Ok(Elements::Any(count)),
        Element::All => return Ok(Elements::All(count)),
        Element::At(index) => index,
    };
    if wanted < count {
        return Ok(Elements::One(wanted));
    }
    let who = if target.element == Element::Me { format!(" for worker {me}") } else { String::new() };
    let have = if count == 1 { "1 element".to_owned() } else { format!("{count} elements") };
    let why = format!("touches element {wanted} of `{}`{who}, but it has {have}", field.name);
    let cure = format!("give `{}` `each = \"worker\"` or a count above {wanted}", field.name);
    Err(refuse_step(&case.roles[seat.role], step, &why, cure))
}

#[cfg(test)]
mod tests {
    use super::{Elements, elements};
    use crate::bind::seats;
    use crate::fixtures::Scene;
    use crate::scenario::{Count, Width};

    /// What the only step of the only role touches, worker by worker.
    fn touched(scene: &Scene) -> Result<Vec<Elements>, crate::bind::BindError> {
        let case = &scene.0;
        let step = &case.roles[0].steps[0];
        seats(case).map(|seat| elements(case, seat, step, step.action.target().unwrap())).collect()
    }

    #[test]
    fn brackets_name_elements_by_worker() {
        let scene =
            |step: &str| Scene::new().any_field("x", Width::U64, Count::PerWorker, None).role("counter", 3, &[step]);
        let one = Elements::One;
        assert_eq!(touched(&scene("add x[me]")).unwrap(), [one(0), one(1), one(2)]);
        assert_eq!(touched(&scene("add x[next]")).unwrap(), [one(1), one(2), one(0)]);
        assert_eq!(touched(&scene("add x[2]")).unwrap(), [one(2); 3]);
        assert_eq!(touched(&scene("add x[any]")).unwrap(), [Elements::Any(3); 3]);
        assert_eq!(touched(&scene("add x[all]")).unwrap(), [Elements::All(3); 3]);
    }

    #[test]
    fn next_wraps_at_the_fields_count() {
        let scene = Scene::new().array("x", 2).role("counter", 3, &["add x[next]"]);
        assert_eq!(touched(&scene).unwrap(), [Elements::One(1), Elements::One(0), Elements::One(1)]);
    }

    #[test]
    fn an_element_beyond_the_count_is_refused_with_role_and_step() {
        let error = touched(&Scene::new().array("x", 1).role("counter", 2, &["add x[me]"])).unwrap_err();
        assert_eq!(error.path, "role.counter.loop.0");
        let said = "role `counter`: step `add x[me]` touches element 1 of `x` for worker 1, but it has 1 element";
        assert_eq!(error.message, said);
        let error = touched(&Scene::new().array("x", 2).role("counter", 1, &["add x[2]"])).unwrap_err();
        assert!(error.message.contains("element 2 of `x`, but it has 2 elements"), "{error}");
    }

    #[test]
    fn an_array_without_brackets_is_refused() {
        let error = touched(&Scene::new().array("x", 2).role("counter", 1, &["add x"])).unwrap_err();
        assert!(error.cure.contains("`x[me]`"), "{}", error.cure);
    }
}

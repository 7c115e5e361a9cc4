//! `--predict`: what whoever runs a scenario thinks that it will show, in the words of claims.

use crate::claims::{self, ClaimScope};
use crate::context::{Context, Place, flag};
use crate::document::{Node, Value};
use crate::{Loaded, Refusal, schema};
use plan::Case;
use plan::expect::Quantity;

/// Reads predictions about the run of `loaded`, each `metric(arm)` or `metric(arm) / metric(arm)`, and behind `=` the
/// number, if it has one. They name the arms that will run, under whatever the command line has changed; the file's own
/// events and those that the command line put in their place.
///
/// # Errors
/// [`Refusal`], which shows each as the flag `--predict '…'`, the fault underlined, with its cure.
pub fn predictions(loaded: &Loaded, texts: &[String]) -> Result<Vec<(Quantity, Option<f64>)>, Refusal> {
    let flags: Vec<(String, String)> = texts.iter().map(|text| ("predict".to_owned(), format!("'{text}'"))).collect();
    let mut context = Context::new(&schema::KIND, &loaded.source.path, &loaded.source.text, &flags);
    let plan = &loaded.plan;
    let (mut roles, mut locks) = (Vec::new(), Vec::new());
    for Case { roles: of_arm, locks: at_arm, .. } in plan.arms.iter().map(|arm| &arm.case) {
        add(&mut roles, of_arm.iter().map(|role| &role.name));
        add(&mut locks, at_arm.iter().map(|lock| &lock.name));
    }
    let scope = ClaimScope::new(&plan.arms, (&roles, &locks), plan.measure.baselines.as_deref(), &plan.measure.events);
    let read = texts.iter().enumerate().filter_map(|(index, text)| {
        let start = flag("predict").len();
        // With its quotes, so that what is wrong inside them is found.
        let place = Place { text: index + 1, start, end: start + text.len() + 2 };
        let node = Node { value: Value::String(text.clone()), place };
        claims::prediction(&mut context, &node, text, &scope)
    });
    let read: Vec<_> = read.collect();
    if context.problems.is_empty() { Ok(read) } else { Err(context.into_refusal()) }
}

/// Each name once, in order.
fn add<'a>(known: &mut Vec<String>, names: impl Iterator<Item = &'a String>) {
    for name in names {
        if !known.contains(name) {
            known.push(name.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::predictions;
    use crate::parse;

    const SCENARIO: &str = r#"
[field.hits]
type = "u64"
each = "worker"
[[variant]]
name = "packed"
[[variant]]
name = "padded-64"
placement = { pad = 64 }
[[role]]
name = "counter"
workers = 2
loop = ["bump hits[me]"]
"#;

    fn refusal(text: &str) -> String {
        let loaded = parse("case.toml", SCENARIO).unwrap();
        predictions(&loaded, &[text.to_owned()]).unwrap_err().render(false)
    }

    #[test]
    fn a_figure_or_a_ratio_with_a_number_or_without() {
        let loaded = parse("case.toml", SCENARIO).unwrap();
        let texts = [
            "ns_per_op(packed)  /  ns_per_op(padded-64) = 5",
            "contention_solo(packed)=1.5",
            "bytes(padded-64)",
            "ns_per_op(solo:counter) / ns_per_op(packed, counter)",
        ];
        let read = predictions(&loaded, &texts.map(str::to_owned)).unwrap();
        let shown: Vec<_> = read.iter().map(|(of, number)| (of.text.as_str(), of.over.is_some(), *number)).collect();
        assert_eq!(
            shown,
            [
                ("ns_per_op(packed) / ns_per_op(padded-64)", true, Some(5.0)),
                ("contention_solo(packed)", false, Some(1.5)),
                ("bytes(padded-64)", false, None),
                ("ns_per_op(solo:counter) / ns_per_op(packed, counter)", true, None),
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_underlined_with_its_cure() {
        for (text, what, mark, cure) in [
            ("ns_per_op(packd) = 5", "no arm is named `packd`", "did you mean `packed`?", "the arms are"),
            ("ns_per_opp(packed) = 5", "unknown metric", "did you mean `ns_per_op`?", "the metrics are"),
            ("ns_per_op(packed) = five", "`five` is no number", "not a number", "write a number of 0 or more"),
            ("ns_per_op(packed) = -5", "`-5` is no number", "not a number", "write a number of 0 or more"),
            ("ns_per_op(packed) >= 5", "behind the prediction", "the prediction ends before it", "a prediction reads"),
            ("5", "a prediction needs a metric here", "expected a metric", "a prediction reads"),
            (
                "ns_per_op(packed) / 2 = 5",
                "a prediction needs a metric here",
                "expected a metric",
                "a prediction reads",
            ),
            ("", "a prediction needs a metric here", "expected a metric", "a prediction reads"),
        ] {
            let shown = refusal(text);
            assert!(shown.contains(&format!("--predict '{text}'")), "{shown}");
            for part in [what, mark, cure] {
                assert!(shown.contains(part), "{text}: {part:?} is not in\n{shown}");
            }
        }
    }

    #[test]
    fn every_bad_prediction_is_told_at_once() {
        let loaded = parse("case.toml", SCENARIO).unwrap();
        let bad = ["ns_per_op(a) = 1", "ns_per_op(packed) = 1", "ns_per_op(b) = 1"].map(str::to_owned);
        assert_eq!(predictions(&loaded, &bad).unwrap_err().count(), 2);
    }
}

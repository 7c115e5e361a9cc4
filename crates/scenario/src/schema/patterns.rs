//! What texts in a scenario look like, as regular expressions that ECMAScript, Python and Rust read alike: made from
//! the tables that the reader goes by. A pattern never refuses what is accepted; what it cannot tell (bounds, whether a
//! name is declared), `coordinator check` does.

use super::{ELEMENTS, MEMORY_WORDS, VERBS};
use crate::quantity::{RATES, SIZES, UNITS};
use crate::steps::Operand;
use plan::expect::{HostFact, Metric, Relation, Subject};

/// A field's, a lock's or a region's name, or a placeholder's.
pub(super) const NAME: &str = "[a-z][a-z0-9_]*";
/// A role's or a variant's.
pub(super) const HYPHENED: &str = "[a-z][a-z0-9_-]*";
/// The dot in a path in quotes.
pub(super) const DOT: &str = r"\s*\.\s*";

const DECIMAL: &str = r"[0-9]+(?:\.[0-9]+)?";
const NUMBER: &str = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?";

/// The pattern of a text that is all of `inside`.
pub(super) fn whole(inside: &str) -> String {
    format!("^(?:{inside})$")
}

fn any_of<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    format!("(?:{})", words.into_iter().collect::<Vec<_>>().join("|"))
}

fn unit(table: &'static [(&'static str, u64)]) -> String {
    any_of(table.iter().map(|(name, _)| *name))
}

/// `1.5ms`.
pub(super) fn duration() -> String {
    format!("{DECIMAL}{}", unit(UNITS))
}

/// `4KiB`.
pub(super) fn size() -> String {
    format!("[0-9]+{}", unit(SIZES))
}

/// `50k/s`.
pub(super) fn rate() -> String {
    format!("{DECIMAL}{}", unit(RATES))
}

/// `5%`, below 100.
pub(super) fn percentage() -> String {
    r"0*(?:[0-9]{1,2}(?:\.[0-9]*)?|\.[0-9]+)%".to_owned()
}

/// `every 64 add hits[me]`, or anything with a placeholder in it.
pub(super) fn step() -> String {
    // Editors show the pattern where a step does not fit it, so what many verbs take stands there once.
    let mut forms: Vec<(String, Vec<&str>)> = Vec::new();
    for verb in VERBS {
        let operand = operand(&verb.operand);
        match forms.iter_mut().find(|(known, _)| *known == operand) {
            Some((_, verbs)) => verbs.push(verb.name),
            None => forms.push((operand, vec![verb.name])),
        }
    }
    let forms: Vec<String> = forms.into_iter().map(|(operand, verbs)| any_of(verbs) + &operand).collect();
    format!(r"[\s\S]*\$[\s\S]*|\s*(?:every\s+\+?[0-9]+\s+)?{}\s*", any_of(forms.iter().map(String::as_str)))
}

fn operand(operand: &Operand) -> String {
    let elements = any_of(ELEMENTS.iter().copied().chain([r"\+?[0-9]+"]));
    let element = |which: &str| format!(r"\s+{NAME}(?:\s*\[\s*{which}\s*\])?");
    match operand {
        Operand::Elements(_) => element(&elements),
        Operand::OneElement(_) => element(r"(?:me|next|\+?[0-9]+)"),
        Operand::Acquire(_) => format!(r"\s+{NAME}(?:\s+timeout\s+{})?", duration()),
        Operand::Release(_) => format!(r"\s+{NAME}"),
        Operand::Region(_) => {
            let [chunk, pause] = MEMORY_WORDS else { return String::new() };
            let (size, time) = (size(), duration());
            format!(r"\s+{NAME}(?:\s+{size})?(?:\s+{chunk}\s+{size})?(?:\s+{pause}\s+{time})?")
        }
        Operand::Duration(..) => format!(r"\s+{}", duration()),
        Operand::Nothing(_) => String::new(),
    }
}

/// `ns_per_op(packed) >= 3 * ns_per_op(padded-64)`.
pub(super) fn claim() -> String {
    let metrics = [Subject::Role, Subject::Lock, Subject::Layout].into_iter().flat_map(Metric::names);
    let metric = any_of(metrics.chain(["[A-Za-z0-9_]+_per_op", "[A-Za-z0-9_]+_per_second"]));
    let (term, relation) = (format!(r"{metric}\s*\([\s\S]+\)"), relation());
    format!(r"\s*{term}\s*{relation}\s*(?:(?:{NUMBER}\s*\*\s*)?{term}|{NUMBER})\s*")
}

/// `llc_groups >= 2`.
pub(super) fn condition() -> String {
    let fact = any_of(HostFact::ALL.map(|(name, _)| name));
    format!(r"\s*{fact}\s*{}\s*[0-9]+\s*", relation())
}

fn relation() -> String {
    any_of(Relation::ALL.map(|(sign, _)| sign))
}

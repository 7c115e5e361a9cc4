//! The terms between an event's slashes, put at the bits that the PMU's description names.

use super::{Unencoded, mistake, numbers, unsupported};
use crate::event::Attr;
use host::{Format, Pmu, Word};
use plan::event::Term;
use plan::{EventForm, EventSpec};

/// Terms that every PMU takes: whole fields.
const WORDS: [(&str, Word); 3] = [("config", Word::Config), ("config1", Word::Config1), ("config2", Word::Config2)];

/// The numbers of `terms`, where those that are written win over those of an event's name among them.
pub(super) fn attr(spec: &EventSpec, pmu: &Pmu, terms: &[Term]) -> Result<Attr, Unencoded> {
    let is_event = |term: &&Term| term.value.is_none() && pmu.events.contains_key(&term.name);
    let (events, written): (Vec<&Term>, Vec<&Term>) = terms.iter().partition(is_event);
    let of_event = match events.as_slice() {
        [] => Vec::new(),
        [event] => terms_of_event(pmu, &event.name)?,
        [first, second, ..] => {
            let what = format!("`{}` names two events, `{}` and `{}`", spec.text, first.name, second.name);
            return mistake(what, "write each as an event of its own");
        }
    };
    let mut attr = numbers(pmu.kind, 0);
    put_all(spec, pmu, &of_event.iter().collect::<Vec<_>>(), &mut attr)?;
    put_all(spec, pmu, &written, &mut attr)?;
    Ok(attr)
}

fn terms_of_event(pmu: &Pmu, event: &str) -> Result<Vec<Term>, Unencoded> {
    let text = &pmu.events[event];
    match format!("{}/{text}/", pmu.name).parse() {
        Ok(EventSpec { form: EventForm::Terms { terms, .. }, .. }) => Ok(terms),
        _ => mistake(
            format!("the event `{event}` of `{}` is given by {text}, which wants values of yours", pmu.name),
            format!("write its terms out: {}/{text}/ with numbers for the question marks", pmu.name),
        ),
    }
}

/// Whole fields first, so that terms can change bits of them.
fn put_all(spec: &EventSpec, pmu: &Pmu, terms: &[&Term], attr: &mut Attr) -> Result<(), Unencoded> {
    for (at, term) in terms.iter().enumerate() {
        if terms[..at].iter().any(|earlier| earlier.name == term.name) {
            return mistake(format!("`{}` has the term `{}` twice", spec.text, term.name), "keep one");
        }
    }
    let whole = |term: &Term| WORDS.iter().find(|(name, _)| *name == term.name).map(|(_, word)| *word);
    for term in terms {
        if let Some(word) = whole(term) {
            *field(attr, word) = term.value.unwrap_or(1);
        }
    }
    terms.iter().filter(|term| whole(term).is_none()).try_for_each(|term| put(spec, pmu, term, attr))
}

fn put(spec: &EventSpec, pmu: &Pmu, term: &Term, attr: &mut Attr) -> Result<(), Unencoded> {
    let (text, name, value) = (&spec.text, &term.name, term.value.unwrap_or(1));
    let Some(format) = pmu.formats.get(name) else { return unknown_term(spec, pmu, name) };
    let Format::Bits { word, ranges } = format else {
        let Format::Unknown(place) = format else { unreachable!("a format is known or not") };
        return mistake(
            format!("the term `{name}` of `{text}` lies at {place}, where the lab cannot write"),
            "leave it out: the lab sets config, config1 and config2",
        );
    };
    let width = format.width();
    if width < 64 && value >> width != 0 {
        let most = (1u64 << width) - 1;
        let bits = if width == 1 { "one bit".to_owned() } else { format!("{width} bits") };
        return mistake(
            format!("{value:#x} is too large for `{name}` in `{text}`, which has {bits} on this machine"),
            format!("write {most:#x} at most"),
        );
    }
    let field = field(attr, *word);
    let places = ranges.iter().flat_map(|(first, last)| *first..=*last);
    for (bit, place) in places.enumerate() {
        *field = *field & !(1 << place) | (value >> bit & 1) << place;
    }
    Ok(())
}

fn unknown_term(spec: &EventSpec, pmu: &Pmu, name: &str) -> Result<(), Unencoded> {
    if pmu.formats.is_empty() && pmu.events.is_empty() {
        return unsupported(format!(
            "where the term `{name}` goes is unknown: /sys/bus/event_source/devices/{0}/format is empty or hidden; \
             {0}/config=0x…/ needs no format",
            pmu.name
        ));
    }
    let known: Vec<&str> = pmu.formats.keys().chain(pmu.events.keys()).map(String::as_str).collect();
    let near = plan::nearest(name, &known).map_or(String::new(), |near| format!("did you mean `{near}`? "));
    let formats: Vec<&str> = pmu.formats.keys().map(String::as_str).collect();
    mistake(
        format!("`{}` has no term `{name}`, written in `{}`", pmu.name, spec.text),
        format!("{near}its terms are {}, and config, config1, config2", formats.join(", ")),
    )
}

fn field(attr: &mut Attr, word: Word) -> &mut u64 {
    match word {
        Word::Config => &mut attr.config,
        Word::Config1 => &mut attr.config1,
        Word::Config2 => &mut attr.config2,
    }
}

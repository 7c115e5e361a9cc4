//! perf's spelling of an event, read.

use super::{EventForm, EventSpec, Modes, Term};
use std::ops::Range;
use std::str::FromStr;

/// Why a text is no event: what is wrong with it, and how it would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSpecError {
    /// What is wrong.
    pub what: String,
    /// What to write instead.
    pub cure: String,
}

impl std::fmt::Display for EventSpecError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.what, self.cure)
    }
}

impl std::error::Error for EventSpecError {}

/// Longest text of one event, bytes: the longest spellings of perf's own tests have half as many.
const TEXT_BYTES_MAX: usize = 256;

/// How every form is written.
const GRAMMAR: &str = "write a name (cache-misses), PMU terms (cpu/event=0xd1,umask=0x01/), a raw code (r01d1) or a \
                       tracepoint (sched:sched_switch), with :u or :k behind it for one mode alone";

fn wrong<T>(what: impl Into<String>, cure: impl Into<String>) -> Result<T, EventSpecError> {
    Err(EventSpecError { what: what.into(), cure: cure.into() })
}

impl FromStr for EventSpec {
    type Err = EventSpecError;

    fn from_str(text: &str) -> Result<EventSpec, EventSpecError> {
        let text = text.trim();
        if text.is_empty() {
            return wrong("an event without a name", GRAMMAR);
        }
        if let Some(odd) = text.chars().find(|c| !matches!(c, ' ' | '!'..='~')) {
            return wrong(format!("{odd:?} is in no event's spelling"), GRAMMAR);
        }
        if text.len() > TEXT_BYTES_MAX {
            return wrong("an event that is longer than any", format!("write it in {TEXT_BYTES_MAX} characters"));
        }
        if text.strip_prefix("mem:").is_some_and(|address| address.starts_with(|c: char| c.is_ascii_digit())) {
            return wrong(
                format!("`{text}` is a breakpoint, which stops its process at every access: the lab counts none"),
                "hold the workers with `run --hold`, and count it beside the run: perf stat -e mem:ADDRESS:rw -p PID",
            );
        }
        let (body, modes) = without_modifier(text)?;
        let (form, name) = form(body)?;
        Ok(EventSpec { text: text.to_owned(), form, name, modes })
    }
}

impl EventSpec {
    /// The events of a list with commas between them, as `perf stat -e` takes it.
    ///
    /// # Errors
    /// [`EventSpecError`] for the first that is none.
    pub fn list(text: &str) -> Result<Vec<EventSpec>, EventSpecError> {
        EventSpec::each_of(text).map(|(_, event)| event).collect()
    }

    /// The same, each with the bytes of `text` that it stands in, white space left out; an event that is none does not
    /// end the list.
    pub fn each_of(text: &str) -> impl Iterator<Item = (Range<usize>, Result<EventSpec, EventSpecError>)> {
        split(text).into_iter().map(|range| {
            let part = &text[range.clone()];
            let start = range.start + (part.len() - part.trim_start().len());
            (start..start + part.trim().len(), part.parse())
        })
    }
}

/// The ranges between commas outside slashes.
fn split(text: &str) -> Vec<Range<usize>> {
    let (mut inside, mut start, mut parts) = (false, 0, Vec::new());
    for (at, c) in text.char_indices() {
        inside ^= c == '/';
        if c == ',' && !inside {
            parts.push(start..at);
            start = at + 1;
        }
    }
    parts.push(start..text.len());
    parts
}

/// The event without its modifier. Behind slashes a colon may be left out; a tracepoint has a colon of its own.
fn without_modifier(text: &str) -> Result<(&str, Modes), EventSpecError> {
    match text.matches('/').count() {
        0 | 2 => {}
        1 => return wrong(format!("`{text}` needs two slashes"), "write PMU/term,term=value/"),
        many => {
            let what = format!("`{text}` has {many} slashes, and an event two at most");
            return wrong(what, "write PMU/term,term=value/, with the PMU's name alone in front");
        }
    }
    let (body, modifier) = match text.rfind('/') {
        Some(slash) => (&text[..=slash], text[slash + 1..].trim_start_matches(':')),
        None => match text.rsplit_once(':') {
            Some((body, modifier)) if body.contains(':') || looks_like_modifier(modifier) => (body, modifier),
            _ => (text, ""),
        },
    };
    let mut modes = Modes::default();
    for letter in modifier.chars() {
        match letter {
            'u' => modes.user = true,
            'k' => modes.kernel = true,
            _ => {
                let what = format!("unknown modifier `{letter}` of `{text}`");
                return wrong(what, "a worker counts in user mode (:u), in the kernel (:k) or in both (nothing)");
            }
        }
    }
    Ok((body, modes))
}

/// perf's modifiers are single letters, all of this set; no tracepoint is named by them alone.
fn looks_like_modifier(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| "ukhHGIpPSDWebR".contains(c))
}

fn form(body: &str) -> Result<(EventForm, Option<String>), EventSpecError> {
    if let Some((pmu, rest)) = body.split_once('/') {
        return terms(body, pmu, rest.trim_end_matches('/'));
    }
    if let Some((system, event)) = body.split_once(':') {
        if !is_word(system) || !is_word(event) {
            return wrong(
                format!("`{body}` is no tracepoint"),
                "write SYSTEM:NAME, as perf list tracepoint shows them",
            );
        }
        return Ok((EventForm::Tracepoint { system: system.to_owned(), event: event.to_owned() }, None));
    }
    if let Some(digits) = body.strip_prefix('r').filter(|digits| digits.starts_with(|c: char| c.is_ascii_hexdigit()))
        && digits.chars().all(|c| c.is_ascii_hexdigit())
    {
        return match u64::from_str_radix(digits, 16) {
            Ok(config) => Ok((EventForm::Raw(config), None)),
            Err(_) => wrong(format!("`{body}` has more than 16 hexadecimal digits"), "a raw code has 64 bits at most"),
        };
    }
    match is_word(body) {
        true => Ok((EventForm::Named(body.to_owned()), None)),
        false => wrong(format!("`{body}` is no event"), GRAMMAR),
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

fn terms(body: &str, pmu: &str, inside: &str) -> Result<(EventForm, Option<String>), EventSpecError> {
    if !is_word(pmu) {
        return wrong(format!("`{body}` names no PMU"), "write PMU/term,term=value/, as in cpu/event=0xd1,umask=0x01/");
    }
    let (mut all, mut name) = (Vec::new(), None);
    for written in inside.split(',').map(str::trim).filter(|written| !written.is_empty()) {
        let (key, value) = match written.split_once('=') {
            Some((key, value)) => (key.trim(), Some(value.trim())),
            None => (written, None),
        };
        if !is_word(key) {
            return wrong(format!("`{written}` in `{body}` is no term"), "write NAME=VALUE, as in umask=0x01");
        }
        match (key, value) {
            ("name", Some(value)) if is_word(value) => name = Some(value.to_owned()),
            ("name", _) => return wrong(format!("`{written}` in `{body}` gives no name"), "write name=my_event"),
            (_, None) => all.push(Term { name: key.to_owned(), value: None }),
            (_, Some(value)) => match number(value) {
                Some(value) => all.push(Term { name: key.to_owned(), value: Some(value) }),
                None => {
                    let what = format!("`{value}` in `{body}` is no number");
                    return wrong(what, "write it decimal (209) or hexadecimal (0xd1), 64 bits at most");
                }
            },
        }
    }
    if all.is_empty() {
        return wrong(format!("`{body}` has no term"), "write PMU/term,term=value/, as in cpu/event=0xd1,umask=0x01/");
    }
    Ok((EventForm::Terms { pmu: pmu.to_owned(), terms: all }, name))
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> EventSpec {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn refused(text: &str) -> EventSpecError {
        text.parse::<EventSpec>().expect_err(text)
    }

    #[test]
    fn each_form_is_told_apart() {
        assert_eq!(read(" cache-misses ").form, EventForm::Named("cache-misses".into()));
        assert_eq!(read("L1-dcache-load-misses").form, EventForm::Named("L1-dcache-load-misses".into()));
        assert_eq!(read("r01d1").form, EventForm::Raw(0x01d1));
        assert_eq!(read("ref-cycles").form, EventForm::Named("ref-cycles".into()), "r, then a hexadecimal digit");
        let switch = EventForm::Tracepoint { system: "sched".into(), event: "sched_switch".into() };
        assert_eq!(read("sched:sched_switch").form, switch);
        let term = |name: &str, value| Term { name: name.into(), value };
        let spec = read("cpu/event=0xd1,umask=1,edge,name=l1_hits/");
        assert_eq!(
            spec.form,
            EventForm::Terms {
                pmu: "cpu".into(),
                terms: vec![term("event", Some(0xd1)), term("umask", Some(1)), term("edge", None)]
            }
        );
        assert_eq!((spec.key(), read("r1").key()), ("l1_hits", "r1"));
    }

    #[test]
    fn modifiers_choose_modes() {
        let of = |text| (read(text).modes.user, read(text).modes.kernel);
        assert_eq!((of("cycles"), of("cycles:u"), of("cycles:k")), ((false, false), (true, false), (false, true)));
        assert_eq!(
            (of("cpu/event=1/uk"), of("cpu/event=1/:u"), of("r1:u")),
            ((true, true), (true, false), (true, false))
        );
        assert_eq!(of("sched:sched_switch:k"), (false, true));
        assert!(refused("cycles:p").what.contains("`p`"), "precise events are for sampling");
        assert!(refused("sched:sched_switch:x").what.contains("`x`"));
    }

    #[test]
    fn lists_are_cut_outside_slashes() {
        let list = EventSpec::list("cycles,cpu/event=1,umask=2/u,sched:sched_switch").unwrap();
        let texts: Vec<&str> = list.iter().map(|spec| spec.text.as_str()).collect();
        assert_eq!(texts, ["cycles", "cpu/event=1,umask=2/u", "sched:sched_switch"]);
        assert!(EventSpec::list("cycles,,r1").is_err());
        let places: Vec<_> =
            EventSpec::each_of("cs, r1 ,cpu/a,b=/,faults").map(|(place, e)| (place, e.is_ok())).collect();
        assert_eq!(places, [(0..2, true), (4..6, true), (8..17, false), (18..24, true)]);
    }

    #[test]
    fn what_is_no_event_is_refused_with_the_part_at_fault() {
        for (text, part) in [
            ("", "without a name"),
            ("cpu/event=1", "two slashes"),
            ("cpu/event=1/2/", "has 3 slashes"),
            ("../cpu/x=1/", "has 3 slashes"),
            ("mem:0x1000", "is a breakpoint"),
            ("mem:0x1000/8:rw", "is a breakpoint"),
            ("mem:4096:w", "is a breakpoint"),
            ("/event=1/", "names no PMU"),
            ("cpu//", "no term"),
            ("cpu/name=x/", "no term"),
            ("cpu/event=0xzz/", "`0xzz`"),
            ("cpu/event=0x10000000000000000/", "0x10000000000000000"),
            ("cpu/name=/", "gives no name"),
            ("cpu/=1/", "`=1`"),
            ("r123456789abcdef01", "16 hexadecimal"),
            ("a b", "`a b`"),
            (":x", "no tracepoint"),
            ("cycles;rm", "`cycles;rm`"),
            ("cycles\u{1b}[2J", "'\\u{1b}'"),
            ("cyc\u{202e}les", "'\\u{202e}'"),
            (&"x".repeat(257), "longer than any"),
        ] {
            let error = refused(text);
            assert!(error.what.contains(part) && !error.cure.is_empty(), "{text}: {error}");
        }
    }
}

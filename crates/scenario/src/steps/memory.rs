//! A step on a region: `punch seg 1MiB chunk 4KiB pause 10us`.

use super::{StepReader, Token};
use crate::document::quoted;
use crate::quantity::{parse_bytes, shown_bytes};
use crate::refusal::Problem;
use crate::{schema, words};
use plan::{MemoryStep, MemoryVerb, Nanos, PAGE_BYTES, Pages, Region};

/// What may stand behind a region, in this order, beside a size.
const CHUNK: &str = "chunk";
const PAUSE: &str = "pause";

impl<'a> StepReader<'a> {
    /// The region that a verb works on, and how much of it a pass does.
    pub(super) fn memory(&mut self, verb: MemoryVerb) -> Option<MemoryStep> {
        let index = self.region(verb.name())?;
        let region = &self.scope.regions[index];
        self.suits(verb, region)?;
        let bytes = match self.peek() {
            Some(word) if word.text.starts_with(|c: char| c.is_ascii_digit()) => {
                self.take();
                self.size(word, verb, region, region.bytes)?
            }
            _ => region.bytes,
        };
        let chunk = match self.keyword(CHUNK, verb)? {
            true => self.chunk(verb, region, bytes)?,
            false => bytes,
        };
        self.goes_round(verb, region, bytes, chunk)?;
        let pause = match self.keyword(PAUSE, verb)? {
            true => {
                let why = "a longer one would hold up the run's end, as a long `sleep` would";
                self.duration(PAUSE, &example(verb, region), schema::PAUSE, why)?
            }
            false => Nanos(0),
        };
        Some(MemoryStep { verb, region: index as u32, bytes, chunk, pause })
    }

    /// Whether the verb goes with such a region, which the last token names.
    fn suits(&mut self, verb: MemoryVerb, region: &Region) -> Option<()> {
        let name = &region.name;
        let (label, cure) = match (verb, region.shared) {
            (MemoryVerb::Punch | MemoryVerb::Remove, false) => (
                "private memory: there is nobody else to take it from",
                format!("write shared = true under [region.{name}], or give it back with \"dontneed {name}\""),
            ),
            (MemoryVerb::Map | MemoryVerb::Free, true) => (
                "shared memory: it is there for all processes before the window",
                format!("declare a private region for `{}`: one without `shared`", verb.name()),
            ),
            (MemoryVerb::Free, false) if region.pages != Pages::Small => (
                "`malloc` chooses its pages itself",
                format!("leave `pages` out under [region.{name}], or write \"map {name}\" and \"unmap {name}\""),
            ),
            _ => return Some(()),
        };
        let place = self.tokens[self.next - 1].place.clone();
        let what = format!("`{}` does not go with region `{name}`", verb.name());
        self.refuse(Problem::at(&place, what).label(label).cure(cure))
    }

    /// Whether the next token is that word, which is then taken.
    fn keyword(&mut self, keyword: &str, verb: MemoryVerb) -> Option<bool> {
        let Some(word) = self.peek() else { return Some(false) };
        if word.text == keyword {
            self.take();
            return Some(true);
        }
        if [CHUNK, PAUSE].contains(&word.text.as_str()) || words::nearest(&word.text, &[keyword]).is_none() {
            return Some(false);
        }
        let problem = Problem::at(&word.place, format!("unexpected {} behind the region", quoted(&word.text)));
        let cure =
            format!("write \"{} NAME 1MiB chunk 64KiB pause 10us\", or leave out what you do not need", verb.name());
        self.refuse(problem.label(format!("did you mean `{keyword}`?")).cure(cure))
    }

    fn chunk(&mut self, verb: MemoryVerb, region: &Region, bytes: u64) -> Option<u64> {
        let word = self.expect("the size of a chunk", &format!("write \"{}\"", example(verb, region)))?;
        let chunk = self.size(word, verb, region, bytes)?;
        if bytes.is_multiple_of(chunk) {
            return Some(chunk);
        }
        let what = format!("{} are no whole number of chunks of {}", shown_bytes(bytes), words::shown(&word.text));
        self.refuse(
            Problem::at(&word.place, what)
                .label("the last chunk would be shorter than the others")
                .cure("write a size that divides what a pass does"),
        )
    }

    /// A size of whole pages, up to `most`; `malloc` takes any.
    fn size(&mut self, word: &Token, verb: MemoryVerb, region: &Region, most: u64) -> Option<u64> {
        let unit = match verb {
            MemoryVerb::Free => 1,
            MemoryVerb::Touch | MemoryVerb::Reuse => PAGE_BYTES,
            _ => region.pages.bytes(),
        };
        let problem = match parse_bytes(&word.text) {
            Ok(bytes) if bytes > 0 && bytes <= most && bytes.is_multiple_of(unit) => return Some(bytes),
            Ok(bytes) if bytes > most || bytes == 0 => {
                let label = format!("not within {} to {}", shown_bytes(unit), shown_bytes(most));
                let cure = format!("write a smaller size, or a larger one under [region.{}]", region.name);
                let cure = if bytes == 0 { "leave the size out for all of the region".to_owned() } else { cure };
                let what =
                    format!("`{}` cannot do {} of region `{}`", verb.name(), words::shown(&word.text), region.name);
                Problem::at(&word.place, what).label(label).cure(cure)
            }
            Ok(bytes) => Problem::at(&word.place, format!("{} end in the middle of a page", words::shown(&word.text)))
                .label(format!("{bytes} bytes are no whole number of pages of {}", shown_bytes(unit)))
                .cure(format!("write a multiple of {}", shown_bytes(unit))),
            Err(why) => Problem::at(&word.place, format!("{} is no size", quoted(&word.text)))
                .label(why)
                .cure("write a whole number and a unit without a space: \"64KiB\", \"1MiB\""),
        };
        self.refuse(problem)
    }

    /// Passes go round the region in chunks, so that none may go across its end.
    fn goes_round(&mut self, verb: MemoryVerb, region: &Region, bytes: u64, chunk: u64) -> Option<()> {
        let made_for_the_step = !verb.needs_mapping(region.shared);
        if made_for_the_step || region.bytes.is_multiple_of(chunk) {
            return Some(());
        }
        let what = format!("region `{}` is no whole number of {}", region.name, shown_bytes(chunk));
        let place = self.tokens[self.next - 1].place.clone();
        let part = if chunk == bytes { "a pass" } else { "a chunk" };
        self.refuse(
            Problem::at(&place, what)
                .label(format!("{part} would go across its end, {} bytes", region.bytes))
                .cure("passes go round the region: write a size that divides it"),
        )
    }
}

fn example(verb: MemoryVerb, region: &Region) -> String {
    format!("{} {} chunk {} pause 10us", verb.name(), region.name, shown_bytes(region.pages.bytes()))
}

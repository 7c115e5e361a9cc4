//! Why a text was refused, and the message that shows it.

use crate::context::{Place, Texts};
use crate::words;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::fmt;
use std::ops::Range;

/// The most problems shown at once: a screenful. Past it, the first ones are usually the cause of the rest.
const SHOWN_MAX: usize = 10;

/// One problem: what, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    what: String,
    place: Option<Place>,
    label: String,
    cures: Vec<String>,
    also: Vec<(Place, String)>,
}

impl Problem {
    /// A problem with the text at `place`.
    pub fn at(place: &Place, what: impl Into<String>) -> Problem {
        Problem { place: Some(place.clone()), ..Problem::nowhere(what) }
    }

    /// A problem with no place in a text.
    pub fn nowhere(what: impl Into<String>) -> Problem {
        Problem { what: what.into(), place: None, label: String::new(), cures: Vec::new(), also: Vec::new() }
    }

    /// Words beside the underline.
    pub fn label(mut self, label: impl Into<String>) -> Problem {
        self.label = label.into();
        self
    }

    /// Whether `place` is its main place.
    pub fn is_at(&self, place: &Place) -> bool {
        self.place.as_ref() == Some(place)
    }

    /// What to do about it. Several are listed.
    pub fn cure(mut self, cure: impl Into<String>) -> Problem {
        self.cures.push(cure.into());
        self
    }

    /// A second place that has to do with it.
    pub fn also(mut self, place: &Place, label: impl Into<String>) -> Problem {
        self.also.push((place.clone(), label.into()));
        self
    }
}

/// A file that cannot be used as written. Nothing was created.
#[derive(Clone, Debug)]
pub struct Refusal {
    texts: Texts,
    problems: Vec<Problem>,
}

impl Refusal {
    /// Sorts the problems into file order; those of the command line and those without a place come last.
    pub fn new(texts: Texts, mut problems: Vec<Problem>) -> Refusal {
        problems.sort_by(|a, b| (a.place.is_none(), &a.place).cmp(&(b.place.is_none(), &b.place)));
        Refusal { texts, problems }
    }

    /// A problem with a file that could not be read as text.
    pub fn without_text(path: &str, problem: Problem) -> Refusal {
        let texts = Texts { path: path.to_owned(), file: String::new(), flags: Vec::new() };
        Refusal { texts, problems: vec![problem] }
    }

    /// How many problems were found, those beyond the ones shown included.
    pub fn count(&self) -> usize {
        self.problems.len()
    }

    /// The message: for each problem what is wrong, file, line and column, the text underlined, and the cure; in file
    /// order, ten at most. `colour` adds terminal escapes; the file's own control characters are shown escaped
    /// either way. No newline at the end.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let shown = self.problems.iter().take(SHOWN_MAX);
        let mut parts: Vec<String> = shown.map(|problem| self.render_one(problem, &renderer)).collect();
        if let Some(more @ 1..) = self.problems.len().checked_sub(SHOWN_MAX) {
            let note = format!("{more} more problem{} not shown", if more == 1 { "" } else { "s" });
            parts.push(renderer.render(&[Group::with_title(Level::NOTE.secondary_title(note))]));
        }
        parts.join("\n\n")
    }

    fn render_one(&self, problem: &Problem, renderer: &Renderer) -> String {
        let path = words::shown(&self.texts.path);
        let what = words::printable(&problem.what);
        let mut group = Level::ERROR.primary_title(what).elements(Vec::<annotate_snippets::Message<'_>>::new());
        let sources: Vec<(usize, String)> =
            self.texts_of(problem).map(|text| (text, words::same_length(self.texts.of(text)))).collect();
        for (text, source) in &sources {
            group = group.element(self.snippet(problem, *text, source, &path));
        }
        if sources.is_empty() {
            group = group.element(annotate_snippets::Origin::path(path.as_str()));
        }
        for cure in &problem.cures {
            group = group.element(Level::HELP.message(words::printable(cure)));
        }
        renderer.render(&[group])
    }

    /// The texts that a problem has places in, that of the main place first.
    fn texts_of(&self, problem: &Problem) -> impl Iterator<Item = usize> {
        let mut texts: Vec<usize> = Vec::new();
        for place in problem.place.iter().chain(problem.also.iter().map(|(place, _)| place)) {
            if !texts.contains(&place.text) {
                texts.push(place.text);
            }
        }
        texts.into_iter()
    }

    fn snippet<'a>(
        &self,
        problem: &'a Problem,
        text: usize,
        source: &'a str,
        path: &'a str,
    ) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
        let mut snippet = Snippet::source(source);
        snippet = if text == 0 { snippet.path(path) } else { snippet.line_numbering(false) };
        if let Some(place) = problem.place.as_ref().filter(|place| place.text == text) {
            let mark = AnnotationKind::Primary.span(first_line(source, place));
            snippet = snippet.annotation(labelled(mark, &problem.label));
        }
        for (place, label) in problem.also.iter().filter(|(place, _)| place.text == text) {
            let mark = AnnotationKind::Context.span(first_line(source, place));
            snippet = snippet.annotation(labelled(mark, label));
        }
        snippet
    }
}

fn labelled<'a>(mark: annotate_snippets::Annotation<'a>, label: &str) -> annotate_snippets::Annotation<'a> {
    if label.is_empty() { mark } else { mark.label(words::printable(label)) }
}

/// The part of a place that lies on its first line, within the text and on character boundaries.
fn first_line(source: &str, place: &Place) -> Range<usize> {
    let start = source.floor_char_boundary(place.start.min(source.len()));
    let end = source.ceil_char_boundary(place.end.clamp(start, source.len()));
    let line = source[start..end].find(['\n', '\r']).map_or(end, |length| start + length);
    start..line
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Refusal {}

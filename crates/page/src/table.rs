//! Tables: each has a caption, heads with a scope, and room to be moved sideways by keyboard where it is too wide.

use figures::{Figure, NONE};
use maud::{Markup, PreEscaped, Render, html};
use record::Interval;

/// A table under construction.
pub(crate) struct Table {
    caption: String,
    heads: Vec<Markup>,
    words: usize,
    /// From which column on there are words again.
    figures_end: Option<usize>,
    rows: Vec<Vec<Markup>>,
}

impl Table {
    /// A table called `caption`, the first `words` of whose columns hold words, the others figures.
    pub(crate) fn new(caption: impl Into<String>, words: usize, heads: &[&str]) -> Table {
        let heads = heads.iter().map(|head| html! { (head) }).collect();
        Table { caption: caption.into(), heads, words, figures_end: None, rows: Vec::new() }
    }

    /// One more column of figures.
    pub(crate) fn head(&mut self, head: Markup) {
        self.heads.push(head);
    }

    /// One more column of words, behind all figures.
    pub(crate) fn words(&mut self, head: &str) {
        self.figures_end.get_or_insert(self.heads.len());
        self.heads.push(html! { (head) });
    }

    /// A row; its first cell names it.
    pub(crate) fn row(&mut self, cells: Vec<Markup>) {
        self.rows.push(cells);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl Render for Table {
    fn render(&self) -> Markup {
        let end = self.figures_end.unwrap_or(usize::MAX);
        let figure = |index: usize| (self.words..end).contains(&index).then_some("n");
        scrolled(
            &self.caption,
            html! {
                table {
                    caption { (self.caption) }
                    thead { tr {
                        @for (index, head) in self.heads.iter().enumerate() {
                            th scope="col" class=[figure(index)] { (head) }
                        }
                    } }
                    tbody { @for row in &self.rows { tr {
                        @for (index, cell) in row.iter().enumerate() {
                            @if index == 0 { th scope="row" class=[figure(0)] { (cell) } }
                            @else { td class=[figure(index)] { (cell) } }
                        }
                    } } }
                }
            },
        )
    }
}

/// What may be wider than the page: it is moved sideways, by keyboard too.
pub(crate) fn scrolled(name: &str, body: Markup) -> Markup {
    html! { div .wide role="region" aria-label=(name) tabindex="0" { (body) } }
}

/// A figure with its interval.
pub(crate) fn interval(interval: &Interval) -> Markup {
    let Figure { value, ends } = Figure::new(interval);
    html! { (value) @if let Some(ends) = ends { " " span .ends { (ends) } } }
}

/// The same, or the sign that there is none.
pub(crate) fn interval_or_none(of: Option<&Interval>) -> Markup {
    of.map_or_else(none, interval)
}

/// Stands where there is no figure.
pub(crate) fn none() -> Markup {
    html! { span aria-label="none" role="img" { (NONE) } }
}

/// Text with what stands between backquotes as code: how diagnoses name things.
pub(crate) fn prose(text: &str) -> Markup {
    let parts = text.split('`').enumerate();
    html! { @for (index, part) in parts { @if index % 2 == 1 { code { (part) } } @else { (part) } } }
}

/// Reasons for what is missing from a table: each is written once, under a number.
#[derive(Default)]
pub(crate) struct Notes {
    reasons: Vec<String>,
}

impl Notes {
    /// `text` with the number of a reason behind it.
    pub(crate) fn marked(&mut self, text: &str, reason: String) -> Markup {
        let number = self.reasons.iter().position(|known| *known == reason).unwrap_or_else(|| {
            self.reasons.push(reason);
            self.reasons.len() - 1
        });
        html! { (text) " [" (number + 1) "]" }
    }

    /// A cell without a figure.
    pub(crate) fn missing(&mut self, reason: String) -> Markup {
        self.marked(NONE, reason)
    }
}

impl Render for Notes {
    fn render(&self) -> Markup {
        html! { @for (index, reason) in self.reasons.iter().enumerate() {
            p .note { "[" (index + 1) "] " (prose(reason)) }
        } }
    }
}

/// A figure of the page: a drawing whose caption says what it shows, and the same values beside it.
pub(crate) fn figure(id: &str, finding: Markup, drawing: Markup, values: impl Render) -> Markup {
    html! {
        figure {
            figcaption id=(id) { (finding) }
            div .pair { div .drawing { (drawing) } div .values { (values.render()) } }
        }
    }
}

/// Something longer that opens on demand.
pub(crate) fn details(summary: &str, body: impl Render) -> Markup {
    html! { details { summary { (summary) } (body.render()) } }
}

/// Markup that was made here.
pub(crate) fn trusted(text: String) -> Markup {
    PreEscaped(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_text_is_text() {
        let mut table = Table::new("<b>caption</b>", 1, &["<i>head</i>"]);
        table.row(vec![prose("a `<script>` b")]);
        let shown = table.render().into_string();
        assert!(!shown.contains("<script>") && !shown.contains("<i>") && !shown.contains("<b>"), "{shown}");
        assert!(shown.contains("a <code>&lt;script&gt;</code> b"), "{shown}");
    }

    #[test]
    fn a_reason_has_one_number_however_often_it_is_given() {
        let mut notes = Notes::default();
        let cells = ["a", "b", "a"].map(|reason| notes.missing(reason.to_owned()).into_string());
        assert_eq!(cells, ["– [1]", "– [2]", "– [1]"]);
    }
}

//! The document around the sections.

use crate::Section;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use record::Run;

const STYLE: &str = include_str!("style.css");

/// Nothing is fetched, run or sent, whatever a text in the run may hold. The style stands in the page, and so does the
/// empty icon, for which a browser would else ask the host.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

pub(crate) fn document(run: &Run, sections: &[Section]) -> String {
    let title = &run.scenario.title;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content=(format!("coordinator {}", run.tool.version));
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a .skip href="#answer" { "Skip to the answer" }
                header {
                    h1 { (title) }
                    @if !run.scenario.question.is_empty() { p .question { (run.scenario.question) } }
                    p .host { (host(run)) }
                }
                (contents(sections))
                main { @for one in sections {
                    section id=(one.id) aria-labelledby=(format!("{}-h", one.id)) {
                        h2 id=(format!("{}-h", one.id)) { (one.heading) }
                        (one.body)
                    }
                } }
                footer { p {
                    "Written by coordinator " (run.tool.version) " from " code { "run.json" }
                    ", which stands beside this page and holds every figure of it. Nothing is fetched from anywhere."
                } }
            }
        }
    };
    shown(&page.into_string())
}

fn contents(sections: &[Section]) -> Markup {
    html! { nav aria-label="On this page" { ul { @for one in sections {
        li { a href=(format!("#{}", one.id)) { (one.heading) } }
    } } } }
}

fn host(run: &Run) -> String {
    let host = &run.host;
    let cpus = if host.cpus == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", host.cpus) };
    let hypervisor = match &host.hypervisor {
        Some(name) => format!("virtual machine ({name})"),
        None => "no hypervisor seen".to_owned(),
    };
    format!("{}, {cpus}, {hypervisor}, Linux {}; {}", host.cpu_model, host.kernel, run.started_utc)
}

/// The page with every character written out that would reorder or hide a part of it. Done once, at the end: no section
/// can forget it.
fn shown(page: &str) -> String {
    let mut safe = String::with_capacity(page.len());
    for c in page.chars() {
        match c {
            '\n' => safe.push(c),
            c if plan::is_plain(c) => safe.push(c),
            c => safe.extend(c.escape_default()),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn what_would_reorder_a_line_is_written_out() {
        assert_eq!(shown("a\u{202e}b\u{0}c\nd"), "a\\u{202e}b\\u{0}c\nd");
    }
}

//! The listings of `run --show-code`: what each worker really executes, beside the steps it comes from.

use crate::report::style::{Style, Tone};
use crate::report::text::{escaped, wrapped};

/// One worker's compiled loop.
pub(crate) struct Listing<'a> {
    /// The arm's name.
    pub(crate) arm: &'a str,
    /// The role's name.
    pub(crate) role: &'a str,
    /// The worker's index over all roles.
    pub(crate) worker: u32,
    /// The listing, a line an instruction or step.
    pub(crate) text: &'a str,
}

/// What holds for all listings: a worker compiles for itself, once it is pinned.
const HEADING: &str = "Compiled by the coordinator, which is not pinned: workers compile the same steps each on its \
                       own CPU, where the turns of a `work` step may come out differently.";

/// The listings under a heading each. Lines of code are neither cut nor wrapped.
pub(crate) fn render(listings: &[Listing<'_>], style: &Style) -> String {
    let mut page = String::new();
    for line in wrapped(HEADING, style.width(), "", "") {
        page.push_str(&line);
        page.push('\n');
    }
    for listing in listings {
        page.push('\n');
        let heading = format!("{}, role {}, worker {}", escaped(listing.arm), escaped(listing.role), listing.worker);
        page.push_str(&style.paint(Tone::Strong, &heading));
        page.push('\n');
        for line in listing.text.lines() {
            page.push_str(format!("  {}", escaped(&line.replace('\t', "    "))).trim_end());
            page.push('\n');
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_listing_has_a_heading_and_all_its_lines() {
        let text = "step 0: add hits[me]\n\tlock addq $1, 8(%rdi)\n\n\tret";
        let listings = [0, 1].map(|worker| Listing { arm: "packed", role: "counter\u{1b}[2J", worker, text });
        let shown = render(&listings, &Style::plain(40));
        let (heading, shown) = shown.split_once("\n\n").unwrap();
        assert!(heading.contains("not pinned") && heading.lines().all(|line| line.len() <= 40), "{heading}");
        let expected = "packed, role counter\\u{1b}[2J, worker 0\n  step 0: add hits[me]\n      lock addq $1, 8(%rdi)\n\
                        \n      ret\n\npacked, role counter\\u{1b}[2J, worker 1\n";
        assert!(shown.starts_with(expected), "{shown}");
        assert_eq!(shown.matches("lock addq").count(), 2);
    }
}

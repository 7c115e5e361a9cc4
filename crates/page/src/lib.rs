//! A run as one self-contained page: `report.html`. It asks nothing of any host, needs no script, and can be read in
//! print, dark or light, by keyboard, by a screen reader and on a telephone.
//!
//! Nothing is computed here that a figure rests on: each stands in [`record::Run`] already, and a section puts it where
//! a reader looks for it, as a chart and as a table beside it. What is limited (`limits`) is limited aloud.
//!
//! `chart` draws with plotters and its SVG back end; the map of the lines (`lines`) and the map of distances
//! (`distances`) are tables of our own. Each section is a module that returns its markup.
#![forbid(unsafe_code)]

mod answer;
mod axis;
mod chart;
mod code;
mod counters;
mod diagnosis;
mod distances;
mod frame;
mod latency;
mod limits;
mod lines;
mod names;
mod reproduce;
mod shares;
mod table;
mod throughput;
mod timeline;
mod together;

use maud::Markup;
use record::{Run, Topology};

/// A section: where the table of contents leads, and what stands there.
struct Section {
    id: &'static str,
    heading: &'static str,
    body: Markup,
}

/// The page of `run`, a whole HTML document. `topology` is what `coordinator topology --measure --json` printed on the
/// same machine, for the map of distances; without it that map holds what the run itself probed.
///
/// The same run gives the same page, to the byte. Texts from the scenario, the host or the file are escaped: markup in
/// them is shown, and characters that would reorder or hide a line are written out.
pub fn page(run: &Run, topology: Option<&Topology>) -> String {
    let arms = names::Arms::of(run);
    let section = |id, heading, body| Section { id, heading, body };
    let sections = [
        section("answer", "The answer", answer::section(run, &arms)),
        section("throughput", "Throughput, and who gets it", throughput::section(run, &arms)),
        section("latency", "How long single operations take", latency::section(&arms)),
        section("lines", "The cache lines, hottest first", lines::section(&arms)),
        section("together", "Alone against together", together::section(run, &arms)),
        section("counters", "What was counted, and what was not", counters::section(run, &arms)),
        section("timeline", "Through the window", timeline::section(&arms)),
        section("distances", "How far the CPUs are apart", distances::section(run, topology)),
        section("code", "What each worker executes", code::section(run)),
        section("diagnosis", "Diagnosis, cure, gain", diagnosis::section(run, &arms)),
        section("trust", "How far to trust it", reproduce::trust(run, &arms)),
        section("again", "The same again", reproduce::again(run)),
    ];
    frame::document(run, &sections)
}

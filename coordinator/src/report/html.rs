//! A run's page for a browser, as a file: what stands on it is `crates/page`'s, and is held here against whole records.

use crate::report::replace;
use crate::report::write_error::WriteError;
use std::path::Path;

/// What to do where a page cannot be written beside its run.
const CURE: &str = "copy the run's folder to a place that you may write to, and name it there";

/// Writes a page of a saved run to `path`, in place of one that stands there: whole or not at all.
///
/// # Errors
/// [`WriteError`]; then what stood there still stands.
pub(crate) fn write(page: &str, path: &Path) -> Result<(), WriteError> {
    replace::whole(page, path).map_err(|error| WriteError { cure: CURE, ..error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::names::PAGE;
    use crate::report::testing;
    use record::Run;

    /// The page as text: without its style, without tags, with spaces as they show.
    fn text(run: &Run) -> String {
        let page = page::page(run, None);
        let (_, body) = page.split_once("</style>").unwrap();
        let mut text = String::new();
        let mut inside = false;
        for c in body.chars() {
            match c {
                '<' => inside = true,
                '>' if inside => inside = false,
                c if !inside => text.push(c),
                _ => {}
            }
        }
        let text = text.replace('\u{a0}', " ").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn assert_says(run: &Run, parts: &[&str]) {
        let text = text(run);
        for part in parts {
            assert!(text.contains(part), "`{part}` is not in: {text}");
        }
    }

    #[test]
    fn the_answer_comes_first_with_its_cure_and_its_figures() {
        let run = testing::false_sharing();
        assert_says(
            &run,
            &[
                "False sharing (high): ",
                "padded-64 is the fastest of 3",
                "a pass of packed takes 70 (65–74) times as long",
                "not told from padded-128",
                "This run could have told an effect of 3.1 %.",
                "predicted 5, seen 70 (65–74): predicted 13.9 × too low, outside the interval",
                "predicted 70, seen 70 (65–74): the prediction lies in the interval",
                "not seen: arm padded-64 is not part of this run",
                "2 more are left out",
                "coordinator run scenarios/false_sharing.toml --seed 42",
                "step 0: bump hits[me]",
                "⚠ no_pmu",
            ],
        );
    }

    #[test]
    fn what_could_not_be_had_is_told_with_its_reason_and_never_a_nought() {
        assert_says(
            &testing::poor(),
            &[
                "not applicable here: needs 4 CPUs, this host has 2",
                "unresolved: 2 of 10 repetitions kept in one regime, 3 are needed",
                "? undecided",
                "how small an effect the run could have seen is unknown",
            ],
        );
        assert_says(
            &testing::every_reading(),
            &[
                "not permitted: perf_event_paranoid is 4; cure: sudo sysctl kernel.perf_event_paranoid=2",
                "on a counter for 63 % of the window, scaled up to all of it",
            ],
        );
        let mut old = testing::false_sharing();
        (old.code, old.arms[0].layout) = (None, Vec::new());
        assert_says(&old, &["This record holds no machine code.", "No pass, wait or batch was timed one by one."]);
    }

    #[test]
    fn what_was_modelled_is_called_so() {
        assert_says(
            &testing::modelled(),
            &["moves 0.471 times a pass (modelled)", "writing hits[1] takes it from hits[0] (50 %)", "0.471 modelled"],
        );
    }

    #[test]
    fn times_and_a_second_role_are_there() {
        assert_says(
            &testing::open_loop(),
            &["Passes of counter, from when each was due: half of them within 412 ns", "1 900 543", "Waits for "],
        );
        assert_says(&testing::two_roles(), &["Role reader", "L1D requests to L2"]);
    }

    #[test]
    fn one_record_gives_one_page() {
        let run = testing::mutex();
        let again: Run = serde_json::from_str(&serde_json::to_string(&run).unwrap()).unwrap();
        assert_eq!(page::page(&run, None), page::page(&again, None));
    }

    #[test]
    fn a_page_that_cannot_be_written_beside_its_run_has_a_cure_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let error = write("page", &folder.path().join("gone").join(PAGE)).unwrap_err().to_string();
        assert!(error.contains("cannot write") && error.contains("copy the run's folder"), "{error}");
    }
}

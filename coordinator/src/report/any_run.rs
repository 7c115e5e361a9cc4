//! Whatever a saved run holds, looking back at it ends, with nothing on the terminal to obey: bent records through
//! everything that reads them here. Pages are looked at in `crates/hostile`.

use crate::export::points::points;
use crate::export::{line_protocol, tidy};
use crate::report::style::{ColourChoice, Style};
use crate::report::{compare, terminal, testing};
use crate::saved::{Saved, SavedError};
use analysis::compare::{Condition, NamedRun, judge};
use hostile::sound::Sound;
use hostile::{Reached, bend, bent, hold, through};
use record::Run;
use serde_json::Value;
use std::path::Path;

fn runs() -> Vec<Run> {
    let made = [
        testing::false_sharing(),
        testing::mutex(),
        testing::open_loop(),
        testing::stalled(),
        testing::every_reading(),
        testing::poor(),
        testing::modelled(),
        testing::two_roles(),
    ];
    let real = serde_json::from_slice(&hostile::sound::RUN[0].bytes).unwrap();
    made.into_iter().chain([real]).collect()
}

/// Two widths, of which one is coloured: its own escape sequences are looked at elsewhere.
fn shown(run: &Run) {
    for width in [40, 80] {
        hold::terminal(&terminal::render(run, Some(Path::new("results/x")), &Style::plain(width)));
    }
    terminal::render(run, None, &Style::decide(ColourChoice::Always, Some(100), |_| None, false));
}

fn compared(run: &Run, sound: &Run) {
    let named = |path, run| NamedRun { path, run };
    for pair in [vec![named("a/run.json", run), named("b/run.json", sound)], vec![named("a/run.json", run)]] {
        let Ok(mut comparison) = analysis::compare::compare(&pair, None) else { continue };
        let condition = Condition::parse("packed slower 5%").unwrap();
        if let Err(error) = judge(&mut comparison, &[condition]) {
            // The name of an arm stands in it: `exit` escapes it.
            assert!(!error.to_string().is_empty());
        }
        hold::terminal(&compare::render(&comparison, &Style::plain(80)));
        hold::terminal(&compare::markdown::render(&comparison));
    }
}

fn exported(saved: &Saved) {
    match points(saved) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(exported) => {
            let lines = line_protocol::lines(&exported.points);
            assert!(lines.iter().all(|line| line.ends_with('\n')));
            tidy::write(&exported.points, std::io::sink()).unwrap();
        }
    }
}

/// What the commands that look back do with the bytes of a `run.json`.
fn look_back(path: &Path, bytes: &[u8], sound: &Run) -> Reached {
    std::fs::write(path, bytes).unwrap();
    match Saved::read(path) {
        Err(error) => {
            hold::terminal(&error.to_string());
            assert!(!matches!(error, SavedError::Unreadable { .. }), "{error}");
            Reached::Refused
        }
        Ok(saved) => {
            shown(&saved.run);
            compared(&saved.run, sound);
            exported(&saved);
            Reached::Inside
        }
    }
}

/// A place in memory, where there is one, for files that are written a million times.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

#[test]
fn any_run_is_looked_back_at_without_harm() {
    let (runs, folder) = (runs(), folder());
    let values: Vec<Value> = runs.iter().map(|run| serde_json::to_value(run).unwrap()).collect();
    let sound = |(number, value): (usize, &Value)| Sound {
        name: number.to_string(),
        bytes: serde_json::to_vec(value).unwrap(),
        read: Vec::new(),
    };
    let sound: Vec<Sound> = values.iter().enumerate().map(sound).collect();
    let inputs = bent(&sound, |of, moves| bend::json(&values[of.name.parse::<usize>().unwrap()], moves));
    through("runs looked back at", inputs, |bytes| look_back(&folder.path().join("bent.json"), bytes, &runs[0]));
}

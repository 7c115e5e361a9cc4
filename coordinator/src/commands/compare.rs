//! `compare`: saved runs against each other, as a page, as JSON or as Markdown, and conditions that decide how it ends.

use crate::cli::CompareOptions;
use crate::exit::{CommandError, Ending};
use crate::report::compare as screen;
use crate::report::data;
use crate::report::style::{ColourChoice, Style};
use crate::report::window;
use crate::saved::Saved;
use analysis::compare::{Condition, NamedRun, judge};
use record::{Comparison, ConditionState, Verdict};
use std::io::Write;

pub(crate) fn compare(options: &CompareOptions, colour: ColourChoice) -> Result<Ending, CommandError> {
    // Wrong usage is told before anything is read.
    let conditions: Result<Vec<Condition>, _> = options.fail_if.iter().map(|text| Condition::parse(text)).collect();
    let conditions = conditions.map_err(usage)?;
    let saved: Result<Vec<Saved>, _> = options.runs.iter().map(|run| Saved::read(run)).collect();
    let saved = saved.map_err(usage)?;
    let paths: Vec<String> = saved.iter().map(|saved| saved.path.display().to_string()).collect();
    let runs: Vec<NamedRun> =
        saved.iter().zip(&paths).map(|(saved, path)| NamedRun { path, run: &saved.run }).collect();
    let mut comparison = analysis::compare::compare(&runs, options.base.as_deref()).map_err(usage)?;
    judge(&mut comparison, &conditions).map_err(usage)?;
    print(&comparison, options, colour)?;
    Ok(ending(&comparison))
}

fn usage(error: impl std::error::Error) -> CommandError {
    CommandError::Usage(error.to_string())
}

fn print(comparison: &Comparison, options: &CompareOptions, colour: ColourChoice) -> Result<(), CommandError> {
    let mut out = std::io::stdout().lock();
    if options.json {
        data::json(comparison)?;
    } else if options.markdown {
        out.write_all(screen::markdown::render(comparison).as_bytes())?;
    } else {
        let style = Style::for_stdout(colour, window::columns(std::io::stdout()));
        out.write_all(screen::render(comparison, &style).as_bytes())?;
    }
    out.flush()?;
    Ok(())
}

fn ending(comparison: &Comparison) -> Ending {
    match comparison.conditions.iter().map(|condition| condition.state).max() {
        Some(ConditionState::Fails) => Ending::ExpectationFails,
        Some(ConditionState::Undecided) => Ending::Inconclusive,
        Some(ConditionState::Passes) => Ending::Done,
        None if comparison.rows.iter().all(|row| row.verdict == Verdict::Unresolved) => Ending::Inconclusive,
        None => Ending::Done,
    }
}

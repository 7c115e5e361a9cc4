//! `advise`: which layout of a scenario's struct is worth its memory. Candidates, the model's ranking, the best of them
//! measured side by side, advice.

mod outcome;
mod question;
mod ranking;
mod trial;

use crate::cli::AdviseOptions;
use crate::exit::{CommandError, Ending, say};
use crate::leftovers;
use crate::machine::Machine;
use crate::report::advise as page;
use crate::report::data;
use crate::report::style::{ColourChoice, Style};
use crate::report::window;
use crate::signals::Signals;
use ranking::Ranking;
use record::AdviseRun;
use std::io::Write;
use std::time::{Duration, Instant, SystemTime};
use trial::Lab;

/// The time that the command was given, and what of it is gone.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Clock {
    started: Instant,
    budget: Duration,
}

impl Clock {
    /// What is left of a share of the budget; nothing once that is gone.
    pub(crate) fn left_of(&self, share: f64) -> Duration {
        self.budget.mul_f64(share).saturating_sub(self.started.elapsed())
    }
}

/// Share of the budget by whose end the model has to be done with this machine, and with the others: what it has not
/// come to by then is not modelled.
const RANKED_BY: f64 = 0.15;
const ELSEWHERE_BY: f64 = 0.25;

pub(crate) fn advise(options: &AdviseOptions, colour: ColourChoice) -> Result<Ending, CommandError> {
    let started = SystemTime::now();
    let clock = Clock { started: Instant::now(), budget: options.budget };
    let machine = Machine::read().map_err(CommandError::Failed)?;
    let seed = options.seed.unwrap_or_else(|| u64::from(rand::random::<u32>()));
    let question = question::ask(options, &machine.topology, seed)?;
    leftovers::sweep();
    let signals = Signals::block()?;
    let lab = Lab { machine: &machine, signals: &signals, seed, quiet: options.quiet };
    let (pilot, each) = lab.pilot(&question, clock)?;
    let mut ranking = Ranking::make(&question, &pilot, &machine.topology, seed, clock);
    let chosen = ranking.choose(&question, usize::from(options.layouts), trial::affordable(clock, each));
    ranking.elsewhere(&question, &chosen, seed, clock);
    let measured = lab.measure(&question, &chosen, (clock, each))?;
    drop(signals);
    let run = outcome::assemble(
        options,
        &question,
        &ranking,
        measured,
        outcome::Origin { machine: &machine, seed, started, clock },
    );
    show(options, &run, colour)?;
    Ok(if run.advice.conclusive { Ending::Done } else { Ending::Inconclusive })
}

/// The page or the JSON on standard output; with `--emit` the struct alone, and the page on standard error.
fn show(options: &AdviseOptions, run: &AdviseRun, colour: ColourChoice) -> Result<(), CommandError> {
    let style = Style::for_stdout(colour, window::columns(std::io::stdout()));
    let mut out = std::io::stdout().lock();
    match (&run.emitted, options.json) {
        (_, true) => data::json(run)?,
        (Some(text), false) => {
            if !options.quiet {
                let plain = Style::for_stdout(ColourChoice::Never, window::columns(std::io::stderr()));
                say(page::render(run, &plain).trim_end());
            }
            out.write_all(text.as_bytes())?;
        }
        (None, false) => out.write_all(page::render(run, &style).as_bytes())?,
    }
    Ok(out.flush()?)
}

//! Side-by-side measurements of the lab's own parts: `cargo run --release -p bench -- all` makes all that take less than an
//! hour, the other commands one each. `bench/README.md` says how.

mod advice;
mod all;
mod attach;
mod cli;
mod compile;
mod contest;
mod coordinator;
mod grading;
mod latency;
mod marks;
mod model;
mod order;
mod peer;
mod predictions;
mod rounds;
mod schedule;
mod sharing;
mod startup;
mod table;
mod tracing;
mod verdict;
mod watching;

use clap::Parser;
use cli::{AdviceArguments, AllArguments, Arguments, AttachArguments, Command, ContestArguments, GradingArguments};
use cli::{ModelArguments, PredictionsArguments, TracingArguments};
use contest::{Contest, DuelError, Setting, Subject};
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|first| first == ::attach::symbols::ARGUMENT) {
        return ::attach::symbols::serve(); // a watch of `bench -- attach` started this process
    }
    match Arguments::parse().command {
        Command::All(told) => measure_all(&told),
        Command::Loops(told) => fight(Contest::Loops, &contest::steps(&told.only, told.padded_only), &told.contest),
        Command::Counting(told) => {
            fight(Contest::Counting, &contest::steps(&told.only, told.padded_only), &told.contest)
        }
        Command::Locks(told) => fight(Contest::Locks, &contest::locks(&told.only, &told.settings), &told.contest),
        Command::Compile => end::<DuelError>(Ok((compile::text(), 0))),
        Command::Tracing(told) => trace(&told),
        Command::Predictions(told) => predict(&told),
        Command::Grading(told) => grade(&told),
        Command::Advice(told) => ask(&told),
        Command::Attach(told) => watch(&told),
        Command::Model(told) => time_model(&told),
    }
}

/// Whether it is among those asked for; nothing asked for is all.
fn is_asked(asked: &[String], name: &str) -> bool {
    asked.is_empty() || asked.iter().any(|a| a == name)
}

/// Prints what was told and ends with its status; or says why there is none.
fn end<E: std::fmt::Display>(told: Result<(String, u8), E>) -> ExitCode {
    match told {
        Ok((text, status)) => {
            println!("{text}");
            ExitCode::from(status)
        }
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure_all(told: &AllArguments) -> ExitCode {
    let report = all::measure(&told.only, told.quick);
    let written = told.write.iter().try_for_each(|file| report.write(file));
    end(written.map(|()| (if told.json { report.json() } else { report.markdown() }, report.exit_status())))
}

fn fight(contest: Contest, over: &[(Setting, Subject)], told: &ContestArguments) -> ExitCode {
    let outcome = contest::fight(contest, over, &told.terms());
    if let Err(error @ DuelError::TooFewCpus(_)) = &outcome {
        eprintln!("bench: {error}");
        return ExitCode::from(4);
    }
    end(outcome.map(|report| (if told.json { report.json() } else { report.table() }, report.exit_status())))
}

fn trace(told: &TracingArguments) -> ExitCode {
    end(tracing::measure(told.rounds).map(|report| (if told.json { report.json() } else { report.text() }, 0)))
}

fn predict(told: &PredictionsArguments) -> ExitCode {
    let request = predictions::Request { scenarios: &told.scenarios, half: told.half, only: &told.only };
    end(predictions::measure(&request).and_then(|report| {
        told.write.iter().try_for_each(|file| predictions::MARKS.replace(file, &report.markdown()))?;
        Ok((if told.json { report.json() } else { report.markdown() }, report.exit_status()))
    }))
}

fn grade(told: &GradingArguments) -> ExitCode {
    let request = grading::Request {
        exercises: &told.exercises,
        only: &told.only,
        file: &told.file,
        runs: told.runs,
        repetitions: told.repetitions,
    };
    end(grading::measure(&request)
        .map(|report| (if told.json { report.json() } else { report.markdown() }, report.exit_status())))
}

fn ask(told: &AdviceArguments) -> ExitCode {
    let request = advice::Request {
        cases: &told.cases,
        only: &told.only,
        twists: &told.twists,
        budget: &told.budget,
        repetitions: told.repetitions,
    };
    end(advice::measure(&request).and_then(|report| {
        told.write.iter().try_for_each(|file| advice::MARKS.replace(file, &report.markdown()))?;
        Ok((if told.json { report.json() } else { report.markdown() }, report.exit_status()))
    }))
}

fn watch(told: &AttachArguments) -> ExitCode {
    let outcome = watched(told);
    if let Err(attach::AttachError::Cpus(error @ DuelError::TooFewCpus(_))) = &outcome {
        eprintln!("bench: {error}");
        return ExitCode::from(4);
    }
    end(outcome)
}

fn watched(told: &AttachArguments) -> Result<(String, u8), attach::AttachError> {
    let seconds = told.seconds.unwrap_or(if told.answers.is_some() { 4.0 } else { 2.0 });
    let time = Duration::from_secs_f64(seconds);
    if let Some(watches) = told.answers {
        let report = attach::answers(watches, time)?;
        told.write.iter().try_for_each(|file| attach::ANSWER_MARKS.replace(file, &report.markdown()))?;
        return Ok((if told.json { report.json() } else { report.markdown() }, report.exit_status()));
    }
    if let Some(watches) = told.alarms {
        let report = attach::alarms(watches, time)?;
        told.write.iter().try_for_each(|file| attach::ALARM_MARKS.replace(file, &report.markdown()))?;
        return Ok((if told.json { report.json() } else { report.markdown() }, report.exit_status()));
    }
    let report = attach::measure(&attach::Request { only: &told.only, time, quads: told.quads, seed: told.seed })?;
    told.write.iter().try_for_each(|file| attach::MARKS.replace(file, &report.markdown()))?;
    Ok((if told.json { report.json() } else { report.markdown() }, report.exit_status()))
}

fn time_model(told: &ModelArguments) -> ExitCode {
    end(match &told.peak {
        Some(order) => model::peak(order).map(|kib| (kib.to_string(), 0)),
        None => model::measure(told.rounds)
            .map(|report| (if told.json { report.json() } else { report.text() }, report.exit_status())),
    })
}

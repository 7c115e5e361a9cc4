//! The laboratory's command line. A run is one arrow: scenario, plan, program, observations, findings, report; each
//! stage is one call in [`commands::run`].

mod aftermath;
mod assemble;
mod campaign;
mod circle;
mod cli;
mod collect;
mod commands;
mod cures;
mod distances;
mod estimate;
mod exit;
mod export;
mod foreign_file;
mod hold;
mod host_machine;
mod launch;
mod leftovers;
mod machine;
mod modelling;
mod needs;
mod overrides;
mod pages;
mod provision;
mod repetition;
mod report;
mod saved;
mod shell;
mod signals;
mod stacks;
mod supervise;

use clap::Parser;
use cli::{Cli, Command};
use std::process::ExitCode;

/// Also the coordinator's; what it is for shows in a worker process with threads.
#[global_allocator]
static HEAP: worker::Heap = worker::Heap;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(first) if first == worker::WORKER_ARGUMENT => {
            let own: Vec<String> = arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
            return worker::main(&own);
        }
        Some(first) if first == attach::symbols::ARGUMENT => return attach::symbols::serve(),
        _ => {}
    }
    signals::ignore_file_size_limit();
    let cli = Cli::try_parse().unwrap_or_else(|error| exit::usage(&error));
    let colour = report::style::colour(cli.colour);
    let outcome = match cli.command {
        Command::Run(options) => commands::run::run(&options, cli.colour),
        Command::Check(options) => commands::check::check(&options, colour),
        Command::List(options) => commands::list::list(&options, colour),
        Command::Doctor(options) => commands::doctor::doctor(&options, cli.colour),
        Command::Model(options) => commands::model::model(&options, cli.colour),
        Command::Topology(options) => commands::topology::topology(&options, cli.colour),
        Command::Advise(options) => commands::advise::advise(&options, cli.colour),
        Command::Import(options) => commands::import::import(&options, cli.colour),
        Command::Attach(options) => commands::attach::attach(&options, cli.colour),
        Command::Compare(options) => commands::compare::compare(&options, cli.colour),
        Command::Export(options) => commands::export::export(&options),
        Command::Explain(options) => commands::explain::explain(&options, cli.colour),
        Command::Schema => commands::schema::schema(),
        Command::Completions(options) => commands::completions::completions(&options),
        Command::Man(options) => commands::man::man(&options),
        Command::Report(options) => commands::report::report(&options),
        Command::Grade(options) => commands::grade::grade(&options, cli.colour),
        Command::Clean => commands::clean::clean(),
    };
    exit::code(outcome, colour)
}

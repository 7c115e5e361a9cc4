//! `completions`: what a shell can put behind the program's name.

use crate::cli::{Cli, CompletionsOptions};
use crate::exit::{CommandError, Ending};
use clap::CommandFactory;
use std::io::Write;

pub(crate) fn completions(options: &CompletionsOptions) -> Result<Ending, CommandError> {
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    // Generating panics where it cannot write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut command, name, &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(Ending::Done)
}

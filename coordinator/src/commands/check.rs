//! `check`: reads scenario files and binds them to this host, without running them.

use crate::cli::CheckOptions;
use crate::estimate::expected_length;
use crate::exit::{CommandError, Ending, say};
use crate::machine::Machine;
use crate::report::text::shown;
use std::io::Write;
use std::path::Path;

pub(crate) fn check(options: &CheckOptions, colour: bool) -> Result<Ending, CommandError> {
    let topology = Machine::topology().map_err(CommandError::Failed)?;
    let mut ending = Ending::Done;
    for file in &options.files {
        match check_one(file, &topology) {
            Ok(line) => writeln!(std::io::stdout().lock(), "{line}")?,
            Err(refusal) => {
                ending = Ending::BadInput;
                say(&refusal.render(colour));
            }
        }
    }
    Ok(ending)
}

fn check_one(file: &Path, topology: &plan::Topology) -> Result<String, scenario::Refusal> {
    let loaded = scenario::load(file)?;
    let bound = plan::bind(&loaded.plan, topology, 0).map_err(|error| loaded.source.refuse(&error))?;
    let cannot = bound.arms.iter().filter(|arm| arm.program.is_err()).count();
    let here = match cannot {
        0 => String::new(),
        n => format!(", {n} of them not on this host"),
    };
    let length = expected_length(&loaded.plan, &bound);
    let file = shown(file);
    Ok(format!("{file}: ok, {} arms{here}, about {:.0} s", bound.arms.len(), length.as_secs_f64()))
}

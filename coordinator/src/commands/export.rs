//! `export`: a saved run in the formats of other programs, on standard output or to a server.

use crate::cli::{ExportFormat, ExportOptions};
use crate::exit::{CommandError, Ending, say};
use crate::export::points::{Exported, points};
use crate::export::push::{self, Target};
use crate::export::{hlog, line_protocol, tidy};
use crate::report::data;
use crate::report::text::escaped;
use crate::saved::Saved;
use std::io::{BufWriter, Write};

pub(crate) fn export(options: &ExportOptions) -> Result<Ending, CommandError> {
    let target = target(options)?;
    let saved = Saved::read(&options.run).map_err(|error| CommandError::Usage(error.to_string()))?;
    let mut out = BufWriter::new(data::stdout());
    match (&target, options.format) {
        (Some(target), _) => {
            let lines = line_protocol::lines(&exported(&saved)?.points);
            push::push(target, &lines).map_err(|error| CommandError::Failed(error.to_string()))?;
            writeln!(out, "{} points written to {target}", lines.len())?;
        }
        (None, Some(ExportFormat::Csv)) => tidy::write(&exported(&saved)?.points, &mut out)?,
        (None, Some(ExportFormat::Hlog)) => {
            out.write_all(&hlog::checked(&saved).map_err(|error| CommandError::Usage(error.to_string()))?)?;
        }
        (None, Some(ExportFormat::Json)) => out.write_all(&saved.text)?,
        (None, Some(ExportFormat::Influx) | None) => {
            for line in line_protocol::lines(&exported(&saved)?.points) {
                out.write_all(line.as_bytes())?;
            }
        }
    }
    out.flush()?;
    Ok(Ending::Done)
}

/// Where to push to, where that was asked for: wrong usage is told before anything is read.
fn target(options: &ExportOptions) -> Result<Option<Target>, CommandError> {
    let Some(url) = &options.push else { return Ok(None) };
    if !matches!(options.format, None | Some(ExportFormat::Influx)) {
        let why = "--push writes InfluxDB's line protocol; leave --format out, or leave --push out to have another \
                   format on standard output";
        return Err(CommandError::Usage(why.to_owned()));
    }
    let token = std::env::var("INFLUX_TOKEN").ok().filter(|token| !token.is_empty());
    Target::new(url, token).map(Some).map_err(|error| CommandError::Usage(format!("--push: {error}")))
}

/// The run's points; what of its timeline is in none of them is said on standard error.
fn exported(saved: &Saved) -> Result<Exported, CommandError> {
    let exported = points(saved).map_err(|error| CommandError::Usage(error.to_string()))?;
    for unread in &exported.unread {
        say(&format!("left out: {}; --format json has it", escaped(unread)));
    }
    Ok(exported)
}

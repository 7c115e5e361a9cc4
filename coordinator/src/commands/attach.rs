//! `attach`: other people's processes, found, watched, and shown.

use crate::cli::AttachOptions;
use crate::exit::{CommandError, Ending};
use crate::report::attach as page;
use crate::report::style::{ColourChoice, Style};
use crate::report::text::{escaped, escaped_lines};
use crate::report::window;
use attach::{FindError, Found, Phase, Wanted, WatchOptions};
use host::Root;
use std::io::Write;
use std::time::Duration;

pub(crate) fn attach(options: &AttachOptions, colour: ColourChoice) -> Result<Ending, CommandError> {
    let root = Root::system();
    if options.list {
        let listing = attach::census(&root);
        let closed = attach::closed_processes(&root, &listing.closed);
        print(options.json, &listing, colour, |style| {
            page::list::render(&listing, options.all, closed.as_ref(), style)
        })?;
        return Ok(Ending::Done);
    }
    let found = match attach::find(&root, &wanted(options), &options.pid) {
        Ok(found) => found,
        Err(error @ FindError::Closed { .. }) => {
            say(&format!("error: {}", escaped_lines(&error.to_string())));
            return Ok(Ending::HostCannot);
        }
        Err(error) => return Err(CommandError::Usage(escaped_lines(&error.to_string()))),
    };
    let quiet = options.quiet;
    if !quiet {
        say(&opening(&found, options.time));
    }
    let watch = WatchOptions { time: options.time, pids: &options.pid };
    let seen = attach::watch(&root, found, &watch, &mut |phase, time| {
        if !quiet {
            say(&progress(phase, time));
        }
    });
    print(options.json, &seen, colour, |style| page::render(&seen, style))?;
    match seen.processes.iter().all(|one| one.unwatched.is_some()) {
        true => Ok(Ending::HostCannot),
        false => Ok(Ending::Done),
    }
}

fn wanted(options: &AttachOptions) -> Wanted {
    match (&options.segment, &options.file, options.sysv) {
        (Some(name), ..) => Wanted::Segment(name.clone()),
        (_, Some(path), _) => Wanted::File(path.clone()),
        (_, _, Some(id)) => Wanted::Sysv(id),
        (None, None, None) => Wanted::OfPids,
    }
}

fn print<T: serde::Serialize>(
    json: bool,
    record: &T,
    colour: ColourChoice,
    render: impl FnOnce(&Style) -> String,
) -> Result<(), CommandError> {
    let mut out = std::io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, record).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        let style = Style::for_stdout(colour, window::columns(std::io::stdout()));
        out.write_all(render(&style).as_bytes())?;
    }
    out.flush()?;
    Ok(())
}

fn opening(found: &Found, time: Duration) -> String {
    let pids: Vec<String> = found.targets.processes.iter().map(|one| one.pid.to_string()).collect();
    format!(
        "attach: {}, mapped by {}, for {}; Ctrl-C ends it and leaves nothing behind",
        escaped(&found.targets.segment.name),
        pids.join(", "),
        humantime::format_duration(time)
    )
}

fn progress(phase: Phase, time: Duration) -> String {
    let what = match phase {
        Phase::Baseline => "counting, undisturbed",
        Phase::Touch => "who touches what",
        Phase::Waits => "who waits for whom",
        Phase::After => "counting, undisturbed again",
    };
    format!("attach: {what}, {:.1} s at most", time.as_secs_f64())
}

fn say(text: &str) {
    // A reader of standard error that has gone away is no reason to end a watch.
    let _ = writeln!(std::io::stderr(), "{text}");
}

//! `attach`: other people's processes, found, watched, and shown.

mod early;
mod emit;
mod penalties;

use crate::cli::AttachOptions;
use crate::exit::{CommandError, Ending, say};
use crate::report::attach as page;
use crate::report::data;
use crate::report::new_file;
use crate::report::style::{ColourChoice, Style};
use crate::report::text::escaped;
use crate::report::window;
use crate::signals::Signals;
use attach::symbols::SymbolParser;
use attach::{Fields, FindError, Found, News, Phase, Wanted, WatchOptions};
use emit::Emission;
use host::Root;
use penalties::Penalties;
use record::{Attach, ProcessEnd};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(crate) fn attach(options: &AttachOptions, colour: ColourChoice) -> Result<Ending, CommandError> {
    let root = Root::system();
    if options.list {
        return list(&root, options, colour);
    }
    options.emit_scenario.as_deref().map_or(Ok(()), |file| new_file::check(emit::OPTION, file))?;
    let found = match attach::find(&root, &wanted(options), &options.pid) {
        Ok(found) => found,
        Err(error @ FindError::Closed { .. }) => return Err(CommandError::HostCannot(error.to_string())),
        Err(error) => return Err(CommandError::Usage(error.to_string())),
    };
    let fields = options.of.as_ref().zip(options.binary.as_ref()).map(|(name, from)| fields(name, from, options));
    let fields = fields.transpose()?;
    let penalties = Penalties::read(options.measured.as_deref())?;
    let signals = Signals::block()?;
    let mut seen = watched(&root, found, options, (fields.as_ref(), &penalties), &signals)?;
    let emitted = emitted(&mut seen, options, &signals);
    drop(signals);
    print(options.json, &seen, colour, |style| page::render(&seen, style))?;
    // What was seen is shown before a file that could not be written ends it.
    emitted?;
    Ok(match (seen.processes.iter().all(|one| one.unwatched.is_some()), &seen.scenario) {
        _ if seen.ended_early => Ending::EndedEarly,
        (true, _) => Ending::HostCannot,
        (false, Some(made)) => emit::ending(made),
        (false, None) => Ending::Done,
    })
}

/// What is shared on this machine.
fn list(root: &Root, options: &AttachOptions, colour: ColourChoice) -> Result<Ending, CommandError> {
    let listing = attach::census(root);
    let closed = attach::closed_processes(root, &listing.closed);
    print(options.json, &listing, colour, |style| page::list::render(&listing, options.all, closed.as_ref(), style))?;
    Ok(Ending::Done)
}

/// The watch, which a signal ends early.
fn watched(
    root: &Root,
    found: Found,
    options: &AttachOptions,
    (fields, penalties): (Option<&Fields>, &Penalties),
    signals: &Signals,
) -> Result<Attach, CommandError> {
    let tell = |text: &str| {
        if !options.quiet {
            say(text);
        }
    };
    tell(&opening(&found, options.time));
    if options.uprobes {
        say(&price(root));
    }
    let parser = SymbolParser::this_program().looking_in(options.debug_dir.clone());
    let watched = early::watching(signals, &|| tell(ENDING), |asked| {
        let watch = WatchOptions {
            time: options.time,
            pids: &options.pid,
            penalty: &|a, b| penalties.between(a, b),
            parser: Some(&parser),
            fields,
            uprobes: options.uprobes,
            stop: &|| asked.load(Ordering::Relaxed),
        };
        attach::watch(root, found, &watch, &|news| tell(&told(news)))
    });
    watched.map_err(|error| CommandError::Failed(format!("a watch cannot begin: {error}")))
}

const ENDING: &str = "attach: ends early; another Ctrl-C ends it at once, and shows nothing";

/// Makes the scenario, where one was asked for and the watch was a whole one.
fn emitted(seen: &mut Attach, options: &AttachOptions, signals: &Signals) -> Result<(), CommandError> {
    let Some(file) = &options.emit_scenario else { return Ok(()) };
    if seen.ended_early {
        say("attach: no scenario is made of a watch that was ended early");
        return Ok(());
    }
    emit::emit(seen, &Emission { file, run: !options.no_run, quiet: options.quiet }, signals)
}

/// The struct that a user says lies in the segment.
fn fields(name: &str, from: &Path, options: &AttachOptions) -> Result<Fields, CommandError> {
    let wanted = structs::Wanted::new(name);
    let found = structs::in_binary(from, &wanted);
    let of = found.and_then(|found| structs::choose(found, &wanted, &structs::Choice::default()));
    let refused = |error: structs::Error| CommandError::Usage(error.to_string());
    Ok(Fields::new(of.map_err(refused)?, options.base, options.count))
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
        data::json(record)?;
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
        "attach: {}, mapped by {}, for {}; Ctrl-C ends it early, and leaves nothing behind",
        escaped(&found.targets.segment.name),
        pids.join(", "),
        humantime::format_duration(time)
    )
}

/// What probes will cost; said even to who wants no progress.
fn price(root: &Root) -> String {
    match attach::futex::cost_ns(root) {
        Some(ns) => format!(
            "attach: --uprobes will make each pthread_mutex_lock of theirs some {:.1} us longer while it counts",
            ns / 1000.0
        ),
        None => {
            "attach: what --uprobes will cost could not be measured here; elsewhere each pthread_mutex_lock took 10 to \
                 25 us longer"
                .to_owned()
        }
    }
}

fn told(news: News<'_>) -> String {
    match news {
        News::Phase(phase, time) => format!("attach: {}, {:.1} s at most", doing(phase), time.as_secs_f64()),
        News::Joined(pid, command) => format!("attach: {pid} ({}) maps it now", escaped(command)),
        News::Left(pid, command, end) => {
            let how = match end {
                ProcessEnd::Exited => "has ended",
                ProcessEnd::Executed => "executes another program",
                ProcessEnd::Unmapped => "has unmapped it",
            };
            format!("attach: {pid} ({}) {how}", escaped(command))
        }
    }
}

fn doing(phase: Phase) -> &'static str {
    match phase {
        Phase::Baseline => "counting, undisturbed",
        Phase::Touch => "who touches what, by samples",
        Phase::Proof => "who touches what, by breakpoints",
        Phase::Waits => "who waits for whom",
        Phase::Probe => "counting every acquisition",
        Phase::After => "counting, undisturbed again",
    }
}

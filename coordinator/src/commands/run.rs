//! `run`: the whole arrow, from a scenario file to what a reader sees.

mod conclude;
mod dry_run;
mod predict;
mod show_code;
mod spoilers;

use crate::assemble::{self, Origin};
use crate::campaign::{self, Campaign};
use crate::cli::RunOptions;
use crate::exit::{CommandError, Ending};
use crate::hold::Hold;
use crate::leftovers;
use crate::machine::Machine;
use crate::modelling;
use crate::needs;
use crate::overrides;
use crate::pages;
use crate::report::files;
use crate::report::logs::Logs;
use crate::report::progress::{Progress, ProgressMode};
use crate::report::style::{ColourChoice, Style};
use crate::report::window;
use crate::report::write_error::WriteError;
use crate::signals::Signals;
use crate::stacks;
use counters::Held;
use host::Root;
use plan::Bound;
use std::io::IsTerminal;
use std::time::{Instant, SystemTime};

pub(crate) fn run(options: &RunOptions, colour: ColourChoice) -> Result<Ending, CommandError> {
    let started = (SystemTime::now(), Instant::now());
    let mut loaded = overrides::load(options)?;
    loaded.plan.predictions = predict::ask(scenario::predictions(&loaded, &options.predict)?)?;
    let machine = Machine::read().map_err(CommandError::Failed)?;
    let seed = options.seed.unwrap_or_else(|| u64::from(rand::random::<u32>()));
    let refused = |error: plan::BindError| overrides::usage_or_refusal(&loaded, error);
    let plan = loaded.plan.clone().only(&options.shape.only).map_err(refused)?;
    let mut bound = plan::bind(&plan, &machine.topology, seed).map_err(refused)?;
    pages::withdraw_unpaged(&mut bound, &Root::system());
    if needs::unplaced(&bound).is_some() {
        return Err(CommandError::HostCannot(nothing_to_run(&bound)));
    }
    let selection = overrides::selection(&loaded, &plan, &bound, options.stacks)?;
    if options.dry_run {
        return dry_run::print(&plan, &bound).map(|()| Ending::Done);
    }
    let style = Style::for_stdout(colour, window::columns(std::io::stdout()));
    if options.show_code {
        show_code::print(&bound, &style, options.json)?;
    }
    let failed = |error: WriteError| CommandError::Failed(error.to_string());
    let folder = files::check(&options.out).map_err(failed)?;
    let mut logs = Logs::create(folder, options.lock_log, needs::programs(&bound)).map_err(failed)?;
    leftovers::sweep();
    let spoilers = spoilers::look(options, &plan, &bound, &selection, &machine);
    let orders = selection.orders();
    let held = Held::open(&orders);
    let signals = Signals::block()?;
    let events = selection.events();
    let hold = options.hold.then(Hold::default);
    let campaign = Campaign {
        plan: &plan,
        bound: &bound,
        machine: &machine,
        orders: &orders,
        events: &events,
        signals: &signals,
        seed,
        hold: hold.as_ref(),
    };
    let mut progress = Progress::new(progress_mode(options, colour), &plan.title, campaign.planned_repetitions());
    let measured = campaign.measure(&mut progress, &mut logs);
    progress.finish();
    drop(held);
    let measured = measured.map_err(|error| campaign::command_error(&error, &signals))?;
    let (mut run, verdict) = assemble::assemble(
        Origin { loaded: &loaded, machine: &machine, selection: &selection, spoilers, seed, started },
        measured,
    );
    if options.stacks {
        stacks::name(&mut run, &Root::system());
    }
    if options.model || modelling::is_wanted(&run) {
        modelling::beside(&mut run, &bound, &machine.topology);
    }
    // What cannot be compiled here did run in the workers: a record without a listing is better than none.
    run.code = show_code::kept(&bound).ok();
    let folder = conclude::save(&run, logs, options, &loaded.plan.name, &verdict, signals)?;
    conclude::show(&run, options, folder, &verdict, &style)
}

/// Why this host runs nothing of the scenario: every arm with its reason, and who limits the CPUs.
fn nothing_to_run(bound: &Bound) -> String {
    let unplaced = bound.arms.iter().filter_map(|arm| Some((&arm.arm.name, arm.program.as_ref().err()?)));
    let reasons: String = unplaced.map(|(name, not)| format!("\n  arm `{name}`: {}", not.why)).collect();
    format!("this host can place no arm of the scenario:{reasons}\n  for this process, {}", Machine::cpu_limits())
}

fn progress_mode(options: &RunOptions, colour: ColourChoice) -> ProgressMode {
    // What is said at a gate must stay readable, so no bar is drawn over it.
    match (options.quiet, std::io::stderr().is_terminal() && !options.hold) {
        (true, _) => ProgressMode::Quiet,
        // A terminal that cannot move its cursor cannot be drawn on.
        (false, true) if options.live && std::env::var_os("TERM").is_some_and(|term| term != "dumb") => {
            ProgressMode::Live(colour)
        }
        (false, true) => ProgressMode::Bar,
        (false, false) => ProgressMode::Lines,
    }
}

//! `run`: the whole arrow, from a scenario file to what a reader sees.

use crate::campaign::{Campaign, Measured, RunError};
use crate::cli::RunOptions;
use crate::commands::{check, clean};
use crate::exit::{CommandError, Ending};
use crate::machine::Machine;
use crate::report::progress::{Progress, ProgressMode};
use crate::report::style::{ColourChoice, Style};
use crate::report::{code, files, terminal};
use crate::signals::Signals;
use plan::{ArmKind, Bound, Plan, Repetitions};
use record::{ExpectState, Run, SCHEMA_VERSION, ScenarioText, Tool, Warning};
use scenario::Loaded;
use sha2::{Digest, Sha256};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant, SystemTime};

/// What a repetition takes beside its window and warm-up: processes, compilation, probes. For estimates alone.
const OVERHEAD: Duration = Duration::from_millis(20);

pub(crate) fn run(options: &RunOptions, colour: ColourChoice) -> Result<Ending, CommandError> {
    let clock = Started { utc: SystemTime::now(), at: Instant::now() };
    let signals = Signals::block().map_err(|errno| CommandError::Failed(format!("signalfd failed: {errno}")))?;
    let loaded = load(options)?;
    let machine = Machine::read().map_err(CommandError::Failed)?;
    let seed = options.seed.unwrap_or_else(|| u64::from(rand::random::<u32>()));
    let plan = loaded.plan.clone().only(&options.only).map_err(|error| usage_or_refusal(&loaded, &error))?;
    let bound = plan::bind(&plan, &machine.topology, seed).map_err(|error| loaded.source.refuse(&error))?;
    if !bound.arms.iter().any(|arm| arm.arm.kind == ArmKind::Variant && arm.program.is_ok()) {
        say(&format!("this host can place no arm of the scenario:\n  {}", check::not_applicable(&bound).join("\n  ")));
        return Ok(Ending::HostCannot);
    }
    if options.dry_run {
        return dry_run(&plan, &bound).map(|()| Ending::Done);
    }
    let width = console::Term::stdout().size_checked().map(|(_, columns)| columns);
    let style = Style::for_stdout(colour, width);
    if options.show_code {
        show_code(&bound, &style, options.json)?;
    }
    clean::sweep();
    let campaign = Campaign { plan: &plan, bound: &bound, machine: &machine, signals: &signals, seed };
    let mut progress = Progress::new(progress_mode(options), &plan.title, campaign.planned_repetitions());
    progress.phase("measuring");
    let measured = campaign.measure(&mut progress);
    progress.finish();
    let measured = measured.map_err(|error| command_error(&error))?;
    finish(options, &loaded, &machine, seed, &clock, measured, &style)
}

/// When the run began, by two clocks.
struct Started {
    utc: SystemTime,
    at: Instant,
}

/// Writes the results, shows them, and says how the run ends.
fn finish(
    options: &RunOptions,
    loaded: &Loaded,
    machine: &Machine,
    seed: u64,
    clock: &Started,
    measured: Measured,
    style: &Style,
) -> Result<Ending, CommandError> {
    let conclusive = measured.findings.conclusive;
    let (run, ended_early) = assemble(loaded, machine, seed, clock, measured);
    // On disk before anything is shown or fails.
    let folder = files::write(&run, &options.out, &loaded.plan.name).map_err(|e| CommandError::Failed(e.to_string()));
    if let Some(error) = ended_early {
        if let Ok(folder) = &folder {
            say(&format!("what was measured until then is in {}", folder.display()));
        }
        return Err(command_error(&error));
    }
    let mut out = std::io::stdout().lock();
    match options.json {
        true => files::to_json(&run, &mut out)?,
        false => out.write_all(terminal::render(&run, folder.as_deref().ok(), style).as_bytes())?,
    }
    out.flush()?;
    folder?;
    Ok(match conclusive {
        _ if run.expect.iter().any(|e| e.state == ExpectState::Fails) => Ending::ExpectationFails,
        true => Ending::Done,
        false => Ending::Inconclusive,
    })
}

fn command_error(error: &RunError) -> CommandError {
    if error.interrupted() { CommandError::Interrupted } else { CommandError::Failed(error.to_string()) }
}

fn assemble(
    loaded: &Loaded,
    machine: &Machine,
    seed: u64,
    clock: &Started,
    measured: Measured,
) -> (Run, Option<RunError>) {
    let mut findings = measured.findings;
    (findings.method.blocks, findings.method.extended) = (measured.blocks, measured.extended);
    findings.method.watching_cost = measured.watching_cost;
    if let Some(error) = &measured.ended_early {
        findings.warnings.insert(
            0,
            Warning {
                id: "ended_early".into(),
                text: format!("the run ended before its time: {error}"),
                advice: "take these figures for what they are, a part, and run again".into(),
            },
        );
    }
    let text = &loaded.source.text;
    let run = Run {
        schema_version: SCHEMA_VERSION,
        tool: Tool { version: env!("CARGO_PKG_VERSION").into(), commit: option_env!("LAB_COMMIT").map(str::to_owned) },
        command: typed_command(),
        seed,
        started_utc: humantime::format_rfc3339_seconds(clock.utc).to_string(),
        duration_s: clock.at.elapsed().as_secs_f64(),
        host: machine.record(),
        scenario: ScenarioText {
            title: loaded.plan.title.clone(),
            question: loaded.plan.question.clone(),
            path: loaded.source.path.clone(),
            sha256: Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect(),
            text: text.clone(),
        },
        method: findings.method,
        arms: findings.arms,
        observations: measured.observations,
        expect: findings.expect,
        diagnosis: findings.diagnosis,
        warnings: findings.warnings,
    };
    (run, measured.ended_early)
}

/// Loads the scenario with the command line's overrides, which are checked like the file's own.
fn load(options: &RunOptions) -> Result<Loaded, CommandError> {
    let quoted = |text: &str| format!("{text:?}");
    let mut overrides = Vec::new();
    if let Some(repetitions) = &options.repetitions {
        let value = if repetitions.parse::<u32>().is_ok() { repetitions.clone() } else { quoted(repetitions) };
        overrides.push(("measure.repetitions".to_owned(), value));
    }
    if let Some(window) = &options.window {
        overrides.push(("measure.window".to_owned(), quoted(window)));
    }
    if let Some(workers) = options.workers {
        overrides.push(("workers".to_owned(), workers.to_string()));
    }
    if let Some(cpus) = &options.cpus {
        let is_list = cpus.starts_with(|c: char| c.is_ascii_digit());
        overrides.push(("cpus".to_owned(), if is_list { format!("[{cpus}]") } else { quoted(cpus) }));
    }
    Ok(scenario::load_with(&options.scenario, &overrides)?)
}

/// `--only` is the command line's, everything else the file's.
fn usage_or_refusal(loaded: &Loaded, error: &plan::BindError) -> CommandError {
    match error.path.as_str() {
        "variant" => CommandError::Usage(format!("--only: {}; {}", error.message, error.cure)),
        _ => loaded.source.refuse(error).into(),
    }
}

fn progress_mode(options: &RunOptions) -> ProgressMode {
    match (options.quiet, std::io::stderr().is_terminal()) {
        (true, _) => ProgressMode::Quiet,
        (false, true) => ProgressMode::Bar,
        (false, false) => ProgressMode::Lines,
    }
}

/// How long the plan takes on this host: windows, warm-ups and what surrounds them.
pub(crate) fn expected_length(plan: &Plan, bound: &Bound) -> Duration {
    let blocks = match plan.measure.repetitions {
        Repetitions::Fixed(blocks) => blocks,
        Repetitions::Auto => return plan.measure.budget.duration(),
    };
    let arms = bound.arms.iter().filter(|arm| arm.program.is_ok());
    arms.map(|arm| {
        let runs = match arm.arm.kind {
            ArmKind::Solo { .. } | ArmKind::Unshared => blocks.div_ceil(2),
            _ => blocks,
        };
        (arm.arm.window.duration() + arm.arm.warm_up.duration() + OVERHEAD) * runs
    })
    .sum()
}

fn dry_run(plan: &Plan, bound: &Bound) -> Result<(), CommandError> {
    let mut out = std::io::stdout().lock();
    let blocks = match plan.measure.repetitions {
        Repetitions::Fixed(blocks) => format!("{blocks} blocks"),
        Repetitions::Auto => format!("blocks until intervals are within {:.0} %", plan.measure.precision * 100.0),
    };
    let seconds = expected_length(plan, bound).as_secs_f64().max(1.0);
    writeln!(out, "{}: {blocks}, about {seconds:.0} s", plan.title)?;
    for arm in &bound.arms {
        match &arm.program {
            Ok(program) => {
                let workers = program.workers.iter().map(|w| format!("{} on CPU {}", w.role_name, w.cpu));
                let workers = workers.collect::<Vec<_>>().join(", ");
                writeln!(
                    out,
                    "  {}: {} bytes; {workers}; window {}",
                    arm.arm.name, program.layout.bytes, arm.arm.window
                )?;
            }
            Err(not) => writeln!(out, "  {}: not applicable here: {}", arm.arm.name, not.why)?,
        }
    }
    Ok(())
}

/// Compiles each worker's loop here, as the worker will, and prints it.
fn show_code(bound: &Bound, style: &Style, to_stderr: bool) -> Result<(), CommandError> {
    let failed = |error: worker::compile::CompileError| CommandError::Failed(error.to_string());
    let turn_ns = worker::compile::work_turn_ns().map_err(failed)?;
    let mut listings = Vec::new();
    for program in bound.arms.iter().filter_map(|arm| arm.program.as_ref().ok()) {
        for one in &program.workers {
            let compiled = worker::compile::CompiledLoop::compile(one, program.seed, turn_ns, &worker::hooks());
            listings.push((program, one, compiled.map_err(failed)?.listing().to_string()));
        }
    }
    let shown: Vec<code::Listing<'_>> = listings
        .iter()
        .map(|(program, one, text)| code::Listing {
            arm: &program.arm,
            role: &one.role_name,
            worker: one.index.0,
            text,
        })
        .collect();
    let text = code::render(&shown, style);
    match to_stderr {
        true => std::io::stderr().write_all(text.as_bytes())?,
        false => std::io::stdout().write_all(text.as_bytes())?,
    }
    Ok(())
}

/// The command line as a shell would take it again.
fn typed_command() -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@+%".contains(c);
    let quote = |word: String| match !word.is_empty() && word.chars().all(plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    std::env::args().map(quote).collect::<Vec<_>>().join(" ")
}

fn say(text: &str) {
    // Nobody is left to tell where standard error is closed.
    let _ = writeln!(std::io::stderr(), "{text}");
}

//! `model`: a scenario on a machine on paper. Nothing is run and nothing measured, but for the host's own figures.

use crate::assemble;
use crate::cli::{ModelOptions, ShapeOptions};
use crate::exit::{CommandError, Ending};
use crate::modelling;
use crate::overrides;
use crate::report::data;
use crate::report::modelled as page;
use crate::report::style::{ColourChoice, Style};
use crate::report::window;
use model::{HOST, Machine};
use plan::{ArmKind, Bound, Topology};
use record::{CurvePoint, LayoutRow, ModelRun, ModelRunArm, SCHEMA_VERSION};
use scenario::Loaded;
use std::io::Write;

pub(crate) fn model(options: &ModelOptions, colour: ColourChoice) -> Result<Ending, CommandError> {
    let seed = options.seed.unwrap_or(0);
    let shape = |workers| ShapeOptions {
        workers,
        cpus: options.cpus.clone(),
        only: options.only.clone(),
        ..Default::default()
    };
    let counts = options.workers.as_deref().map(worker_counts).transpose()?.unwrap_or_default();
    let one = if let [only] = counts[..] { Some(only) } else { None };
    let loaded = overrides::load_shape(&options.scenario, &shape(one))?;
    // Behind all that can be refused without it: this machine's own figures take seconds to measure.
    let (machine, topology) = modelling::find(options.machine.as_deref())?;
    let (loaded, bound) = bound(loaded, options, (&machine, &topology), seed)?;
    let run = ModelRun {
        schema_version: SCHEMA_VERSION,
        tool: assemble::tool(),
        command: assemble::typed_command(),
        seed,
        machine: modelling::machine(&machine),
        scenario: assemble::scenario_text(&loaded),
        arms: arms(&bound, &loaded, &machine, &topology, seed),
        curve: match counts.len() {
            0 | 1 => Vec::new(),
            _ => curve(options, &counts, shape, (&machine, &topology), seed)?,
        },
    };
    let mut out = std::io::stdout().lock();
    if options.json {
        data::json(&run)?;
    } else {
        let style = Style::for_stdout(colour, window::columns(std::io::stdout()));
        out.write_all(page::render(&run, &style).as_bytes())?;
    }
    out.flush()?;
    let modelled = run.arms.iter().any(|arm| arm.modelled.why.is_none());
    Ok(if modelled { Ending::Done } else { Ending::HostCannot })
}

fn bound(
    loaded: Loaded,
    options: &ModelOptions,
    (machine, topology): (&Machine, &Topology),
    seed: u64,
) -> Result<(Loaded, Bound), CommandError> {
    let refused = |error: plan::BindError| match machine.name.as_str() {
        HOST => overrides::usage_or_refusal(&loaded, error),
        _ => overrides::refused_elsewhere(&loaded, &error),
    };
    let plan = loaded.plan.clone().only(&options.only).map_err(refused)?;
    let bound = plan::bind(&plan, topology, seed).map_err(refused)?;
    Ok((Loaded { plan, ..loaded }, bound))
}

/// Every arm but the control, which is its twin to the bit, and the plain one, whose difference the model does not
/// know.
fn arms(bound: &Bound, loaded: &Loaded, machine: &Machine, topology: &Topology, seed: u64) -> Vec<ModelRunArm> {
    let told = bound.arms.iter().filter(|arm| !matches!(arm.arm.kind, ArmKind::Control | ArmKind::Plain));
    told.map(|arm| {
        let headline = match arm.arm.kind {
            ArmKind::Solo { role } => role,
            _ => loaded.plan.measure.headline_role,
        };
        let (modelled, bytes, layout) = match &arm.program {
            Ok(program) => {
                let layout = program.layout.placed.iter().map(LayoutRow::of).collect();
                (modelling::arm(program, machine, topology, seed), program.layout.bytes, layout)
            }
            Err(not) => {
                let why = too_many(arm.arm.case.worker_count(), machine, topology);
                (modelling::unplaced(machine, why.as_ref().unwrap_or(&not.why)), 0, Vec::new())
            }
        };
        ModelRunArm {
            name: arm.arm.name.clone(),
            kind: (&arm.arm.kind).into(),
            variant: arm.arm.variant.clone(),
            sweep: arm.arm.sweep.iter().cloned().collect(),
            bytes,
            layout,
            headline_role: arm.arm.case.roles[headline].name.clone(),
            modelled,
        }
    })
    .collect()
}

/// More workers than the machine has CPUs. Sharing these, which a run would offer, is no way out here: the model has no
/// scheduler.
fn too_many(workers: u32, machine: &Machine, topology: &Topology) -> Option<String> {
    let usable = topology.cpus.iter().filter(|cpu| cpu.usable).count();
    (workers as usize > usable).then(|| {
        format!(
            "{workers} workers need a CPU each, and `{}` has {usable}: take fewer, or a larger machine",
            machine.name
        )
    })
}

/// Throughput of each variant by the number of workers of the headline role.
fn curve(
    options: &ModelOptions,
    counts: &[u32],
    shape: impl Fn(Option<u32>) -> ShapeOptions,
    (machine, topology): (&Machine, &Topology),
    seed: u64,
) -> Result<Vec<CurvePoint>, CommandError> {
    let mut points = Vec::new();
    for &workers in counts {
        let loaded = overrides::load_shape(&options.scenario, &shape(Some(workers)))?;
        let (loaded, bound) = bound(loaded, options, (machine, topology), seed)?;
        for arm in
            arms(&bound, &loaded, machine, topology, seed).into_iter().filter(|arm| arm.kind == record::Kind::Variant)
        {
            let role = arm.modelled.role(&arm.headline_role);
            points.push(CurvePoint {
                ns_per_op: role.and_then(|role| role.ns_per_op),
                ops_per_second: role.map(|role| role.ops_per_second),
                why: arm.modelled.why,
                arm: arm.name,
                workers,
            });
        }
    }
    Ok(points)
}

/// Most workers of a curve: as many as the model knows cores for.
const MOST_WORKERS: u32 = 128;

/// `4`, or `1..128`: the ends and the powers of two between them.
fn worker_counts(text: &str) -> Result<Vec<u32>, CommandError> {
    let refused = || {
        CommandError::Usage(format!(
            "--workers {text}: no number of workers, and no range such as 1..{MOST_WORKERS} (first to last, at most \
             {MOST_WORKERS}, from 1 up)"
        ))
    };
    let number = |text: &str| text.parse().ok().filter(|n| (1..=MOST_WORKERS).contains(n)).ok_or_else(refused);
    let Some((first, last)) = text.split_once("..") else { return Ok(vec![number(text)?]) };
    let (first, last): (u32, u32) = (number(first)?, number(last.trim_start_matches('='))?);
    if first >= last {
        return Err(refused());
    }
    let between = (0..32).map(|power| 1 << power).filter(|n| (first + 1..last).contains(n));
    Ok(std::iter::once(first).chain(between).chain([last]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_workers_is_its_ends_and_the_powers_of_two_between() {
        assert_eq!(worker_counts("4").unwrap(), [4]);
        assert_eq!(worker_counts("1..128").unwrap(), [1, 2, 4, 8, 16, 32, 64, 128]);
        assert_eq!(worker_counts("3..=10").unwrap(), [3, 4, 8, 10]);
        for bad in ["0", "129", "4..4", "8..2", "1..", "x", "1..1000", "-1"] {
            assert!(matches!(worker_counts(bad), Err(CommandError::Usage(text)) if text.contains(bad)), "{bad}");
        }
    }
}

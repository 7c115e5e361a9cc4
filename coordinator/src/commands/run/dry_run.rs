//! `--dry-run`: what would run, where, and for how long.

use crate::estimate::expected_length;
use crate::exit::CommandError;
use plan::{Bound, Plan, Program, Repetitions};
use std::io::Write;

pub(crate) fn print(plan: &Plan, bound: &Bound) -> Result<(), CommandError> {
    let mut out = std::io::stdout().lock();
    let blocks = match plan.measure.repetitions {
        Repetitions::Fixed(blocks) => format!("{blocks} blocks"),
        Repetitions::Auto => format!("blocks until intervals are within {} %", plan.measure.precision * 100.0),
    };
    writeln!(out, "{}: {blocks}, about {:.0} s", plan.title, expected_length(plan, bound).as_secs_f64())?;
    for arm in &bound.arms {
        match &arm.program {
            Ok(program) => writeln!(out, "  {}: {}; window {}", arm.arm.name, placed(program), arm.arm.window)?,
            Err(not) => writeln!(out, "  {}: not applicable here: {}", arm.arm.name, not.why)?,
        }
    }
    Ok(())
}

fn placed(program: &Program) -> String {
    let workers = program.workers.iter().map(|w| format!("{} on CPU {}", w.role_name, w.cpu));
    format!("{} bytes; {}", program.layout.bytes, workers.collect::<Vec<_>>().join(", "))
}

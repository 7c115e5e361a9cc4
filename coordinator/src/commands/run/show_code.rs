//! `--show-code`: each worker's loop, compiled here as the worker will compile it.

use crate::exit::CommandError;
use crate::needs;
use crate::provision;
use crate::report::code;
use crate::report::style::Style;
use plan::Bound;
use shm_layout::SegmentMap;
use std::io::Write;
use worker::compile::{CompileError, CompiledLoop, LockSites, work_turn_ns};

pub(crate) fn print(bound: &Bound, style: &Style, to_stderr: bool) -> Result<(), CommandError> {
    let failed = |error: CompileError| CommandError::Failed(error.to_string());
    let turn_ns = work_turn_ns().map_err(failed)?;
    let mut listings = Vec::new();
    for program in needs::programs(bound) {
        let map =
            SegmentMap::of(program, provision::slots(program)).map_err(|e| CommandError::Failed(e.to_string()))?;
        for one in &program.workers {
            let sites = LockSites::of(program, &map, one.index);
            let compiled =
                CompiledLoop::compile(one, &sites, program.seed, turn_ns, &worker::hooks()).map_err(failed)?;
            listings.push((program, one, compiled.listing().to_string()));
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

//! Each worker's loop, compiled here as the worker will compile it: for `--show-code`, and for the record.

use crate::exit::CommandError;
use crate::needs;
use crate::provision;
use crate::report::code;
use crate::report::style::Style;
use plan::{ArmKind, Bound, Program, WorkerProgram};
use record::{Code, CodeListing};
use shm_layout::SegmentMap;
use std::io::Write;
use worker::compile::{CompiledLoop, LockSites, work_turn_ns};

/// Listings that the record keeps, and lines of each: a page with more is read by nobody. What is beyond is counted,
/// and `--show-code` prints it.
const MOST_LISTINGS: usize = 32;
const MOST_LINES: usize = 240;

/// Prints every worker's.
pub(crate) fn print(bound: &Bound, style: &Style, to_stderr: bool) -> Result<(), CommandError> {
    let turn_ns = turn_ns()?;
    let mut listings = Vec::new();
    for program in needs::programs(bound) {
        for one in &program.workers {
            listings.push((program, one, listing(program, one, turn_ns)?));
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

/// What the record keeps: of each variant and role the first worker's. After the last window only, since it computes.
///
/// # Errors
/// As [`print()`].
pub(crate) fn kept(bound: &Bound) -> Result<Code, CommandError> {
    let turn_ns = turn_ns()?;
    let variants = bound.arms.iter().filter(|arm| arm.arm.kind == ArmKind::Variant);
    let programs = variants.filter_map(|arm| arm.program.as_ref().ok());
    let firsts: Vec<(&Program, &WorkerProgram)> = programs.flat_map(|p| firsts(p).map(move |one| (p, one))).collect();
    let (kept, left_out) = firsts.split_at(firsts.len().min(MOST_LISTINGS));
    let listings = kept.iter().map(|(program, one)| {
        let text = listing(program, one, turn_ns)?;
        let lines: Vec<&str> = text.lines().collect();
        let (lines, rest) = lines.split_at(lines.len().min(MOST_LINES));
        Ok(CodeListing {
            arm: program.arm.clone(),
            role: one.role_name.clone(),
            worker: one.index.0,
            text: lines.join("\n"),
            lines_left_out: rest.len() as u32,
        })
    });
    let listings = listings.collect::<Result<_, CommandError>>()?;
    Ok(Code { listings, listings_left_out: left_out.len() as u32 })
}

/// The first worker of each role.
fn firsts(program: &Program) -> impl Iterator<Item = &WorkerProgram> {
    let workers = program.workers.iter().enumerate();
    let first = |(index, one): &(usize, &WorkerProgram)| {
        program.workers[..*index].iter().all(|before| before.role_name != one.role_name)
    };
    workers.filter(first).map(|(_, one)| one)
}

fn turn_ns() -> Result<f64, CommandError> {
    work_turn_ns().map_err(|error| CommandError::Failed(error.to_string()))
}

fn listing(program: &Program, one: &WorkerProgram, turn_ns: f64) -> Result<String, CommandError> {
    let failed = |error: &dyn std::fmt::Display| CommandError::Failed(error.to_string());
    let map = SegmentMap::of(program, provision::slots(program)).map_err(|error| failed(&error))?;
    let sites = LockSites::of(program, &map, one.index);
    let compiled =
        CompiledLoop::compile(one, &sites, program.seed, turn_ns, &worker::hooks()).map_err(|error| failed(&error))?;
    Ok(compiled.listing().to_string())
}

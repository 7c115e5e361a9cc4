//! The emitted code as a reader sees it: assembly, each line with the step that it came from.

use super::CompiledLoop;
use cranelift_codegen::{Final, MachBufferFinalized};
use plan::WorkerProgram;
use std::fmt;

/// A loop's code. Displayed, it groups the lines under their steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Passes an iteration makes.
    pub unroll: u64,
    /// The steps as written.
    pub steps: Vec<String>,
    /// The instructions in the order in which they lie in memory.
    pub lines: Vec<Line>,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Offset from the function's start, bytes.
    pub offset: u64,
    /// AT&T syntax, as `objdump` prints it; a call's target is named behind a `#`.
    pub text: String,
    /// Pass of the iteration, from 0; 0 where there is no step.
    pub pass: u64,
    /// Index of the step; `None` for loop control, entry and exit.
    pub step: Option<u32>,
}

/// A stretch of code and the operation that it came from.
#[derive(Copy, Clone, Debug)]
pub(super) struct Origin {
    start: u32,
    end: u32,
    pass: u64,
    step: u32,
}

/// Which operation each stretch of `buffer` came from: `emit` marks an operation with its place in the iteration.
pub(super) fn origins(buffer: &MachBufferFinalized<Final>, program: &WorkerProgram) -> Vec<Origin> {
    let marked = buffer.get_srclocs_sorted().iter().filter(|range| !range.loc.is_default());
    marked
        .map(|range| {
            let place = range.loc.bits() as usize;
            let op = &program.ops[place % program.ops.len()];
            Origin { start: range.start, end: range.end, pass: (place / program.ops.len()) as u64, step: op.step }
        })
        .collect()
}

impl Listing {
    pub(super) fn of(compiled: &CompiledLoop) -> Listing {
        let lines = disassemble(compiled.code(), &compiled.called).into_iter().map(|(offset, text)| {
            let within = |origin: &&Origin| (u64::from(origin.start)..u64::from(origin.end)).contains(&offset);
            let origin = compiled.origins.iter().find(within);
            Line { offset, text, pass: origin.map_or(0, |o| o.pass), step: origin.map(|o| o.step) }
        });
        Listing { unroll: compiled.unroll, steps: compiled.steps.clone(), lines: lines.collect() }
    }

    fn heading(&self, line: &Line) -> String {
        match line.step {
            None => "(loop control)".to_owned(),
            Some(step) => {
                let text = self.steps.get(step as usize).map_or("", String::as_str);
                if self.unroll == 1 { text.to_owned() } else { format!("{text}  [pass {}]", line.pass + 1) }
            }
        }
    }
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.unroll {
            1 => writeln!(f, "one pass an iteration")?,
            passes => writeln!(f, "{passes} passes an iteration")?,
        }
        let mut last = None;
        for line in &self.lines {
            if last != Some((line.step, line.pass)) {
                writeln!(f, "{}", self.heading(line))?;
                last = Some((line.step, line.pass));
            }
            writeln!(f, "  {:4x}  {}", line.offset, line.text)?;
        }
        Ok(())
    }
}

/// Offset and text of each instruction.
#[cfg(target_arch = "x86_64")]
fn disassemble(code: &[u8], called: &[(&'static str, usize)]) -> Vec<(u64, String)> {
    use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter, Mnemonic};
    let mut formatter = GasFormatter::new();
    formatter.options_mut().set_uppercase_hex(false);
    formatter.options_mut().set_branch_leading_zeros(false);
    let decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    let line = |instruction: iced_x86::Instruction| {
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        let constant = (instruction.mnemonic() == Mnemonic::Mov).then(|| instruction.immediate64());
        if let Some((name, _)) = called.iter().find(|(_, at)| constant == Some(*at as u64)) {
            text = format!("{text}  # {name}");
        }
        (instruction.ip(), text)
    };
    decoder.into_iter().map(line).collect()
}

/// Offset and bits of each instruction word: the lab carries no disassembler for this architecture.
#[cfg(not(target_arch = "x86_64"))]
fn disassemble(code: &[u8], _called: &[(&'static str, usize)]) -> Vec<(u64, String)> {
    let words = code.chunks(4).enumerate();
    words.map(|(i, w)| (i as u64 * 4, w.iter().rev().map(|b| format!("{b:02x}")).collect())).collect()
}

//! Making a pass's steps on regions, chunk by chunk, on behalf of the compiled loop.
#![allow(unsafe_code)] // malloc, free and the bytes in between

use super::Views;
use super::batches::Batches;
use super::calls::Calls;
use super::view::View;
use crate::context::Context;
use crate::failure::Failure;
use plan::{MemoryStep, MemoryVerb, PAGE_BYTES, Program, TickRate, WorkerProgram};
use record::{MemoryCall, MemoryTrace, Punched};
use shm_layout::ticks;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Between two looks at the stop word within a step, as between two batches of passes.
const LOOK_NS: u64 = 20_000;

/// One worker's steps on regions: where each is, and what is kept of them.
pub(crate) struct Paging {
    views: Arc<Views>,
    /// By the operation's index.
    steps: Vec<Option<State>>,
    /// What the present pass has mapped, by region.
    mapped: Vec<Option<View>>,
    /// Name, size and pages of each region, for what a pass maps.
    regions: Vec<plan::Region>,
    batches: Batches,
    calls: Calls,
    look_ticks: u64,
    /// Whether a pass is one touch and nothing else: then a batch begins where the one of the pass before has ended.
    carries: bool,
    record_cost_ticks: f64,
}

/// Where a step is.
struct State {
    step: MemoryStep,
    /// Index of the step as written.
    written: u32,
    pause_ticks: u64,
    region_bytes: u64,
    /// Offset of the next chunk.
    cursor: u64,
    /// Bytes done until the window closed.
    done: u64,
}

impl State {
    /// The next chunk's offset; the one behind it is next then, and behind the region's end its begin.
    fn advance(&mut self) -> u64 {
        let next = self.cursor + self.step.chunk;
        std::mem::replace(&mut self.cursor, if next >= self.region_bytes { 0 } else { next })
    }
}

impl Paging {
    /// For a worker's loop in a window of the Program's length; `None` where it has no such step.
    pub(crate) fn new(program: &Program, me: &WorkerProgram, views: Arc<Views>, rate: TickRate) -> Option<Box<Paging>> {
        let of = |step: &MemoryStep, written| State {
            step: *step,
            written,
            pause_ticks: rate.ticks(step.pause.0),
            region_bytes: program.regions.get(step.region as usize).map_or(0, |region| region.bytes),
            cursor: 0,
            done: 0,
        };
        let mut steps: Vec<Option<State>> = me.ops.iter().map(|_| None).collect();
        for (index, step) in me.memory_steps() {
            steps[index] = Some(of(step, me.ops[index].step));
        }
        let has = |which: fn(MemoryVerb) -> bool| me.memory_steps().any(|(_, step)| which(step.verb));
        has(|_| true).then(|| {
            let batches = has(|verb| verb == MemoryVerb::Touch);
            Box::new(Paging {
                views,
                mapped: program.regions.iter().map(|_| None).collect(),
                regions: program.regions.clone(),
                batches: Batches::new(batches, program.window.0, |ns| rate.ticks(ns)),
                calls: Calls::new(has(MemoryVerb::gives_back)),
                look_ticks: rate.ticks(LOOK_NS),
                carries: batches && me.ops.len() == 1 && me.ops[0].every == 1,
                steps,
                record_cost_ticks: 0.0,
            })
        })
    }

    /// Times noting a batch with its clock read, before the warm-up: the cheapest of some short series, per batch.
    pub(crate) fn price(&mut self) {
        const SERIES: u64 = 8;
        const BATCHES: u64 = 256;
        let start = ticks();
        self.batches.open(start, start, u64::MAX);
        let mut series = || {
            let start = ticks();
            let mut begin = start;
            for _ in 0..BATCHES {
                let end = ticks();
                self.batches.note(begin, end);
                begin = end;
            }
            (begin - start) as f64 / BATCHES as f64
        };
        self.record_cost_ticks = (0..SERIES).map(|_| series()).fold(f64::INFINITY, f64::min);
        self.batches.clear();
    }

    /// The next batch begins with a clock read of its own: something else has taken time.
    pub(crate) fn interrupted(&mut self) {
        self.batches.carried = None;
    }

    /// What is left for the trace.
    pub(crate) fn into_trace(self) -> MemoryTrace {
        let punches = self.steps.iter().flatten().filter(|state| state.step.verb.punches());
        let punched = punches.map(|state| Punched { region: state.step.region, bytes: state.done }).collect();
        let (calls, calls_lost) = self.calls.into_parts();
        let record_cost_ticks = self.record_cost_ticks;
        MemoryTrace { calls, calls_lost, punched, record_cost_ticks, ..self.batches.into_trace() }
    }

    /// The step of that operation, for one pass.
    fn make(&mut self, context: &mut Context<'_>, op: usize) -> Result<(), Failure> {
        match self.steps.get(op).and_then(|state| state.as_ref()).map(|state| state.step.verb) {
            Some(MemoryVerb::Touch) => self.touch(context, op),
            Some(_) => self.work(context, op),
            None => Ok(()),
        }
    }

    /// A step of `touch`: its chunks are batches, and the end of one is the begin of the next.
    fn touch(&mut self, context: &mut Context<'_>, op: usize) -> Result<(), Failure> {
        let views = Arc::clone(&self.views);
        let Some(state) = &mut self.steps[op] else { return Ok(()) };
        let Some(view) = views.get(state.step.region) else { return Ok(()) };
        let mut begin = self.batches.carried.take().unwrap_or_else(ticks);
        let mut noted = begin;
        for left in (0..state.step.chunks()).rev() {
            view.touch(state.advance(), state.step.chunk);
            let end = ticks();
            note_batch(&mut self.batches, context, begin, end);
            begin = end;
            let looks = left > 0 && end - noted > self.look_ticks;
            if looks || state.pause_ticks > 0 {
                context.blocked(noted, end);
                if !rest(context, end, state.pause_ticks, self.look_ticks) {
                    return Ok(());
                }
                begin = ticks();
                noted = begin;
            }
        }
        if noted < begin {
            context.blocked(noted, begin);
        }
        self.batches.carried = self.carries.then_some(begin);
        Ok(())
    }

    /// A step of any other verb. Those that give memory back are logged, chunk by chunk.
    fn work(&mut self, context: &mut Context<'_>, op: usize) -> Result<(), Failure> {
        let Some(state) = &mut self.steps[op] else { return Ok(()) };
        let chunks = state.step.chunks();
        if matches!(state.step.verb, MemoryVerb::Reuse | MemoryVerb::Map) {
            state.cursor = 0; // the same part, and the mapping just made, from its begin
        }
        let mut noted = ticks();
        for left in (0..chunks).rev() {
            let (begin, end) = self.chunk(op)?;
            let Some(state) = &mut self.steps[op] else { return Ok(()) };
            let closes = context.recorder.close_ticks();
            if closes == 0 || end < closes {
                state.done += state.step.chunk;
            }
            if state.step.verb.gives_back() && context.recorder.inside() && end < closes {
                let (step, verb) = (state.written, state.step.verb);
                self.calls.note(MemoryCall { step, verb, start_ticks: begin, end_ticks: end });
            }
            if state.pause_ticks > 0 || (left > 0 && end - noted > self.look_ticks) {
                context.blocked(noted, end);
                if !rest(context, end, state.pause_ticks, self.look_ticks) {
                    return Ok(());
                }
                noted = ticks();
            } else if left == 0 {
                context.blocked(noted, end);
            }
        }
        Ok(())
    }

    /// Does one chunk; gives the clock reads before and behind the call.
    fn chunk(&mut self, op: usize) -> Result<(u64, u64), Failure> {
        let Some(state) = &mut self.steps[op] else { return Ok((0, 0)) };
        let MemoryStep { verb, region, bytes, chunk, .. } = state.step;
        let offset = state.advance();
        let view = self.views.get(region);
        let mut begin = ticks();
        match (verb, view) {
            (MemoryVerb::Touch | MemoryVerb::Reuse, Some(view)) => view.touch(offset, chunk),
            (MemoryVerb::Punch, Some(view)) => view.punch(offset, chunk)?,
            (MemoryVerb::Remove, Some(view)) => view.remove(offset, chunk)?,
            (MemoryVerb::DontNeed, Some(view)) => view.dont_need(offset, chunk)?,
            (MemoryVerb::Protect, Some(view)) => view.protect(offset, chunk)?,
            (MemoryVerb::Unmap, Some(view)) if view.is_shared() => view.unmap_and_map(offset, chunk)?,
            (MemoryVerb::Unmap, _) => {
                if let Some(mapped) = &mut self.mapped[region as usize] {
                    mapped.unmap_front(chunk)?;
                }
            }
            (MemoryVerb::Map, _) => {
                let (of, mapped) = (&self.regions[region as usize], &mut self.mapped[region as usize]);
                if offset == 0 {
                    *mapped = Some(View::private(&of.name, bytes, of.pages)?);
                }
                mapped.iter().for_each(|view| view.touch(offset, chunk));
            }
            (MemoryVerb::Free, _) => {
                let block = Block::touched(&self.regions[region as usize].name, chunk)?;
                begin = ticks();
                drop(block);
            }
            (_, None) => {}
        }
        Ok((begin, ticks()))
    }
}

/// Makes one pass's share of the operation of that index.
pub(crate) fn make_step(context: &mut Context<'_>, op: usize) {
    // Taken out for the time being: a step needs the context to say what it does.
    let Some(mut paging) = context.paging.take() else { return };
    if let Err(failure) = paging.make(context, op) {
        context.failure.get_or_insert(failure);
        context.break_after_pass();
    }
    context.paging = Some(paging);
}

#[inline]
fn note_batch(batches: &mut Batches, context: &Context<'_>, begin: u64, end: u64) {
    let recorder = &context.recorder;
    if recorder.inside() {
        if !batches.is_open() {
            batches.open(recorder.open_ticks(), recorder.together_ticks(), recorder.close_ticks());
        }
        batches.note(begin, end);
    } else if recorder.close_ticks() == 0 {
        batches.warm_up(begin, end);
    }
}

/// Between two chunks, the first of which ended at `now`: reads the clock until the pause is over. Says whether to go
/// on.
fn rest(context: &mut Context<'_>, mut now: u64, pause_ticks: u64, look_ticks: u64) -> bool {
    let until = now + pause_ticks;
    loop {
        if now.saturating_sub(context.recorder.last_read()) >= look_ticks {
            context.read_inside_batch(now);
            if context.segment.control().must_stop() {
                return false;
            }
        }
        if now >= until {
            return true;
        }
        std::hint::spin_loop();
        now = ticks();
    }
}

/// A block of the C library's, which goes back to it when dropped.
struct Block(*mut u8);

impl Block {
    /// A new one, with a byte of each page written.
    fn touched(region: &str, bytes: u64) -> Result<Block, Failure> {
        // SAFETY: touches no memory of ours.
        let start = unsafe { libc::malloc(bytes as usize) }.cast::<u8>();
        if start.is_null() {
            let what = format!("region `{region}`: malloc of {bytes} bytes failed");
            return Err(Failure::new(what, "use smaller chunks; see `ulimit -v` and `free -m`"));
        }
        for at in (0..bytes).step_by(PAGE_BYTES as usize) {
            // SAFETY: inside the block, which nobody else has.
            unsafe { AtomicU8::from_ptr(start.add(at as usize)) }.store(1, Ordering::Relaxed);
        }
        // Or the compiler would see that nobody reads the block, and leave out both calls.
        Ok(Block(std::hint::black_box(start)))
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `malloc` gave it, and it goes back once.
        unsafe { libc::free(self.0.cast()) }
    }
}

//! One slice: for a while the targets are watched, or left alone.

use super::target::{Moment, Pair};
use super::{AttachError, Step};
use ::attach::symbols::SymbolParser;
use ::attach::{News, Phase, Wanted, WatchOptions};
use record::{Attach, WatchCost};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What the targets did in a slice.
#[derive(Debug)]
pub(super) struct Slice {
    /// Over all of it, and where they were watched over each step.
    pub(super) spans: Vec<(Step, Span)>,
    /// Where they were watched.
    pub(super) seen: Option<Seen>,
}

/// What the targets did in a time.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(super) struct Span {
    pub(super) seconds: f64,
    pub(super) cpu_seconds: f64,
    pub(super) passes: f64,
}

/// What a watch said.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) cost: WatchCost,
    /// Whether it proved that both processes write.
    pub(super) both: bool,
    /// Its notes, in short.
    pub(super) said: String,
}

impl Slice {
    /// Nobody watches.
    pub(super) fn left_alone(pair: &Pair, time: Duration) -> Result<Slice, AttachError> {
        let from = pair.now()?;
        std::thread::sleep(time);
        Ok(Slice { spans: vec![(Step::Watch, Span::between(from, pair.now()?))], seen: None })
    }

    /// As `coordinator attach --for TIME` watches.
    pub(super) fn watched(pair: &Pair, time: Duration) -> Result<Slice, AttachError> {
        let edges: Mutex<Vec<(Step, Result<Moment, AttachError>)>> = Mutex::default();
        let from = pair.now()?;
        let seen = watch(pair, time, &|phase| {
            edges.lock().unwrap_or_else(PoisonError::into_inner).push((step(phase), pair.now()));
        })?;
        let until = pair.now()?;
        let edges = edges.into_inner().unwrap_or_else(PoisonError::into_inner);
        let edges = edges.into_iter().map(|(step, at)| Ok((step, at?))).collect::<Result<Vec<_>, AttachError>>()?;
        Ok(Slice { spans: spans(from, &edges, until), seen: Some(Seen::of(&seen, pair)) })
    }

    /// What they did in a step; nothing where it never came.
    pub(super) fn span(&self, of: Step) -> Option<Span> {
        let found = self.spans.iter().find(|(step, span)| *step == of && span.seconds > 0.0 && span.passes > 0.0);
        found.map(|(_, span)| *span)
    }
}

/// Watches a pair, and tells each phase as it begins.
pub(super) fn watch(pair: &Pair, time: Duration, begins: &(dyn Fn(Phase) + Sync)) -> Result<Attach, AttachError> {
    let root = host::Root::system();
    let found = ::attach::find(&root, &Wanted::Segment(pair.name.clone()), &[])?;
    let parser = SymbolParser::this_program();
    let options = WatchOptions {
        time,
        pids: &[],
        penalty: &|_, _| None,
        parser: Some(&parser),
        fields: None,
        uprobes: false,
        stop: &|| false,
    };
    Ok(::attach::watch(&root, found, &options, &|news| {
        if let News::Phase(phase, _) = news {
            begins(phase);
        }
    }))
}

fn step(phase: Phase) -> Step {
    match phase {
        Phase::Baseline | Phase::After => Step::Counting,
        Phase::Touch => Step::Sampling,
        Phase::Proof => Step::Proof,
        Phase::Waits | Phase::Probe => Step::Futex,
    }
}

/// The whole, and each step from its beginning to the next one's. A step that comes twice is one.
fn spans(from: Moment, edges: &[(Step, Moment)], until: Moment) -> Vec<(Step, Span)> {
    let mut spans = vec![(Step::Watch, Span::between(from, until))];
    let ends = edges.iter().skip(1).map(|(_, at)| *at).chain([until]);
    for ((step, begin), end) in edges.iter().zip(ends) {
        let span = Span::between(*begin, end);
        match spans.iter_mut().find(|(of, _)| of == step) {
            Some((_, sum)) => *sum = sum.and(span),
            None => spans.push((*step, span)),
        }
    }
    spans
}

impl Span {
    fn between(from: Moment, until: Moment) -> Span {
        Span {
            seconds: (until.at - from.at).as_secs_f64(),
            cpu_seconds: until.cpu_ns.saturating_sub(from.cpu_ns) as f64 / 1e9,
            passes: until.passes.saturating_sub(from.passes) as f64,
        }
    }

    fn and(self, other: Span) -> Span {
        Span {
            seconds: self.seconds + other.seconds,
            cpu_seconds: self.cpu_seconds + other.cpu_seconds,
            passes: self.passes + other.passes,
        }
    }

    /// Seconds a pass.
    pub(super) fn pace(self) -> f64 {
        self.seconds / self.passes
    }

    /// Seconds of the targets' CPU time a pass.
    pub(super) fn cpu_pace(self) -> f64 {
        self.cpu_seconds / self.passes
    }
}

impl Seen {
    pub(super) fn of(seen: &Attach, pair: &Pair) -> Seen {
        let words = || seen.lines.iter().flat_map(|line| &line.words);
        let writes = |process: usize| {
            let (pid, offset) = (pair.pids()[process], pair.counter(process as u64));
            words().any(|word| word.proved && word.offset == offset && word.writers.contains(&pid))
        };
        let unwatched = seen.processes.iter().filter_map(|one| one.unwatched.clone());
        let said: Vec<String> = unwatched.chain(seen.notes.iter().map(|note| note.text.clone())).collect();
        Seen { cost: seen.cost.clone(), both: writes(0) && writes(1), said: said.join("; ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_step_that_comes_twice_is_added_up_and_the_watch_is_the_whole() {
        let began = Instant::now();
        let at = |ms: u64, passes| Moment { at: began + Duration::from_millis(ms), passes, cpu_ns: ms * 2_000_000 };
        let edges = [(Step::Counting, at(100, 10)), (Step::Sampling, at(300, 50)), (Step::Counting, at(600, 90))];
        let slice = Slice { spans: spans(at(0, 0), &edges, at(1000, 200)), seen: None };
        let of = |step| slice.span(step).map(|span| ((span.seconds * 1e3).round(), span.passes));
        assert_eq!(of(Step::Watch), Some((1000.0, 200.0)));
        assert_eq!(of(Step::Counting), Some((600.0, 150.0)));
        assert_eq!(of(Step::Sampling), Some((300.0, 40.0)));
        assert_eq!(of(Step::Futex), None);
        let whole = slice.span(Step::Watch).expect("it is there");
        assert!((whole.pace() - 0.005).abs() < 1e-12 && (whole.cpu_pace() - 0.01).abs() < 1e-12);
    }
}

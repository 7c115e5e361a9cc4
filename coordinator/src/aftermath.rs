//! What workers that died left behind: the locks that they held or stood in the queue of, who waits for these, and who
//! has taken one over.
//!
//! The locks themselves say who holds them, but not at each instant: one that was changing hands when its worker was
//! killed is with its next owner a moment later, or sends no waking to one that sleeps. So the question comes from the
//! first look, and the answer from what the living do then.

use crate::launch::{Child, name_among};
use plan::{OpKind, Program, WorkerProgram};
use shm_layout::Segment;
use std::time::{Duration, Instant};

/// What the living get at most to run into a dead worker's lock, so that they can be named. Passes are microseconds
/// long as a rule; whoever comes later is not waiting yet.
const ORPHAN_TIME: Duration = Duration::from_millis(500);
/// All who live have waited for so long, and no lock in question has had an owner meanwhile: then nobody will get it. A
/// waiter that was handed it just now would have come onto its CPU in less, unless the machine is very busy.
const STILL_TIME: Duration = Duration::from_millis(50);
/// Between two looks.
const LOOK_EACH: Duration = Duration::from_millis(5);

/// What a dead worker was doing with a lock, as the lock and its slot tell.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Part {
    /// It held it.
    Held,
    /// It waited for it.
    Waited,
    /// Neither; it may have died in taking it or in giving it back.
    Uses,
}

/// A lock that a dead worker uses.
struct Suspect<'a> {
    dead: &'a WorkerProgram,
    lock: u32,
    part: Part,
}

/// What became of a lock that a dead worker had to do with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Legacy {
    /// The dead worker's index.
    pub(crate) dead: u32,
    /// Whether nobody can get it any more.
    pub(crate) lost: bool,
    /// What the dead worker was doing with it and what became of it since, in words that go on a sentence that ends in
    /// "while running passes, ".
    pub(crate) words: String,
}

/// Looks on, a few milliseconds at a time, until it is clear what became of the locks that the `dead` had to do with,
/// or [`ORPHAN_TIME`] is over. `pause` passes the time until an instant, notes who ends meanwhile, and says whether to
/// go on.
///
/// # Errors
/// What `pause` says where it says stop.
pub(crate) fn look<E>(
    program: &Program,
    segment: &Segment,
    children: &mut [Child],
    dead: &[u32],
    mut pause: impl FnMut(&mut [Child], Instant) -> Result<(), E>,
) -> Result<Vec<Legacy>, E> {
    let workers = program.workers.iter().filter(|worker| dead.contains(&worker.index.0));
    let suspects: Vec<Suspect<'_>> = workers.flat_map(|worker| suspects(program, segment, worker)).collect();
    let deadline = Instant::now() + ORPHAN_TIME;
    let (mut still, mut clear) = (Stillness::default(), false);
    loop {
        // Twice: a lock that changes hands has no owner for a moment.
        let was_clear = std::mem::replace(&mut clear, !suspects.iter().any(|suspect| suspect.is_open(segment, dead)));
        let now = Instant::now();
        let is_clear = suspects.is_empty() || was_clear && clear;
        if is_clear || now >= deadline || still.lasts(program, segment, children, now) {
            break;
        }
        pause(children, now + LOOK_EACH)?;
    }
    Ok(suspects.iter().filter_map(|suspect| suspect.legacy(program, segment, children, dead)).collect())
}

/// The locks that a dead worker uses, in the Program's order.
fn suspects<'a>(program: &Program, segment: &Segment, dead: &'a WorkerProgram) -> Vec<Suspect<'a>> {
    let index = dead.index.0;
    let (holds, waits_for) = (segment.holds(index), segment.slot(index).waits_for());
    let uses = |lock: u32| dead.ops.iter().any(|op| matches!(op.kind, OpKind::Lock { lock: l, .. } if l == lock));
    let suspect = |lock: u32| {
        let part = match () {
            () if holds.contains(&lock) => Part::Held,
            () if waits_for == Some(lock) => Part::Waited,
            () => Part::Uses,
        };
        Suspect { dead, lock, part }
    };
    (0..program.locks.len() as u32).filter(|&lock| uses(lock)).map(suspect).collect()
}

impl Suspect<'_> {
    /// Whether nobody can get it any more, as far as can be told at this moment.
    fn is_left(&self, segment: &Segment) -> bool {
        segment.left_held(self.dead).contains(&self.lock) && self.heir(segment).is_none()
    }

    /// Whether it was the last owner of what others wait for: it may have died before it woke one.
    fn is_awaited(&self, segment: &Segment, dead: &[u32]) -> bool {
        let waits = segment.waiters(self.lock).iter().any(|waiter| !dead.contains(waiter));
        segment.last_owner(self.lock) == Some(self.dead.index.0) && waits
    }

    /// Whether it is not yet clear that somebody can get it.
    fn is_open(&self, segment: &Segment, dead: &[u32]) -> bool {
        self.is_left(segment) || self.is_awaited(segment, dead)
    }

    /// Who has taken it over.
    fn heir(&self, segment: &Segment) -> Option<u32> {
        (0..segment.map().workers).find(|&worker| segment.slot(worker).took_over() == Some(self.lock))
    }

    fn legacy(&self, program: &Program, segment: &Segment, children: &[Child], dead: &[u32]) -> Option<Legacy> {
        let placed = &program.locks[self.lock as usize];
        let (lock, kind) = (format!("lock `{}` of kind {}", placed.name, placed.kind.name()), placed.kind);
        let name = |worker: u32| name_among(children, worker);
        // Also those that ended meanwhile: glibc aborts who waits for a priority-inheriting mutex whose owner died.
        let waiters = segment.waiters(self.lock).into_iter().filter(|waiter| !dead.contains(waiter));
        let waiters: Vec<&str> = waiters.map(name).collect();
        let waiting = match waiters.is_empty() {
            true => "nobody was waiting for it yet".to_owned(),
            false => format!("waiting for it: {}", waiters.join(", ")),
        };
        let open = self.is_open(segment, dead);
        // A robust one may have its next owner before the first look. Of several dead it is not known which left it.
        let alone = !children.iter().any(|c| c.died_as_planned());
        let heir = self.heir(segment).map(name).filter(|_| alone);
        let words = match (self.part, heir) {
            (_, Some(heir)) => format!("holding {lock}, which {heir} has taken over"),
            (Part::Held, None) if kind.is_robust() => format!("holding {lock}, which its next owner can take over"),
            (Part::Held, None) if open => format!("holding {lock}, which nobody can take over; {waiting}"),
            (Part::Waited, None) if open => format!("waiting for {lock}, which nobody has got since; {waiting}"),
            (Part::Uses, None) if open => {
                format!("in the middle of taking or giving back {lock}, which nobody has got since; {waiting}")
            }
            (Part::Waited, None) => format!("waiting for lock `{}`", placed.name),
            (Part::Held | Part::Uses, None) => return None,
        };
        Some(Legacy { dead: self.dead.index.0, lost: open && !kind.is_robust(), words })
    }
}

/// For how long all who live have waited, with no lock changing its owner.
#[derive(Default)]
struct Stillness {
    owners: Vec<Option<u32>>,
    since: Option<Instant>,
}

impl Stillness {
    /// Whether it has lasted long enough by now.
    fn lasts(&mut self, program: &Program, segment: &Segment, children: &mut [Child], now: Instant) -> bool {
        let owners: Vec<_> = (0..program.locks.len() as u32).map(|lock| segment.last_owner(lock)).collect();
        let waits = |index: u32| segment.slot(index).waits_for().is_some();
        let all_wait = |child: &mut Child| child.poll_status().is_some() || child.indices().all(waits);
        let still = owners == self.owners && children.iter_mut().all(all_wait);
        self.owners = owners;
        self.since = still.then(|| self.since.unwrap_or(now));
        self.since.is_some_and(|since| now.duration_since(since) >= STILL_TIME)
    }
}

//! What workers that died left behind: the locks that they held or stood in the queue of, who waits for these, and who
//! has taken one over.
//!
//! A slot says which locks its worker holds and which it waits for, but a worker that is killed between taking a lock and
//! saying so (or between giving it back and saying so) says nothing or too much. So a slot is only where the question
//! comes from; the answer is what the living do: a lock whose owner record changes again was not lost.

use crate::launch::{Child, Member, name_among};
use plan::{LockKind, Program};
use shm_layout::Segment;
use std::time::{Duration, Instant};

/// What the living get at most to run into a dead worker's lock, so that they can be named. Passes are microseconds long
/// as a rule; whoever comes later is not waiting yet.
const ORPHAN_TIME: Duration = Duration::from_millis(500);
/// All who live have waited for so long, and no lock in question has had an owner meanwhile: then nobody will get it. A
/// waiter that was handed it just now would have come onto its CPU in less, unless the machine is very busy.
const STILL_TIME: Duration = Duration::from_millis(50);
/// Between two looks.
const LOOK_EACH: Duration = Duration::from_millis(5);

/// What the dead had to do with a lock, as far as their slots tell.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Part {
    /// It held it.
    Held,
    /// It waited for it.
    Waited,
    /// It owned it last, and says nothing more: it was free then, or it died in taking it or giving it back.
    OwnedLast,
}

/// A lock that a dead worker had to do with.
struct Suspect {
    dead: u32,
    lock: u32,
    part: Part,
    /// Its last owner at the first look.
    before: Option<u32>,
}

/// What became of a lock that a dead worker had to do with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Legacy {
    /// The dead worker's index.
    pub(crate) dead: u32,
    /// The lock, by its index in the Program.
    pub(crate) lock: u32,
    /// Whether nobody can get it any more.
    pub(crate) lost: bool,
    /// What the dead worker was doing with it and what became of it since, in words that follow "while running passes, ".
    pub(crate) words: String,
}

/// Looks on, a few milliseconds at a time, until it is clear what became of the locks that the `dead` had to do with, or
/// [`ORPHAN_TIME`] is over. `pause` passes the time until an instant, notes who ends meanwhile, and says whether to go on.
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
    let suspects: Vec<Suspect> = dead.iter().flat_map(|index| suspects(program, segment, *index)).collect();
    let deadline = Instant::now() + ORPHAN_TIME;
    let mut still = Stillness::begin(segment, &suspects);
    let mut is_still = false;
    while !is_still && !suspects.iter().all(|suspect| suspect.has_moved(segment)) {
        let now = Instant::now();
        is_still = still.lasts(segment, children, now);
        if now >= deadline {
            break;
        }
        pause(children, now + LOOK_EACH)?;
    }
    Ok(suspects.iter().filter_map(|suspect| suspect.legacy(program, segment, children, (dead, is_still))).collect())
}

/// The locks that a dead worker held, waited for or owned last.
fn suspects(program: &Program, segment: &Segment, dead: u32) -> Vec<Suspect> {
    let slot = segment.slot(dead);
    let (holds, waits_for) = (segment.holds(dead), slot.waits_for());
    let suspect = |lock: u32| {
        let before = segment.last_owner(lock);
        let part = match () {
            () if holds.contains(&lock) => Part::Held,
            () if waits_for == Some(lock) => Part::Waited,
            () if before == Some(dead) => Part::OwnedLast,
            () => return None,
        };
        Some(Suspect { dead, lock, part, before })
    };
    (0..program.locks.len() as u32).filter_map(suspect).collect()
}

impl Suspect {
    /// Whether somebody else has owned it since, or it is not held any more.
    fn has_moved(&self, segment: &Segment) -> bool {
        let is_free = || self.part == Part::Held && !segment.holds(self.dead).contains(&self.lock);
        segment.last_owner(self.lock) != self.before || is_free()
    }

    /// `is_still`: all who live have waited for a while, and nobody has got any of the locks in question.
    fn legacy(
        &self,
        program: &Program,
        segment: &Segment,
        children: &[Child],
        (dead, is_still): (&[u32], bool),
    ) -> Option<Legacy> {
        let placed = &program.locks[self.lock as usize];
        let (lock, kind) = (format!("lock `{}`", placed.name), placed.kind);
        // Also those that ended meanwhile: glibc aborts who waits for a priority-inheriting mutex whose owner died.
        let waits = |member: &&Member| {
            !dead.contains(&member.index) && segment.slot(member.index).waits_for() == Some(self.lock)
        };
        let members = children.iter().flat_map(|child| &child.workers);
        let waiters: Vec<&str> = members.filter(waits).map(|member| member.name.as_str()).collect();
        let moved = self.has_moved(segment);
        let waiting = match waiters.is_empty() {
            true => "nobody was waiting for it yet".to_owned(),
            false => format!("waiting for it: {}", waiters.join(", ")),
        };
        // A reader of a sequence lock leaves nothing behind: such a lock is lost where others wait for it.
        let is_held = self.part == Part::Held && !moved && (kind != LockKind::Seqlock || !waiters.is_empty());
        // One owner may come again and again while others wait: only where all wait is nobody getting it.
        let stuck = is_still && !moved && !waiters.is_empty();
        let words = match self.part {
            Part::Held if kind.is_robust() => {
                let heir = segment.last_owner(self.lock).filter(|_| moved);
                let heir = heir.map_or("which its next owner can take over".to_owned(), |heir| {
                    format!("which {} has taken over", name_among(children, heir))
                });
                format!("holding {lock} of kind {}, {heir}", kind.name())
            }
            Part::Held if is_held => {
                format!("holding {lock} of kind {}, which nobody can take over; {waiting}", kind.name())
            }
            Part::Waited if stuck => {
                format!("waiting for {lock} of kind {}, which nobody has got since; {waiting}", kind.name())
            }
            Part::Waited => format!("waiting for {lock}"),
            Part::OwnedLast if stuck => format!(
                "in the middle of taking or giving back {lock} of kind {}, which nobody has got since; {waiting}",
                kind.name()
            ),
            Part::Held | Part::OwnedLast => return None,
        };
        let lost = !kind.is_robust() && (is_held || stuck);
        Some(Legacy { dead: self.dead, lock: self.lock, lost, words })
    }
}

/// For how long all who live have waited, with no owner of the locks in question changing.
struct Stillness<'a> {
    suspects: &'a [Suspect],
    owners: Vec<Option<u32>>,
    since: Option<Instant>,
}

impl<'a> Stillness<'a> {
    fn begin(segment: &Segment, suspects: &'a [Suspect]) -> Stillness<'a> {
        Stillness { suspects, owners: Self::owners(segment, suspects), since: None }
    }

    fn owners(segment: &Segment, suspects: &[Suspect]) -> Vec<Option<u32>> {
        suspects.iter().map(|suspect| segment.last_owner(suspect.lock)).collect()
    }

    /// Whether it has lasted long enough by now.
    fn lasts(&mut self, segment: &Segment, children: &mut [Child], now: Instant) -> bool {
        let owners = Self::owners(segment, self.suspects);
        let waits = |index: u32| segment.slot(index).waits_for().is_some();
        let all_wait = |child: &mut Child| child.poll_status().is_some() || child.indices().all(waits);
        let still = owners == self.owners && children.iter_mut().all(all_wait);
        self.owners = owners;
        self.since = still.then(|| self.since.unwrap_or(now));
        self.since.is_some_and(|since| now.duration_since(since) >= STILL_TIME)
    }
}

//! Exercises: what a student may change in a scenario, what has to stay true, and what a repair must have changed.
//!
//! An exercise is a folder with a scenario to repair (`starter.toml`), one that is repaired (`reference.toml`) and
//! `exercise.toml`, which says what is asked: [`load`] reads it. The first two gates of a grading are judged here, from
//! the scenario as it is bound and from what its workers left in memory: no time is measured, so they judge on any
//! machine. [`conservation`] is the same work with every count exact, [`mechanism`] what made the starter slow. The
//! third gate, the effect, is measured; `analysis` judges it. `scenarios/exercises/README.md` is the reference of
//! `exercise.toml`.
#![forbid(unsafe_code)]

mod conserve;
mod mechanism;
mod places;
mod read;
mod task;

pub use conserve::{conservation, exact};
pub use mechanism::mechanism;
pub use read::{FILE, load, parse};

use plan::expect::Metric;
use plan::{Arm, LockKind};

/// What an exercise asks.
#[derive(Clone, Debug, PartialEq)]
pub struct Exercise {
    /// What it is about, in a few words.
    pub title: String,
    /// What the student is asked to do.
    pub task: String,
    /// What may differ from the starter; all else must stay as it is.
    pub may_change: Vec<Part>,
    /// What is counted.
    pub counts: Vec<CountRule>,
    /// Who reads all of what is counted.
    pub sums: Vec<SumRule>,
    /// What must lie apart.
    pub apart: Vec<ApartRule>,
    /// Most bytes that the layout may take.
    pub bytes_max: Option<u64>,
    /// What locks must be like.
    pub locks: Vec<LockRule>,
    /// Roles that may give no memory back.
    pub keeps_memory: Vec<String>,
    /// What is measured; `None` where the first two gates are all there is.
    pub effect: Option<EffectRule>,
    /// One after the other, for who asks.
    pub hints: Vec<String>,
}

/// What a student may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Where things lie: `placement`, the order of the fields, `at`, and fields that nobody touches.
    Placement,
    /// How many elements a field has, and which fields there are.
    Fields,
    /// The kinds of the locks, and which there are.
    Locks,
    /// The loop of that role.
    Loop(String),
}

/// Each pass of a role adds so much to a field, over its elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountRule {
    /// The field, of 8 bytes an element.
    pub field: String,
    /// The role.
    pub role: String,
    /// By how much each of its passes raises the sum of the elements.
    pub per_pass: u64,
}

/// A role reads every element of a field that somebody writes, as often as it did in the starter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SumRule {
    /// The field.
    pub field: String,
    /// The role.
    pub role: String,
}

/// The lines of these fields are written by nobody but who uses them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApartRule {
    /// Fields or locks.
    pub fields: Vec<String>,
    /// The roles among whose workers it holds; empty means all.
    pub roles: Vec<String>,
}

/// What a lock must be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockRule {
    /// The lock.
    pub lock: String,
    /// How it must behave.
    pub is: Vec<Behaviour>,
    /// The longest that a pass may compute or sleep while it holds it.
    pub held_max_ns: Option<u64>,
}

/// How a lock behaves, whatever its name.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Who comes first is served first.
    ByArrival,
    /// Who waits long gives its CPU up.
    Sleeps,
    /// Who comes after a dead owner takes over.
    Robust,
    /// Readers hold it together.
    ReadersShare,
    /// Readers write nothing that others look at.
    ReadersWriteNothing,
}

impl Behaviour {
    /// As `exercise.toml` spells them.
    pub const ALL: [(&str, Behaviour); 5] = [
        ("by-arrival", Behaviour::ByArrival),
        ("sleeps", Behaviour::Sleeps),
        ("robust", Behaviour::Robust),
        ("readers-share", Behaviour::ReadersShare),
        ("readers-write-nothing", Behaviour::ReadersWriteNothing),
    ];

    /// Whether a kind of lock is like that.
    pub fn of(self, kind: LockKind) -> bool {
        match self {
            Behaviour::ByArrival => kind.serves_by_arrival(),
            Behaviour::Sleeps => !kind.spins(),
            Behaviour::Robust => kind.is_robust(),
            Behaviour::ReadersShare => kind.shares_readers(),
            Behaviour::ReadersWriteNothing => kind == LockKind::Seqlock,
        }
    }

    /// What it means, to follow "the lock".
    fn words(self) -> &'static str {
        match self {
            Behaviour::ByArrival => "serves in the order of arrival",
            Behaviour::Sleeps => "lets who waits give up the CPU",
            Behaviour::Robust => "can be taken over from an owner that died",
            Behaviour::ReadersShare => "lets readers in together",
            Behaviour::ReadersWriteNothing => "has readers that write nothing others look at",
        }
    }
}

/// What is measured on the host, lower being better.
#[derive(Clone, Debug, PartialEq)]
pub struct EffectRule {
    /// The figure.
    pub metric: Metric,
    /// Whose: a role's or a lock's name; `None` is the headline role, or the only lock.
    pub of: Option<String>,
    /// Share of what the reference gains that must be recovered for certain.
    pub recovers: f64,
}

/// Why the exercise itself is at fault, not the student: its rules do not fit its starter.
///
/// # Errors
/// What does not fit, in a sentence.
pub fn fits(exercise: &Exercise, starter: &Arm) -> Result<(), String> {
    let case = &starter.case;
    let role = |name: &String| match case.roles.iter().find(|role| role.name == *name) {
        Some(_) => Ok(()),
        None => Err(format!("the starter has no role `{name}`")),
    };
    let thing = |name: &String| {
        let known = case.fields.iter().any(|f| f.name == *name) || case.locks.iter().any(|l| l.name == *name);
        if known { Ok(()) } else { Err(format!("the starter has no field or lock `{name}`")) }
    };
    let loops =
        exercise.may_change.iter().filter_map(|part| if let Part::Loop(role) = part { Some(role) } else { None });
    let counters = exercise.counts.iter().map(|rule| &rule.role).chain(exercise.sums.iter().map(|rule| &rule.role));
    let among = exercise.apart.iter().flat_map(|rule| &rule.roles);
    loops.chain(counters).chain(among).chain(&exercise.keeps_memory).try_for_each(role)?;
    let fields = exercise.counts.iter().map(|rule| &rule.field).chain(exercise.sums.iter().map(|rule| &rule.field));
    let lines = exercise.apart.iter().flat_map(|rule| &rule.fields);
    fields.chain(lines).chain(exercise.locks.iter().map(|rule| &rule.lock)).try_for_each(thing)?;
    for rule in &exercise.counts {
        let field = case.fields.iter().find(|field| field.name == rule.field);
        if field.is_some_and(|field| field.width != plan::Width::U64) {
            return Err(format!("`{}` is counted and has to be of u64, or its count would wrap", rule.field));
        }
        if case.roles.iter().any(|r| r.name == rule.role && r.dies()) {
            return Err(format!("`{}` ends its process, so that its passes cannot be counted", rule.role));
        }
    }
    Ok(())
}

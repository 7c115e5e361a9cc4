//! From what was seen to a scenario: fields and locks at their offsets, and a role for each kind of user.

use super::accesses::{self, Access, Alone};
use super::names::Names;
use super::offsets::{Settled, settle};
use super::pass::Pass;
use super::sites::{self, Sites};
use super::users::User;
use super::verbs::Verb;
use record::{Attach, AttachedProcess, LineVerdict, TouchedWord};
use std::collections::{BTreeMap, BTreeSet};

/// Bounds of the schema, in scenarios/README.md: roles, steps of a loop, and the N of `every N`. A lock takes up to three
/// steps more.
const MOST_ROLES: usize = 16;
const MOST_STEPS: usize = 200;
const MOST_EVERY: u64 = 1_000_000;
/// A role that passes more seldom has no pass in a window of reasonable length.
const SELDOM_PER_SECOND: f64 = 20.0;

/// A thread that has less of a CPU sleeps, or shares it.
const RUNS_ALL_THE_TIME: f64 = 0.9;

/// A scenario before it is text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Draft {
    pub(super) fields: Vec<DraftField>,
    pub(super) locks: Vec<DraftLock>,
    pub(super) roles: Vec<DraftRole>,
    /// What it leaves out or has otherwise; a sentence each.
    pub(super) differs: Vec<String>,
}

/// A word that is a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DraftField {
    pub(super) name: String,
    /// 1, 2, 4 or 8.
    pub(super) bytes: u64,
    /// Offset in the scenario.
    pub(super) at: u64,
    /// Offset in the segment.
    pub(super) offset: u64,
    pub(super) verdict: LineVerdict,
}

/// A lock.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DraftLock {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) at: u64,
    pub(super) offset: u64,
    /// How long it is held each time, nanoseconds: from the share of looks at which it was held, and how often it was taken.
    pub(super) hold_ns: Option<u64>,
    /// Work while it is held, nanoseconds: at first all of the hold, of which trials take what the accesses within cost.
    pub(super) work_ns: u64,
}

/// A user, or several that do the same.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DraftRole {
    pub(super) name: String,
    /// Those it stands for, ascending: a worker each.
    pub(super) users: Vec<User>,
    /// Workers of each process; 1 where processes have different numbers of them.
    pub(super) threads: u32,
    /// The role in whose process its workers are threads.
    pub(super) process: Option<String>,
    pub(super) steps: Vec<DraftStep>,
    /// Places in [`Draft::locks`].
    pub(super) locks: Vec<usize>,
    pub(super) work_ns: u64,
    pub(super) pass: Pass,
}

impl DraftRole {
    pub(super) fn workers(&self) -> u32 {
        self.users.len() as u32
    }

    /// The processes of those it stands for, ascending.
    pub(super) fn pids(&self) -> Vec<u32> {
        self.users.iter().map(|user| user.pid).collect::<BTreeSet<u32>>().into_iter().collect()
    }
}

/// A step on a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DraftStep {
    pub(super) every: u64,
    pub(super) verb: Verb,
    /// Offset of the field's word in the segment.
    pub(super) offset: u64,
    pub(super) places: Vec<String>,
}

/// One user's part.
struct One<'a> {
    process: &'a AttachedProcess,
    user: User,
    accesses: Vec<Access>,
    locks: Vec<usize>,
    pass: Pass,
}

/// What tells kinds of user apart: the process's name, what it does to which words, and the locks that it takes.
type Kind<'a> = (&'a str, Vec<(u64, Verb)>, Vec<usize>);

impl Draft {
    /// Of all that was seen. Without roles, where nobody was seen to do anything that a role could do.
    pub(super) fn of(seen: &Attach) -> Draft {
        let sites = Sites::of(seen);
        let mut draft = Draft::default();
        draft.not_seen(seen, &sites);
        let ones = draft.ones(seen, &sites);
        let holds = holds(seen, &sites, &ones);
        draft.roles = draft.grouped(ones, &holds);
        draft.few_enough();
        draft.in_one_process();
        draft.not_beside_each_other();
        draft.place(seen, &sites, &holds);
        draft
    }

    fn not_seen(&mut self, seen: &Attach, sites: &Sites) {
        let words = || seen.lines.iter().flat_map(|line| &line.words).filter(|word| !sites.holds(word.offset));
        if words().flat_map(|word| &word.instructions).any(accesses::by_kernel) {
            self.differs
                .push("what the kernel did to the segment for a process, as by read(2), is left out".to_owned());
        }
        if words().any(|word| !word.proved) {
            self.differs.push(
                "some words are known from samples alone: how often they are used is not, and each pass does it here"
                    .to_owned(),
            );
        }
    }

    /// Those who do anything, each by itself.
    fn ones<'a>(&mut self, seen: &'a Attach, sites: &Sites) -> Vec<One<'a>> {
        let alone = Alone::of(seen, sites);
        let mut ones = Vec::new();
        for process in &seen.processes {
            let users = User::of_process(seen, process.pid);
            let cpu = process.cpu[2].or(process.cpu[0]).map(|share| share / users.len() as f64);
            // A process with one is named by itself.
            let who = |user: User| if users.len() > 1 { who(process, user.tid) } else { who(process, None) };
            for user in users.iter().copied() {
                let accesses = accesses::of(seen, user, sites, &alone);
                let locks = sites.taken_by(user);
                if accesses.is_empty() && locks.is_empty() {
                    self.differs.push(format!("{} was not seen to touch it, and has no role", who(user)));
                    continue;
                }
                let taken = locks.iter().filter_map(|site| {
                    let word = word_at(seen, sites.0[*site].offset)?;
                    sites::acquisitions(word, user)
                });
                let taken = taken.reduce(f64::max);
                let pass = Pass::of(&accesses, !locks.is_empty(), taken, cpu);
                if pass.wall_per_second.is_some_and(|rate| rate < SELDOM_PER_SECOND) {
                    self.differs.push(format!("{} did so less than 20 times a second, and has no role", who(user)));
                    continue;
                }
                ones.push(One { process, user, accesses, locks, pass });
            }
        }
        ones
    }

    /// Like users together.
    fn grouped(&mut self, ones: Vec<One<'_>>, holds: &[Option<f64>]) -> Vec<DraftRole> {
        let mut kinds: BTreeMap<Kind<'_>, Vec<One<'_>>> = BTreeMap::new();
        for one in ones {
            let does = one.accesses.iter().map(|access| (access.offset, access.verb)).collect();
            kinds.entry((&one.process.command, does, one.locks.clone())).or_default().push(one);
        }
        let mut roles: Vec<(String, DraftRole)> =
            kinds.into_iter().map(|((command, ..), alike)| (command.to_owned(), self.role(alike, holds))).collect();
        let busy = |role: &DraftRole| role.pass.wall_per_second.unwrap_or(f64::INFINITY);
        roles.sort_by(|(_, a), (_, b)| busy(b).total_cmp(&busy(a)));
        let left: Vec<u32> = roles.iter().skip(MOST_ROLES).flat_map(|(_, role)| role.pids()).collect();
        if !left.is_empty() {
            let pids: Vec<String> = left.iter().map(u32::to_string).collect();
            self.differs
                .push(format!("a scenario has {MOST_ROLES} roles at most: processes {} have none", pids.join(", ")));
        }
        roles.truncate(MOST_ROLES);
        // Numbered by where they work and not by how fast, so that a later watch gives them the same names.
        roles.sort_by_key(|(command, role)| (command.clone(), role.steps.first().map(|step| step.offset)));
        let mut names = Names::of_roles(roles.iter().map(|(command, _)| command.as_str()));
        let named = roles.into_iter().map(|(command, role)| DraftRole { name: names.next(&command), ..role });
        named.collect()
    }

    fn role(&mut self, alike: Vec<One<'_>>, holds: &[Option<f64>]) -> DraftRole {
        let pass = Pass::together(alike.iter().map(|one| &one.pass));
        let first = &alike[0];
        let mut steps = Vec::new();
        for access in &first.accesses {
            let every = first.pass.every(access);
            match every <= MOST_EVERY {
                true => steps.push(DraftStep {
                    every,
                    verb: access.verb,
                    offset: access.offset,
                    places: access.places.clone(),
                }),
                false => self.differs.push(format!(
                    "{} uses the word at {:#x} in less than one pass of a million: left out",
                    who(first.process, first.user.tid),
                    access.offset
                )),
            }
        }
        if let Some(more) = steps.len().checked_sub(MOST_STEPS).filter(|more| *more > 0) {
            steps.sort_by_key(|step| step.every);
            steps.truncate(MOST_STEPS);
            steps.sort_by_key(|step| (step.offset, step.verb));
            self.differs
                .push(format!("the {more} rarest accesses of {} are left out", who(first.process, first.user.tid)));
        }
        if first.accesses.iter().any(|access| access.at_least && access.pace.is_none()) && first.accesses.len() > 1 {
            self.differs.push(format!(
                "how often {} reads words that follow each other faster than traps is not known: each pass does it here",
                who(first.process, first.user.tid)
            ));
        }
        let held: f64 = first.locks.iter().filter_map(|lock| holds[*lock]).sum();
        let mut users: Vec<User> = alike.iter().map(|one| one.user).collect();
        users.sort_unstable();
        DraftRole {
            name: String::new(),
            threads: self.threads(&users),
            users,
            process: None,
            steps,
            locks: first.locks.clone(),
            work_ns: pass.work_ns(held),
            pass,
        }
    }

    /// How many threads each process has in a role, where all have as many.
    fn threads(&mut self, users: &[User]) -> u32 {
        let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
        users.iter().for_each(|user| *counts.entry(user.pid).or_default() += 1);
        let different: BTreeSet<u32> = counts.values().copied().collect();
        match (different.first(), different.len()) {
            (Some(threads), 1) => *threads,
            _ => {
                let pids: Vec<String> = counts.keys().map(u32::to_string).collect();
                self.differs.push(format!(
                    "processes {} have different numbers of threads that do the same: here each is a process of its own",
                    pids.join(", ")
                ));
                1
            }
        }
    }

    /// The threads that a role stands for, where others of their processes have other roles; else none.
    pub(super) fn tids(&self, role: &DraftRole) -> Vec<u32> {
        let others: BTreeSet<u32> =
            self.roles.iter().filter(|one| one.name != role.name).flat_map(DraftRole::pids).collect();
        let told = role.users.iter().filter(|user| others.contains(&user.pid));
        told.filter_map(|user| user.tid).collect()
    }

    /// Roles of one process are threads of it in the lab too, where that process is all that they stand for.
    fn in_one_process(&mut self) {
        let mut first: BTreeMap<u32, String> = BTreeMap::new();
        let mut apart: BTreeSet<u32> = BTreeSet::new();
        let mut seen: BTreeSet<u32> = BTreeSet::new();
        for role in &mut self.roles {
            let pids = role.pids();
            if let [pid] = pids[..] {
                match first.get(&pid) {
                    Some(name) => role.process = Some(name.clone()),
                    None => _ = first.insert(pid, role.name.clone()),
                }
            }
            let known = pids.iter().copied().filter(|pid| role.process.is_none() && seen.contains(pid));
            apart.extend(known.collect::<Vec<u32>>());
            seen.extend(pids);
        }
        if !apart.is_empty() {
            let pids: Vec<String> = apart.iter().map(u32::to_string).collect();
            self.differs.push(format!(
                "threads that do different things are processes of their own here, of those like {}",
                pids.join(", ")
            ));
        }
    }

    /// Who runs for a part of the time meets the others for a part of it; the lab's workers meet all of the time.
    fn not_beside_each_other(&mut self) {
        let shares = self.roles.iter().filter(|role| !role.pass.locks).filter_map(|role| role.pass.cpu);
        let least = shares.reduce(f64::min).filter(|share| *share < RUNS_ALL_THE_TIME && self.roles.len() > 1);
        if let Some(share) = least {
            self.differs.push(format!(
                "the processes ran for {:.0} % of the time or more, and not always beside each other, as the lab's workers do: \
                 they may have contended for less of it",
                share * 100.0
            ));
        }
    }

    /// Roles whose every step was left out do nothing.
    fn few_enough(&mut self) {
        self.roles.retain(|role| !role.steps.is_empty() || !role.locks.is_empty());
    }

    /// Fields and locks that roles use, at their offsets.
    fn place(&mut self, seen: &Attach, sites: &Sites, holds: &[Option<f64>]) {
        let uses = |offset: u64| self.roles.iter().flat_map(|role| &role.steps).any(|step| step.offset == offset);
        let words = || seen.lines.iter().flat_map(|line| line.words.iter().map(move |word| (line.verdict, word)));
        let mut used: Vec<(LineVerdict, &TouchedWord)> = words().filter(|(_, word)| uses(word.offset)).collect();
        used.sort_by_key(|(_, word)| word.offset);
        let taken: Vec<usize> =
            (0..sites.0.len()).filter(|site| self.roles.iter().any(|role| role.locks.contains(site))).collect();
        let lock_offsets: Vec<u64> = taken.iter().map(|site| sites.0[*site].offset).collect();
        let sizes: Vec<(u64, u64)> = used.iter().map(|(_, word)| (word.offset, size_of(word))).collect();
        let Settled { fields, locks, moved } = settle(&sizes, &lock_offsets);
        self.differs.extend(moved);
        let mut names = Names::default();
        self.fields = used
            .iter()
            .zip(fields)
            .map(|((verdict, word), at)| DraftField {
                name: names.next(&word.field.clone().unwrap_or_else(|| format!("word_{:#x}", word.offset))),
                bytes: size_of(word),
                at,
                offset: word.offset,
                verdict: *verdict,
            })
            .collect();
        self.locks = taken
            .iter()
            .zip(locks)
            .map(|(site, at)| {
                let one = &sites.0[*site];
                DraftLock {
                    name: names.next(&one.field.clone().unwrap_or_else(|| format!("lock_{:#x}", one.offset))),
                    kind: one.kind.clone(),
                    at,
                    offset: one.offset,
                    hold_ns: holds[*site].map(|ns| ns.round() as u64),
                    work_ns: holds[*site].map_or(0, |ns| ns.round() as u64),
                }
            })
            .collect();
        for role in &mut self.roles {
            let place = |site: &usize| taken.iter().position(|one| one == site);
            role.locks = role.locks.iter().filter_map(place).collect();
        }
    }
}

/// How long each lock is held each time, nanoseconds: the share of looks at which it was held over how often it was taken.
fn holds(seen: &Attach, sites: &Sites, ones: &[One<'_>]) -> Vec<Option<f64>> {
    let of = |(at, site): (usize, &sites::Site)| {
        let takers = ones.iter().filter(|one| one.locks.contains(&at));
        let taken: f64 = takers.map(|one| one.pass.wall_per_second).sum::<Option<f64>>()?;
        (taken > 0.0 && word_at(seen, site.offset).is_some()).then_some(site.held? / taken * 1e9)
    };
    sites.0.iter().enumerate().map(of).collect()
}

fn word_at(seen: &Attach, offset: u64) -> Option<&TouchedWord> {
    seen.lines.iter().flat_map(|line| &line.words).find(|word| word.offset == offset)
}

/// The widest whole number that lies there as it is used; what lies across its alignment is taken for its first part.
fn size_of(word: &TouchedWord) -> u64 {
    let widest = u64::from(word.bytes).clamp(1, 8);
    [8, 4, 2, 1].into_iter().find(|bytes| *bytes <= widest && word.offset.is_multiple_of(*bytes)).unwrap_or(1)
}

fn who(process: &AttachedProcess, tid: Option<u32>) -> String {
    let thread = tid.map_or_else(String::new, |tid| format!("thread {tid} of "));
    format!("{thread}process {} ({})", process.pid, process.command)
}

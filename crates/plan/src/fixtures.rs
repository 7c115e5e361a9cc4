//! Scenes for this crate's tests: cases built from steps as scenarios write them, and two machines on paper.

use crate::lock::{Lock, LockKind};
use crate::placement::{Placement, Strategy};
use crate::region::{MemoryStep, MemoryVerb, Pages, Region};
use crate::scenario::{Arm, ArmKind, Case, Count, CpuChoice, Field, Measure, Plan, Repetitions, Role, Width};
use crate::step::{Action, Element, Step, Target};
use crate::topology::{Cpu, Topology};
use crate::units::{CpuId, Nanos};

/// A case under construction. Fields, locks and regions must be declared before the roles that use them.
#[derive(Clone, Debug)]
pub(crate) struct Scene(pub(crate) Case);

impl Scene {
    pub(crate) fn new() -> Scene {
        Scene(Case {
            fields: Vec::new(),
            locks: Vec::new(),
            regions: Vec::new(),
            roles: Vec::new(),
            placement: Placement { strategy: Strategy::Packed, shift: 0 },
            oversubscribe: false,
        })
    }

    pub(crate) fn field(self, name: &str) -> Scene {
        self.any_field(name, Width::U64, Count::One, None)
    }

    pub(crate) fn array(self, name: &str, count: u32) -> Scene {
        self.any_field(name, Width::U64, Count::Fixed(count), None)
    }

    pub(crate) fn any_field(mut self, name: &str, width: Width, count: Count, at: Option<u64>) -> Scene {
        self.0.fields.push(Field { name: name.to_owned(), width, count, at });
        self
    }

    pub(crate) fn lock(mut self, name: &str, at: Option<u64>) -> Scene {
        self.0.locks.push(Lock { name: name.to_owned(), kind: LockKind::Pthread, at });
        self
    }

    pub(crate) fn lock_of(mut self, name: &str, kind: LockKind) -> Scene {
        self.0.locks.push(Lock { name: name.to_owned(), kind, at: None });
        self
    }

    pub(crate) fn region(mut self, name: &str, pages: u64) -> Scene {
        let bytes = pages * crate::units::PAGE_BYTES;
        self.0.regions.push(Region { name: name.to_owned(), bytes, shared: false, pages: Pages::Small });
        self
    }

    pub(crate) fn shared_region(self, name: &str, pages: u64) -> Scene {
        let mut scene = self.region(name, pages);
        scene.0.regions.last_mut().expect("the one just made").shared = true;
        scene
    }

    pub(crate) fn role(mut self, name: &str, workers: u32, steps: &[&str]) -> Scene {
        let steps = steps.iter().map(|text| self.step(text)).collect();
        self.0.roles.push(Role {
            threads: 1,
            joins: false,
            period: None,
            latency: false,
            name: name.to_owned(),
            workers,
            cpus: CpuChoice::Spread,
            after: Nanos(0),
            populate: Vec::new(),
            steps,
        });
        self
    }

    /// Where the role declared last runs.
    pub(crate) fn on(mut self, cpus: CpuChoice) -> Scene {
        self.0.roles.last_mut().expect("a role before its CPUs").cpus = cpus;
        self
    }

    pub(crate) fn list(self, cpus: &[u32]) -> Scene {
        self.on(CpuChoice::List(cpus.iter().copied().map(CpuId).collect()))
    }

    pub(crate) fn placed(mut self, strategy: Strategy, shift: u64) -> Scene {
        self.0.placement = Placement { strategy, shift };
        self
    }

    pub(crate) fn oversubscribed(mut self) -> Scene {
        self.0.oversubscribe = true;
        self
    }

    pub(crate) fn arm(&self, variant: &str) -> Arm {
        Arm {
            name: variant.to_owned(),
            kind: ArmKind::Variant,
            variant: variant.to_owned(),
            sweep: Vec::new(),
            window: Nanos(100_000_000),
            warm_up: Nanos(20_000_000),
            case: self.0.clone(),
        }
    }

    fn step(&self, text: &str) -> Step {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let mut every = 1;
        if words[0] == "every" {
            every = words[1].parse().expect("a number after `every`");
            words.drain(..2);
        }
        let argument = words.get(1).copied().unwrap_or_default();
        let timeout = words.get(3).map(|nanos| Nanos(nanos.parse().expect("nanoseconds behind `timeout`")));
        Step { every, action: self.action(words[0], argument, timeout), text: text.to_owned() }
    }

    fn action(&self, verb: &str, argument: &str, timeout: Option<Nanos>) -> Action {
        let target = || self.target(argument);
        let lock = || self.0.locks.iter().position(|lock| lock.name == argument).expect("a declared lock");
        let nanos = || Nanos(argument.parse().expect("nanoseconds"));
        match verb {
            "load" => Action::Load(target()),
            "store" => Action::Store(target()),
            "bump" => Action::Bump(target()),
            "add" => Action::Add(target()),
            "swap" => Action::Swap(target()),
            "cas" => Action::Cas(target()),
            "post" => Action::Post(target()),
            "wait" => Action::Wait(target()),
            "flush" => Action::Flush(target()),
            "lock" | "rlock" => Action::Lock { lock: lock(), shared: verb == "rlock", timeout },
            "unlock" | "runlock" => Action::Unlock { lock: lock(), shared: verb == "runlock" },
            "die" => Action::Die,
            "work" => Action::Work(nanos()),
            "sleep" => Action::Sleep(nanos()),
            verb if MemoryVerb::ALL.iter().any(|(name, _)| *name == verb) => {
                let (_, verb) = MemoryVerb::ALL.into_iter().find(|(name, _)| *name == verb).expect("looked up");
                let named = |region: &Region| region.name == argument;
                let index = self.0.regions.iter().position(named).expect("a declared region");
                let bytes = self.0.regions[index].bytes;
                Action::Memory(MemoryStep { verb, region: index as u32, bytes, chunk: bytes, pause: Nanos(0) })
            }
            "pause" => Action::Pause,
            "fence" => Action::Fence,
            "yield" => Action::Yield,
            other => panic!("no step is called {other}"),
        }
    }

    fn target(&self, text: &str) -> Target {
        let (name, element) = match text.trim_end_matches(']').split_once('[') {
            None => (text, Element::Only),
            Some((name, "me")) => (name, Element::Me),
            Some((name, "next")) => (name, Element::Next),
            Some((name, "any")) => (name, Element::Any),
            Some((name, "all")) => (name, Element::All),
            Some((name, index)) => (name, Element::At(index.parse().expect("an index"))),
        };
        let field = self.0.fields.iter().position(|field| field.name == name).expect("a declared field");
        Target { field, element }
    }
}

pub(crate) fn plan_of(arms: Vec<Arm>) -> Plan {
    Plan {
        name: "fixture".to_owned(),
        title: "Fixture".to_owned(),
        question: "Does it bind?".to_owned(),
        measure: Measure {
            repetitions: Repetitions::Fixed(10),
            precision: 0.05,
            budget: Nanos(20_000_000_000),
            baselines: None,
            headline_role: 0,
            events: Vec::new(),
        },
        arms,
        expects: Vec::new(),
        predictions: Vec::new(),
    }
}

/// Two CPUs, one last-level cache, no siblings.
pub(crate) fn two_cpus() -> Topology {
    let cpu = |id| Cpu { id: CpuId(id), core: id, llc: 0, node: 0, socket: 0, usable: true };
    Topology { cpus: (0..2).map(cpu).collect() }
}

/// Two sockets of two last-level caches of two cores of two threads, numbered as Linux does: CPUs 0 to 7 are the cores'
/// first threads, socket by socket, 8 to 15 their siblings.
pub(crate) fn two_sockets() -> Topology {
    let cpu = |id: u32| {
        let core = id % 8;
        Cpu { id: CpuId(id), core, llc: core / 2, node: core / 4, socket: core / 4, usable: true }
    };
    Topology { cpus: (0..16).map(cpu).collect() }
}

//! Which CPU each worker takes.

mod lists;

use super::Refusal;
use crate::scenario::{Case, CpuChoice, Role};
use crate::topology::{Cpu, Topology};
use crate::units::CpuId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The workers' CPUs, by worker index. Lists take theirs first; then the roles choose in order among the usable CPUs
/// that no worker has. With `oversubscribe` the CPU with fewest workers comes next, so that workers go round.
pub(super) fn choose(case: &Case, topology: &Topology) -> Result<Vec<CpuId>, Refusal> {
    lists::check(case, topology)?;
    let usable: Vec<Cpu> = topology.cpus.iter().filter(|cpu| cpu.usable).copied().collect();
    let workers = case.worker_count() as usize;
    if workers > usable.len() && !case.oversubscribe {
        let have = usable.len();
        return Err(Refusal::machine(format!(
            "needs {}, this host has {have} usable; `oversubscribe = true` would share them",
            cpus(workers)
        )));
    }
    if workers > 0 && usable.is_empty() {
        return Err(Refusal::machine(format!("needs {}, and this process may use none", cpus(workers))));
    }
    let mut seating = Seating { usable, load: Load::default(), oversubscribe: case.oversubscribe, taken: Vec::new() };
    for role in &case.roles {
        lists::of(role, topology).for_each(|cpu| seating.load.add(cpu));
    }
    for role in &case.roles {
        seating.seat(role, topology)?;
    }
    Ok(seating.taken.iter().map(|cpu| cpu.id).collect())
}

/// Workers by what they sit on.
#[derive(Default)]
struct Load {
    cpu: BTreeMap<CpuId, u32>,
    core: BTreeMap<u32, u32>,
    llc: BTreeMap<u32, u32>,
    socket: BTreeMap<u32, u32>,
}

impl Load {
    fn add(&mut self, cpu: &Cpu) {
        *self.cpu.entry(cpu.id).or_default() += 1;
        *self.core.entry(cpu.core).or_default() += 1;
        *self.llc.entry(cpu.llc).or_default() += 1;
        *self.socket.entry(cpu.socket).or_default() += 1;
    }

    fn is_free(&self, cpu: &Cpu) -> bool {
        !self.cpu.contains_key(&cpu.id)
    }

    /// Least is farthest from the workers there are: no CPU twice before all are taken, siblings last, then sockets in
    /// turn, then last-level groups, then by number.
    fn nearness(&self, cpu: &Cpu) -> (u32, u32, u32, u32, CpuId) {
        let of = |map: &BTreeMap<u32, u32>, group| map.get(&group).copied().unwrap_or(0);
        let on_cpu = self.cpu.get(&cpu.id).copied().unwrap_or(0);
        (on_cpu, of(&self.core, cpu.core), of(&self.socket, cpu.socket), of(&self.llc, cpu.llc), cpu.id)
    }
}

/// The workers seated so far, and what is left.
struct Seating {
    usable: Vec<Cpu>,
    /// CPUs of lists count from the start.
    load: Load,
    oversubscribe: bool,
    taken: Vec<Cpu>,
}

/// A choice that keeps a role's workers within one group.
struct Together {
    /// As scenarios spell it.
    choice: &'static str,
    /// What the group offers, in words.
    offers: &'static str,
    group: fn(&Cpu) -> u32,
    /// Whether each worker needs a core of its own.
    own_core: bool,
}

const SAME_CORE: Together =
    Together { choice: "same-core", offers: "hardware threads of one core", group: |cpu| cpu.core, own_core: false };
const SAME_LLC: Together =
    Together { choice: "same-llc", offers: "cores of one last-level cache", group: |cpu| cpu.llc, own_core: true };

impl Seating {
    fn seat(&mut self, role: &Role, topology: &Topology) -> Result<(), Refusal> {
        match &role.cpus {
            CpuChoice::List(_) => {
                self.taken.extend(lists::of(role, topology));
                Ok(())
            }
            CpuChoice::Spread => (0..role.workers).try_for_each(|_| self.take_farthest(role, "spread", |_| true)),
            CpuChoice::SameCore => self.seat_together(role, &SAME_CORE),
            CpuChoice::SameLlc => self.seat_together(role, &SAME_LLC),
            CpuChoice::CrossSocket => self.seat_across(role),
        }
    }

    fn take(&mut self, cpu: Cpu) {
        self.load.add(&cpu);
        self.taken.push(cpu);
    }

    /// Seats one worker on the candidate farthest from all others.
    fn take_farthest(&mut self, role: &Role, choice: &str, may: impl Fn(&Cpu) -> bool) -> Result<(), Refusal> {
        let open = |cpu: &&Cpu| may(cpu) && (self.oversubscribe || self.load.is_free(cpu));
        let Some(cpu) = self.usable.iter().filter(open).min_by_key(|cpu| self.load.nearness(cpu)).copied() else {
            let free = self.usable.iter().filter(|cpu| self.load.is_free(cpu)).count();
            return Err(Refusal::machine(format!(
                "role `{}` asks for `{choice}`, but none of the {free} CPUs still free (of {} usable) fits",
                role.name,
                self.usable.len(),
            )));
        };
        self.take(cpu);
        Ok(())
    }

    fn seat_together(&mut self, role: &Role, rule: &Together) -> Result<(), Refusal> {
        if let (1, Some(before)) = (role.workers, self.taken.last().copied()) {
            let beside = |cpu: &Cpu| {
                let apart = if rule.own_core { cpu.core != before.core } else { cpu.id != before.id };
                apart && (rule.group)(cpu) == (rule.group)(&before)
            };
            return self.take_farthest(role, rule.choice, beside);
        }
        let wanted = role.workers as usize;
        let rooms = self.rooms(rule, true);
        let most_free = rooms.first().map_or(0, Vec::len);
        let chosen = if most_free >= wanted {
            rooms.into_iter().next()
        } else if self.oversubscribe {
            self.rooms(rule, false).into_iter().next().filter(|room| room.len() >= 2)
        } else {
            None
        };
        let Some(room) = chosen else {
            return Err(Refusal::machine(format!(
                "role `{}` asks for `{}`, which needs {wanted} {}; the machine has {most_free} free at most",
                role.name, rule.choice, rule.offers,
            )));
        };
        room.into_iter().cycle().take(wanted).for_each(|cpu| self.take(cpu));
        Ok(())
    }

    /// What each group offers, the roomiest first, then by lowest CPU: one CPU a core where the rule wants that.
    fn rooms(&self, rule: &Together, free_only: bool) -> Vec<Vec<Cpu>> {
        let mut groups: BTreeMap<u32, Vec<Cpu>> = BTreeMap::new();
        for cpu in self.usable.iter().filter(|cpu| !free_only || self.load.is_free(cpu)) {
            groups.entry((rule.group)(cpu)).or_default().push(*cpu);
        }
        let mut rooms: Vec<Vec<Cpu>> = groups.into_values().collect();
        for room in &mut rooms {
            room.sort_by_key(|cpu| self.load.nearness(cpu));
            let mut cores = BTreeSet::new();
            room.retain(|cpu| !rule.own_core || cores.insert(cpu.core));
        }
        rooms.sort_by_key(|room| (Reverse(room.len()), room.iter().map(|cpu| cpu.id).min()));
        rooms
    }

    fn seat_across(&mut self, role: &Role) -> Result<(), Refusal> {
        let sockets: BTreeSet<u32> = self.usable.iter().map(|cpu| cpu.socket).collect();
        let mut before = self.taken.last().map(|cpu| cpu.socket).filter(|_| role.workers == 1);
        if sockets.len() < 2 && (role.workers > 1 || before.is_some()) {
            return Err(Refusal::machine(format!(
                "role `{}` asks for `cross-socket`, which needs usable CPUs on 2 sockets; the machine has them on {}",
                role.name,
                sockets.len()
            )));
        }
        if before.is_none() {
            let start = self.roomiest_socket();
            self.take_farthest(role, "cross-socket", |cpu| Some(cpu.socket) == start)?;
            before = start;
        } else {
            self.take_farthest(role, "cross-socket", |cpu| Some(cpu.socket) != before)?;
        }
        for _ in 1..role.workers {
            self.take_farthest(role, "cross-socket", |cpu| Some(cpu.socket) != before)?;
            before = self.taken.last().map(|cpu| cpu.socket);
        }
        Ok(())
    }

    /// The socket with most free CPUs, the first of several.
    fn roomiest_socket(&self) -> Option<u32> {
        let free = |socket: u32| self.usable.iter().filter(|c| c.socket == socket && self.load.is_free(c)).count();
        self.usable.iter().map(|cpu| cpu.socket).min_by_key(|socket| Reverse(free(*socket)))
    }
}

fn cpus(count: usize) -> String {
    if count == 1 { "1 CPU".to_owned() } else { format!("{count} CPUs") }
}

#[cfg(test)]
mod tests;

//! What is to happen, in order of time: each core's own few events, and a tournament of the cores for whose comes
//! first. It grows with what cores have outstanding, never with time.

use crate::time::{NEVER, Ps};

/// Something that happens to a core.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A worker goes on.
    Resume { worker: u32 },
    /// A worker's store buffer can go on.
    Drain { worker: u32 },
    /// The core asks for a line: the request of that number.
    Request { number: u32 },
    /// A line is there.
    Arrive { line: u32 },
}

/// An event in one word: what is written as a whole can be read again as a whole at once, and parts cannot.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Code(u64);

impl Code {
    #[inline(always)]
    fn of(event: Event) -> Code {
        let (kind, number) = match event {
            Event::Resume { worker } => (0, worker),
            Event::Drain { worker } => (1, worker),
            Event::Request { number } => (2, number),
            Event::Arrive { line } => (3, line),
        };
        Code(kind << 32 | u64::from(number))
    }

    #[inline(always)]
    fn event(self) -> Event {
        let number = self.0 as u32;
        match self.0 >> 32 {
            0 => Event::Resume { worker: number },
            1 => Event::Drain { worker: number },
            2 => Event::Request { number },
            _ => Event::Arrive { line: number },
        }
    }
}

#[derive(Copy, Clone, Debug)]
struct Entry {
    at: Ps,
    code: Code,
}

/// The events to come. Of those of one time a lower core's come first, and of one core's the earlier entered.
#[derive(Debug)]
pub(super) struct Calendar {
    /// By core, latest first.
    agendas: Vec<Vec<Entry>>,
    /// A tree of times: node 1 is the root, `n` has children `2 n` and `2 n + 1`, and the cores are the leaves. Each
    /// node is the earlier of its children.
    earliest: Vec<Ps>,
    leaves: usize,
}

impl Calendar {
    pub(super) fn new(cores: usize) -> Calendar {
        let leaves = cores.next_power_of_two();
        Calendar { agendas: vec![Vec::new(); cores], earliest: vec![NEVER; 2 * leaves], leaves }
    }

    /// When the next event is; [`NEVER`] where none is to come.
    #[inline(always)]
    pub(super) fn earliest(&self) -> Ps {
        self.earliest[1]
    }

    /// When the next one of a core is.
    #[inline(always)]
    pub(super) fn earliest_of(&self, core: usize) -> Ps {
        self.earliest[self.leaves + core]
    }

    fn note(&mut self, core: usize) {
        let mut node = self.leaves + core;
        self.earliest[node] = self.agendas[core].last().map_or(NEVER, |entry| entry.at);
        while node > 1 {
            node /= 2;
            let earlier = self.earliest[2 * node].min(self.earliest[2 * node + 1]);
            if self.earliest[node] == earlier {
                return;
            }
            self.earliest[node] = earlier;
        }
    }

    /// Enters an event.
    #[inline(always)]
    pub(super) fn add(&mut self, core: usize, at: Ps, event: Event) {
        self.enter(core, at, Code::of(event));
    }

    fn enter(&mut self, core: usize, at: Ps, code: Code) {
        let agenda = &mut self.agendas[core];
        // From the end: what comes next is mostly what was just entered.
        let place = agenda.iter().rposition(|entry| entry.at > at).map_or(0, |later| later + 1);
        if place == agenda.len() {
            agenda.push(Entry { at, code });
            self.note(core);
        } else {
            agenda.insert(place, Entry { at, code });
        }
    }

    /// Strikes an event out, where it stands in.
    pub(super) fn strike(&mut self, core: usize, event: Event) {
        let (agenda, code) = (&mut self.agendas[core], Code::of(event));
        let Some(place) = agenda.iter().rposition(|entry| entry.code == code) else { return };
        agenda.remove(place);
        if place == agenda.len() {
            self.note(core);
        }
    }

    /// The next event, taken out: its time, its core and itself.
    pub(super) fn next(&mut self) -> Option<(Ps, usize, Event)> {
        if self.earliest() == NEVER {
            return None;
        }
        let mut node = 1;
        while node < self.leaves {
            node *= 2;
            if self.earliest[node] > self.earliest[node + 1] {
                node += 1;
            }
        }
        let core = node - self.leaves;
        let entry = self.agendas[core].pop()?;
        self.note(core);
        Some((entry.at, core, entry.code.event()))
    }

    /// What it has reserved.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.agendas.iter().map(Vec::capacity).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn resume(worker: u32) -> Event {
        Event::Resume { worker }
    }

    #[test]
    fn of_one_time_the_lower_core_comes_first_and_of_one_core_the_earlier_entered() {
        let mut calendar = Calendar::new(3);
        calendar.add(2, 5, resume(0));
        calendar.add(1, 5, resume(1));
        calendar.add(1, 5, resume(2));
        calendar.add(1, 4, resume(3));
        assert_eq!((calendar.earliest(), calendar.earliest_of(1), calendar.earliest_of(0)), (4, 4, NEVER));
        let order: Vec<_> = std::iter::from_fn(|| calendar.next()).map(|(at, core, _)| (at, core)).collect();
        assert_eq!(order, [(4, 1), (5, 1), (5, 1), (5, 2)]);
    }

    proptest! {
        #[test]
        fn events_come_in_order_of_time_and_none_is_lost(
            cores in 1_usize..9,
            entered in prop::collection::vec((0_usize..8, 0_u64..50, any::<bool>()), 0..60),
        ) {
            let mut calendar = Calendar::new(cores);
            let mut expected = Vec::new();
            for (nth, &(core, at, stays)) in entered.iter().enumerate() {
                let core = core % cores;
                calendar.add(core, at, resume(nth as u32));
                if stays {
                    expected.push((at, core, nth as u32));
                } else {
                    calendar.strike(core, resume(nth as u32));
                }
                prop_assert_eq!(calendar.earliest(), expected.iter().map(|e| e.0).min().unwrap_or(NEVER));
            }
            expected.sort();
            let came: Vec<_> = std::iter::from_fn(|| calendar.next())
                .map(|(at, core, event)| match event {
                    Event::Resume { worker } => (at, core, worker),
                    _ => unreachable!(),
                })
                .collect();
            prop_assert_eq!(came, expected);
            prop_assert_eq!(calendar.earliest(), NEVER);
        }
    }
}

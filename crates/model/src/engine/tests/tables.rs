//! The protocols' transitions, written down from their sources and then looked for in what the engine does.
//!
//! MESI: M. S. Papamarcos and J. H. Patel, "A low-overhead coherence solution for multiprocessors with private cache
//! memories", ISCA 1984 (exclusive-modified, exclusive-unmodified, shared-unmodified, invalid), and its summary in J.
//! Archibald and J.-L. Baer, "Cache coherence protocols: evaluation using a multiprocessor simulation model", ACM TOCS
//! 4 (4), 1986. MOESI: AMD64 Architecture Programmer's Manual, volume 2, 7.3, figure of the transitions. MESIF: J. R.
//! Goodman and H. H. J. Hum, "MESIF: a two-hop cache coherency protocol for point-to-point interconnects", 2009: the
//! last reader forwards, and hands that on with the line.
//!
//! Where the sources leave a choice, this model's is: clean shared copies that nobody forwards are served by the last
//! level or memory, where the Illinois protocol lets one of the sharers answer.

use super::kit::{FOUR_CORES, NEAR, TINY, access, machine, program, worker};
use crate::engine::requests::Source::{self, Afar, Here, LastLevel, Memory};
use crate::engine::witness::Witness;
use crate::engine::{Engine, Event};
use crate::line::Asked;
use crate::machine::{Caches, Machine, Shape};
use crate::protocol::Protocol::{self, Mesi, Mesif, Moesi};
use crate::protocol::State::{self, Exclusive, Forward, Invalid, Modified, Owned, Shared};
use crate::script::{Place, Scripts};
use plan::AccessKind;

/// The line that the tables are about, and two more that fall into its sets where caches are tiny.
const LINES: [u64; 3] = [0, 64 * 8, 64 * 16];

/// One core after the other touches a line, with all the time it needs.
struct Bench<'a>(Engine<'a>);

impl Bench<'_> {
    /// Lets `act` work with cores of a machine that nobody uses yet.
    fn with<T>(machine: &Machine, act: impl FnOnce(&mut Bench<'_>) -> T) -> T {
        let cores = machine.shape.sockets * machine.shape.clusters * machine.shape.cores;
        let loads = || LINES.map(|offset| access(AccessKind::Load, offset)).to_vec();
        let program = program((0..cores).map(|core| worker(core, loads())).collect());
        let (topology, scripts) = (machine.shape.topology(), Scripts::of(&program));
        let mut engine = Engine::new(&scripts, &program, machine, &topology, 1);
        engine.witness = Some(Box::new(Witness::of(&engine)));
        (engine.end, engine.budget) = (u64::MAX, u64::MAX);
        act(&mut Bench(engine))
    }

    fn place(line: usize) -> Place {
        Place { line: line as u32, word: line as u32 }
    }

    /// Asks where that is needed, waits a microsecond, and touches. From where the line came, if it had to.
    fn touch(&mut self, core: usize, line: usize, want: Asked) -> Option<Source> {
        let (engine, place) = (&mut self.0, Bench::place(line));
        let now = engine.time + 1_000_000;
        engine.workers[core].now = now;
        engine.witness.as_mut().expect("there from the start").source = None;
        let has_it = match want {
            Asked::Ownership => engine.is_writable(core, place, now),
            _ => engine.is_readable(core, place, now),
        };
        if !has_it {
            assert!(engine.ask(core, place, want, now));
            while let Some((at, core, Event::Arrive { line })) = engine.calendar.next() {
                engine.time = at;
                engine.arrive(core, line);
                engine.look(Some(line));
            }
        }
        let now = engine.time.max(now);
        match want {
            Asked::Ownership => engine.commit(core, place, now, now),
            _ => {
                engine.witness_read(core, place, now);
                engine.hit(core, place, false, now);
            }
        }
        engine.time = now;
        engine.look(Some(place.line));
        engine.witness.as_ref().expect("there from the start").source
    }

    fn read(&mut self, core: usize) -> Option<Source> {
        self.touch(core, 0, Asked::Copy)
    }

    fn write(&mut self, core: usize) -> Option<Source> {
        self.touch(core, 0, Asked::Ownership)
    }

    /// Fills the sets of the tiny levels beside the line.
    fn crowd_out(&mut self, core: usize) {
        for line in [1, 2] {
            self.touch(core, line, Asked::Copy);
        }
    }

    fn state(&self, core: usize) -> State {
        self.0.lines[0].held.get(core).map_or(Invalid, |held| held.state)
    }

    fn write_backs(&self) -> u64 {
        self.0.workers.iter().map(|worker| worker.tally.write_backs).sum()
    }

    /// Brings core 0's copy into a state, with core 1 where it takes two.
    fn bring(&mut self, state: State) {
        match state {
            Modified => drop(self.write(0)),
            Exclusive => drop(self.read(0)),
            Shared => drop((self.read(0), self.read(1))),
            Owned => drop((self.write(0), self.read(1))),
            Forward => drop((self.read(1), self.read(0))),
            Invalid => {}
        }
        assert_eq!(self.state(0), state);
    }
}

#[derive(Copy, Clone, Debug)]
enum Does {
    OwnRead,
    OwnWrite,
    /// By a core that has no copy.
    OthersRead,
    OthersWrite,
}

use Does::{OthersRead, OthersWrite, OwnRead, OwnWrite};

/// What becomes of a copy: its next state, that of the other core, from where that or this one's content comes (`None`:
/// no request), and whether it is written back.
type Row = (State, Does, State, State, Option<Source>, bool);

/// A core of the same cluster.
const CORE: Option<Source> = Some(Afar(0));

const MESI: [Row; 16] = [
    (Invalid, OwnRead, Exclusive, Invalid, Some(Memory), false),
    (Invalid, OwnWrite, Modified, Invalid, Some(Memory), false),
    (Invalid, OthersRead, Invalid, Exclusive, Some(Memory), false),
    (Invalid, OthersWrite, Invalid, Modified, Some(Memory), false),
    (Exclusive, OwnRead, Exclusive, Invalid, None, false),
    (Exclusive, OwnWrite, Modified, Invalid, None, false),
    (Exclusive, OthersRead, Shared, Shared, CORE, false),
    (Exclusive, OthersWrite, Invalid, Modified, CORE, false),
    (Shared, OwnRead, Shared, Invalid, None, false),
    (Shared, OwnWrite, Modified, Invalid, Some(Here), false),
    (Shared, OthersRead, Shared, Shared, Some(LastLevel), false),
    (Shared, OthersWrite, Invalid, Modified, Some(LastLevel), false),
    (Modified, OwnRead, Modified, Invalid, None, false),
    (Modified, OwnWrite, Modified, Invalid, None, false),
    (Modified, OthersRead, Shared, Shared, CORE, true),
    (Modified, OthersWrite, Invalid, Modified, CORE, false),
];

const MESIF: [Row; 20] = [
    (Invalid, OwnRead, Exclusive, Invalid, Some(Memory), false),
    (Invalid, OwnWrite, Modified, Invalid, Some(Memory), false),
    (Invalid, OthersRead, Invalid, Exclusive, Some(Memory), false),
    (Invalid, OthersWrite, Invalid, Modified, Some(Memory), false),
    (Exclusive, OwnRead, Exclusive, Invalid, None, false),
    (Exclusive, OwnWrite, Modified, Invalid, None, false),
    (Exclusive, OthersRead, Shared, Forward, CORE, false),
    (Exclusive, OthersWrite, Invalid, Modified, CORE, false),
    // Core 1 forwards.
    (Shared, OwnRead, Shared, Invalid, None, false),
    (Shared, OwnWrite, Modified, Invalid, Some(Here), false),
    (Shared, OthersRead, Shared, Forward, CORE, false),
    (Shared, OthersWrite, Invalid, Modified, CORE, false),
    (Forward, OwnRead, Forward, Invalid, None, false),
    (Forward, OwnWrite, Modified, Invalid, Some(Here), false),
    (Forward, OthersRead, Shared, Forward, CORE, false),
    (Forward, OthersWrite, Invalid, Modified, CORE, false),
    (Modified, OwnRead, Modified, Invalid, None, false),
    (Modified, OwnWrite, Modified, Invalid, None, false),
    (Modified, OthersRead, Shared, Forward, CORE, true),
    (Modified, OthersWrite, Invalid, Modified, CORE, false),
];

const MOESI: [Row; 20] = [
    (Invalid, OwnRead, Exclusive, Invalid, Some(Memory), false),
    (Invalid, OwnWrite, Modified, Invalid, Some(Memory), false),
    (Invalid, OthersRead, Invalid, Exclusive, Some(Memory), false),
    (Invalid, OthersWrite, Invalid, Modified, Some(Memory), false),
    (Exclusive, OwnRead, Exclusive, Invalid, None, false),
    (Exclusive, OwnWrite, Modified, Invalid, None, false),
    (Exclusive, OthersRead, Shared, Shared, CORE, false),
    (Exclusive, OthersWrite, Invalid, Modified, CORE, false),
    (Shared, OwnRead, Shared, Invalid, None, false),
    (Shared, OwnWrite, Modified, Invalid, Some(Here), false),
    (Shared, OthersRead, Shared, Shared, Some(LastLevel), false),
    (Shared, OthersWrite, Invalid, Modified, Some(LastLevel), false),
    (Owned, OwnRead, Owned, Invalid, None, false),
    (Owned, OwnWrite, Modified, Invalid, Some(Here), false),
    (Owned, OthersRead, Owned, Shared, CORE, false),
    (Owned, OthersWrite, Invalid, Modified, CORE, false),
    (Modified, OwnRead, Modified, Invalid, None, false),
    (Modified, OwnWrite, Modified, Invalid, None, false),
    (Modified, OthersRead, Owned, Shared, CORE, false),
    (Modified, OthersWrite, Invalid, Modified, CORE, false),
];

fn holds(protocol: Protocol, rows: &[Row]) {
    let machine = machine(protocol, FOUR_CORES, NEAR);
    for &(state, does, next, others, source, is_written_back) in rows {
        Bench::with(&machine, |bench| {
            bench.bring(state);
            let before = bench.write_backs();
            let came_from = match does {
                OwnRead => bench.read(0),
                OwnWrite => bench.write(0),
                OthersRead => bench.read(2),
                OthersWrite => bench.write(2),
            };
            let came_to = (bench.state(0), bench.state(2), came_from, bench.write_backs() > before);
            assert_eq!(came_to, (next, others, source, is_written_back), "{protocol:?}: {state:?}, {does:?}");
            if matches!(does, OwnWrite | OthersWrite) {
                assert_eq!(bench.state(1), Invalid, "{protocol:?}: {state:?}, {does:?}: the sharer");
            }
        });
    }
}

#[test]
fn mesi_goes_by_its_table() {
    holds(Mesi, &MESI);
}

#[test]
fn mesif_goes_by_its_table() {
    holds(Mesif, &MESIF);
}

#[test]
fn moesi_goes_by_its_table() {
    holds(Moesi, &MOESI);
}

#[test]
fn mesif_hands_forwarding_on_to_the_last_reader_and_without_a_forwarder_the_next_reader_becomes_one() {
    let tiny = Machine { caches: TINY, ..machine(Mesif, FOUR_CORES, NEAR) };
    Bench::with(&tiny, |bench| {
        for core in 0..3 {
            bench.read(core);
        }
        assert_eq!([0, 1, 2].map(|core| bench.state(core)), [Shared, Shared, Forward]);
        bench.crowd_out(2);
        assert_eq!([0, 1, 2].map(|core| bench.state(core)), [Shared, Shared, Invalid]);
        assert_eq!(bench.read(3), Some(LastLevel));
        assert_eq!([0, 1, 3].map(|core| bench.state(core)), [Shared, Shared, Forward]);
    });
}

#[test]
fn an_owner_that_needs_the_room_writes_back_and_its_sharers_keep_their_copies() {
    let tiny = Machine { caches: TINY, ..machine(Moesi, FOUR_CORES, NEAR) };
    Bench::with(&tiny, |bench| {
        bench.bring(Owned);
        bench.crowd_out(0);
        assert_eq!((bench.state(0), bench.state(1), bench.write_backs()), (Invalid, Shared, 1));
        assert_eq!(bench.read(2), Some(LastLevel));
    });
}

/// Two clusters of two cores with tiny levels.
fn clusters(llc_is_inclusive: bool) -> Machine {
    let shape = Shape { sockets: 1, clusters: 2, cores: 2, threads: 1 };
    let caches = Caches { llc_is_inclusive, ..TINY };
    Machine { caches, ..machine(Moesi, shape, NEAR) }
}

#[test]
fn a_victim_level_gets_what_its_cores_lose_and_an_inclusive_one_has_it_all_along() {
    for (inclusive, after_load) in [(false, false), (true, true)] {
        Bench::with(&clusters(inclusive), |bench| {
            bench.read(0);
            assert_eq!(bench.0.lines[0].in_last.has(0), after_load);
            bench.crowd_out(0);
            let back = bench.read(0);
            // The inclusive one has two ways for the three lines, so it has lost the line first.
            assert_eq!(back, Some(if inclusive { Memory } else { LastLevel }));
        });
    }
}

#[test]
fn an_inclusive_level_takes_what_it_loses_from_its_own_cores_alone() {
    Bench::with(&clusters(true), |bench| {
        bench.write(0);
        bench.crowd_out(1);
        assert_eq!(
            (bench.state(0), bench.write_backs()),
            (Invalid, 1),
            "core 1's lines need the room in the last level"
        );
    });
    Bench::with(&clusters(true), |bench| {
        bench.write(0);
        bench.crowd_out(2);
        assert_eq!((bench.state(0), bench.write_backs()), (Modified, 0), "another cluster's level is another one");
    });
}

#[test]
fn a_last_level_serves_nothing_that_another_cluster_has_written_since() {
    Bench::with(&clusters(false), |bench| {
        bench.read(0);
        bench.crowd_out(0);
        assert!(bench.0.lines[0].in_last.has(0));
        bench.write(2);
        assert!(!bench.0.lines[0].in_last.has(0), "out of date");
        bench.crowd_out(2);
        assert!(bench.0.lines[0].in_last.has(1), "written back there");
        assert_eq!(bench.read(0), Some(Afar(1)));
    });
}

#[test]
fn a_clean_line_written_after_its_loss_was_decided_counts_as_modified() {
    for (protocol, keeps, is_written_back) in [(Moesi, Owned, false), (Mesi, Shared, true), (Mesif, Shared, true)] {
        Bench::with(&machine(protocol, FOUR_CORES, NEAR), |bench| {
            bench.read(0);
            let (engine, place) = (&mut bench.0, Bench::place(0));
            let asks_at = engine.time + 1_000_000;
            assert!(engine.ask(1, place, Asked::Copy, asks_at));
            assert_eq!(engine.lines[0].held[0].state, Shared);
            engine.commit(0, place, 7, asks_at + 1);
            engine.look(Some(place.line));
            assert_eq!(engine.lines[0].held[0].state, keeps);
            assert_eq!(engine.workers[1].tally.modified_line_hits, 1);
            assert_eq!(engine.workers[0].tally.write_backs > 0, is_written_back);
        });
    }
}

//! The doors by which a stranger's bytes come in, an entry each: what the lab does with such a file, as far as it can be
//! done without running anything, and what must hold of what comes out. Property tests and fuzz targets call these.

use crate::sound::{RUN, SCENARIOS, STARTERS, TYPE};
use crate::{Reached, hold};
use analysis::compare::NamedRun;
use model::{Limits, Machine};
use plan::{Bound, Cpu, CpuId, Plan, TickRate, Topology};
use record::{Run, SCHEMA_VERSION};
use scenario::Loaded;
use shm_layout::{Segment, SegmentMap, SegmentSpec};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::LazyLock;
use structs::{Struct, Wanted};

/// How much of a stranger's scenario is simulated.
const LIMITS: Limits = Limits { accesses: 2_000, window_ns: 1e6 };

/// Two CPUs, and two sockets of four cores with two threads each.
static TOPOLOGIES: LazyLock<[Topology; 2]> = LazyLock::new(|| {
    let cpu = |id: u32, core, llc| Cpu { id: CpuId(id), core, llc, node: llc, socket: llc, usable: true };
    let small = Topology { cpus: (0..2).map(|id| cpu(id, id, 0)).collect() };
    [small, Topology { cpus: (0..16).map(|id| cpu(id, id % 8, id % 8 / 4)).collect() }]
});

/// The text of a scenario: read, bound to two machines, checked against a segment's map, modelled on a third.
pub fn scenario(bytes: &[u8]) -> Reached {
    let Ok(text) = std::str::from_utf8(bytes) else { return Reached::Refused };
    match scenario::parse("any.toml", text) {
        Ok(loaded) => accepted(&loaded),
        Err(refusal) => refused(&refusal),
    }
}

/// Whatever is refused is so with a message that a terminal can be shown.
fn refused(refusal: &scenario::Refusal) -> Reached {
    assert!(refusal.count() > 0, "refused without a problem");
    let plain = refusal.render(false);
    assert!(!plain.is_empty());
    hold::terminal(&plain);
    refusal.render(true);
    Reached::Refused
}

fn accepted(loaded: &Loaded) -> Reached {
    [&loaded.plan.title, &loaded.plan.question, &loaded.plan.name].into_iter().for_each(|text| hold::terminal(text));
    for topology in &*TOPOLOGIES {
        match plan::bind(&loaded.plan, topology, 7) {
            Ok(bound) => programs(&bound, topology),
            Err(error) => _ = refused(&loaded.source.refuse(&error)),
        }
    }
    Reached::Inside
}

fn programs(bound: &Bound, topology: &Topology) {
    let machine = &*MACHINE;
    for arm in &bound.arms {
        hold::terminal(&arm.arm.name);
        match &arm.program {
            Err(not) => hold::terminal(&not.why),
            Ok(program) => {
                // A baseline's lone worker keeps its number.
                let slots = program.workers.iter().map(|worker| worker.index.0 + 1).max().unwrap_or(0);
                SegmentMap::of(program, slots).expect("what was bound fits a segment");
                if let Err(refusal) = model::simulate(program, machine, topology, LIMITS, 7) {
                    hold::terminal(&refusal.to_string());
                }
            }
        }
    }
}

/// A machine on paper that stranger's scenarios are modelled on.
static MACHINE: LazyLock<Machine> =
    LazyLock::new(|| Machine::find("ryzen-5950x").unwrap_or_else(|refusal| panic!("{refusal}")));

/// Scenarios that a stranger's machine has to model.
static MODELLED: LazyLock<Vec<Plan>> = LazyLock::new(|| {
    let of = |name: &str| SCENARIOS.iter().find(|one| one.name == name).expect("a scenario of the repository");
    let text = |name| String::from_utf8_lossy(&of(name).bytes).into_owned();
    let plan = |name| scenario::parse(name, &text(name)).unwrap_or_else(|refusal| panic!("{refusal}")).plan;
    ["false_sharing.toml", "mutex.toml"].map(plan).into()
});

/// The text of a machine file: read, written and read again, and asked to model two scenarios.
pub fn machine(bytes: &[u8]) -> Reached {
    let Ok(text) = std::str::from_utf8(bytes) else { return Reached::Refused };
    let machine = match Machine::parse("any.toml", text) {
        Ok(machine) => machine,
        Err(refusal) => return refused(&refusal),
    };
    [&machine.name, &machine.title].into_iter().for_each(|text| hold::terminal(text));
    let again = Machine::parse("again.toml", &machine.to_toml());
    assert_eq!(again.unwrap_or_else(|refusal| panic!("{refusal}")), machine, "written and read again");
    let topology = machine.shape.topology();
    for plan in &*MODELLED {
        let bound = plan::bind(plan, &topology, 7).expect("any machine has two CPUs");
        for program in bound.arms.iter().filter_map(|arm| arm.program.as_ref().ok()) {
            match model::simulate(program, &machine, &topology, LIMITS, 7) {
                Ok(modelled) => assert!(modelled.workers.iter().all(|one| one.ns_per_op.is_none_or(|ns| ns >= 0.0))),
                Err(refusal) => hold::terminal(&refusal.to_string()),
            }
        }
    }
    Reached::Inside
}

/// The text of an `exercise.toml`: read, and the starters of the repository judged by it, fitting or not.
pub fn exercise(bytes: &[u8]) -> Reached {
    let Ok(text) = std::str::from_utf8(bytes) else { return Reached::Refused };
    let exercise = match exercise::parse("any.toml", text) {
        Ok(exercise) => exercise,
        Err(refusal) => return refused(&refusal),
    };
    for (plan, bound) in &*JUDGED {
        let arm = &plan.arms[0];
        if let Err(why) = exercise::fits(&exercise, arm) {
            hold::terminal(&why);
            continue;
        }
        let Ok(program) = &bound.arms[0].program else { continue };
        let mut checks = exercise::conservation(&exercise, (arm, program), (arm, program));
        checks.extend(exercise::mechanism(&exercise, arm, program));
        checks.extend(exercise::exact(&exercise, program, &[], |_| Some(u64::MAX)));
        checks.iter().for_each(|check| [&check.what, &check.why].into_iter().for_each(|text| hold::terminal(text)));
    }
    Reached::Inside
}

static JUDGED: LazyLock<Vec<(Plan, Bound)>> = LazyLock::new(|| {
    let bound = |text: &[u8]| {
        let text = String::from_utf8_lossy(text);
        let plan = scenario::parse("starter.toml", &text).unwrap_or_else(|refusal| panic!("{refusal}")).plan;
        let bound = plan::bind(&plan, &TOPOLOGIES[0], 7).expect("a starter binds to two CPUs");
        (plan, bound)
    };
    STARTERS.iter().map(|starter| bound(&starter.bytes)).collect()
});

/// A run as the repository has one.
static SOUND_RUN: LazyLock<Run> = LazyLock::new(|| serde_json::from_slice(&RUN[0].bytes).expect("a sound run"));

/// A `run.json`: read, made a page, compared with a sound one both ways, and written again.
pub fn run(bytes: &[u8]) -> Reached {
    let run: Run = match serde_json::from_slice(bytes) {
        Ok(run) => run,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return Reached::Refused;
        }
    };
    if run.schema_version != SCHEMA_VERSION {
        return Reached::Refused;
    }
    hold::page(&page::page(&run, None));
    let named = |path, run| NamedRun { path, run };
    for runs in [[&run, &*SOUND_RUN], [&*SOUND_RUN, &run]] {
        let compared = analysis::compare::compare(&[named("a/run.json", runs[0]), named("b/run.json", runs[1])], None);
        if let Ok(compared) = compared {
            serde_json::to_vec(&compared).expect("a comparison that can be written");
        }
    }
    let _ = analysis::compare::compare(&[named("a/run.json", &run)], None);
    analysis::distributions(&run.arms, &run.observations);
    serde_json::to_vec(&run).expect("a run that can be written");
    Reached::Inside
}

/// What `report --topology` is given: read, and drawn.
pub fn topology(bytes: &[u8]) -> Reached {
    let Ok(topology) = serde_json::from_slice::<record::Topology>(bytes) else { return Reached::Refused };
    hold::page(&page::page(&SOUND_RUN, Some(&topology)));
    Reached::Inside
}

/// A program or a file of BTF given to `import`: read both ways, and a scenario made of what is found.
pub fn structs(bytes: &[u8]) -> Reached {
    with_file(bytes, |path| {
        let mut reached = Reached::Refused;
        for name in [TYPE, "word", "nothing"] {
            for found in [structs::in_binary(path, &Wanted::new(name)), structs::in_btf(path, &Wanted::new(name))] {
                match found {
                    Ok(found) => {
                        reached = Reached::Inside;
                        found.iter().for_each(look);
                    }
                    Err(error) => assert!(!error.to_string().is_empty()),
                }
            }
        }
        reached
    })
}

/// Looks at all of a struct. The scenario that it is made has a sound text, whatever its names are.
fn look(found: &Struct) {
    let _ = (found.lines(), found.holes(), found.tail_padding());
    for (_, member) in found.every_member() {
        let _ = (member.first_line(), member.last_line(), member.straddles());
    }
    match structs::skeleton::scenario(found, "file") {
        Ok(text) => {
            hold::terminal(&text);
            scenario::parse("skeleton.toml", &text).unwrap_or_else(|refusal| panic!("{refusal}\n{text}"));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A program that a watched process executes: names and lines as `attach` shows them.
pub fn symbols(bytes: &[u8]) -> Reached {
    let step = (bytes.len() / 256).max(1);
    let offsets: Vec<u64> = (0..bytes.len() as u64).step_by(step).collect();
    let mut program = tempfile::tempfile_in("/dev/shm").expect("a file in memory");
    program.write_all(bytes).expect("memory for a program");
    match attach::symbols::unguarded(program, &offsets) {
        Some(names) => {
            names.iter().for_each(|name| hold::terminal(name));
            Reached::Inside
        }
        None => Reached::Refused,
    }
}

/// The first bytes of a segment as another process of the same user may have left them: written over a sound segment's,
/// to which a worker then attaches.
pub fn segment(bytes: &[u8]) -> Reached {
    let sound = SegmentSpec { slots: 2, ..spec() };
    let segment = Segment::create(&sound).expect("a segment");
    let file = Path::new("/dev/shm").join(segment.name());
    let file = std::fs::OpenOptions::new().write(true).open(file).expect("the segment's file");
    file.write_all_at(&bytes[..bytes.len().min(SEGMENT_BYTES)], 0).expect("a segment is written");
    match Segment::attach(segment.name(), sound.program, sound.encoded_program, sound.slots) {
        Err(error) => {
            hold::terminal(&error.to_string());
            Reached::Refused
        }
        Ok(attached) => {
            // What was checked is what this process computed, so all of it lies inside.
            assert_eq!(attached.map(), segment.map());
            let rate = attached.tick_rate().ticks_per_ns;
            assert!(rate.is_finite() && rate > 0.0, "{rate} ticks a nanosecond");
            let (control, slot) = (attached.control(), attached.slot(1));
            let _ = (control.phase(), control.window(), control.must_stop());
            let _ = (slot.state().words(), slot.thread(), slot.waits_for(), slot.took_over(), slot.reads(63));
            assert_eq!(attached.integer(attached.map().area_bytes, 1), None);
            Reached::Inside
        }
    }
}

/// How much of a segment [`segment`] writes: header, control block and two slots.
const SEGMENT_BYTES: usize = 1024;

fn spec() -> SegmentSpec<'static> {
    static BOUND: LazyLock<Bound> =
        LazyLock::new(|| plan::bind(&MODELLED[1], &TOPOLOGIES[0], 7).expect("it binds to two CPUs"));
    let program = BOUND.arms[0].program.as_ref().expect("it has a place on two CPUs");
    SegmentSpec { program, encoded_program: b"program", slots: 2, rate: TickRate { ticks_per_ns: 2.5 }, node: None }
}

/// The first bytes of a sound segment, for [`segment`].
pub fn sound_segment() -> Vec<u8> {
    let segment = Segment::create(&spec()).expect("a segment");
    let file = std::fs::File::open(Path::new("/dev/shm").join(segment.name())).expect("the segment's file");
    let mut bytes = vec![0; SEGMENT_BYTES];
    file.read_exact_at(&mut bytes, 0).expect("a segment is larger");
    bytes
}

/// The same bytes in a file of their own.
fn with_file<T>(bytes: &[u8], then: impl FnOnce(&Path) -> T) -> T {
    // In memory where there is such a place: a disk is not what is tried.
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.expect("a folder");
    let path = folder.path().join("file");
    std::fs::write(&path, bytes).expect("a file");
    then(&path)
}

/// A file of BTF whose every type follows from numbers, most of which lead to another type: loops come about.
pub fn any_btf(types: &[(u32, u32, u32, [u32; 12])]) -> Vec<u8> {
    let mut table = crate::sound::Btf::default();
    for (kind, to, members, rest) in types {
        let near = |number: &u32| if number.is_multiple_of(3) { *number } else { number % 13 };
        let rest: Vec<u32> = rest.iter().map(near).collect();
        let words = match kind {
            1 | 14 | 17 => 1,
            3 => 3,
            4 | 5 | 15 | 19 => 3 * members,
            6 | 13 => 2 * members,
            _ => 0,
        };
        table.add(1, kind << 24 | members, *to, &rest[..words as usize]);
    }
    table.bytes()
}

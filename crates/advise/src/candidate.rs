//! The layouts that come into question for a scenario's struct.

use crate::arrange::Offsets;
use crate::code;
use crate::cost::{Rates, misses_per_second};
use crate::held::held_in;
use crate::rules::{self, Ground};
use crate::units::{Unit, units};
use plan::{Arm, BindError, Case, Layout, Placement, Strategy, Usage};
use std::collections::{BTreeMap, BTreeSet};

/// What a candidate asks of whoever adopts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing: it is the layout as it stands.
    Nothing,
    /// Another layout of the same fields.
    Layout,
    /// Another program as well. The text says which, and when it is the same to those who use the fields; no measurement
    /// can tell that.
    Code(String),
}

/// One layout, and the loops that go with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// `present`, the rule's name, or that of the scenario's own variant.
    pub name: String,
    /// Other rules that come to the same.
    pub same_as: Vec<String>,
    /// What it is, in a phrase.
    pub what: String,
    /// What it asks for.
    pub change: Change,
    /// Bytes of the struct: a multiple of `align`.
    pub bytes: u64,
    /// Alignment that the struct must have for its lines to be these.
    pub align: u64,
    /// Offset of each element, by field or lock.
    pub offsets: BTreeMap<String, Vec<u64>>,
    /// Paths and TOML values in which its loops and fields differ from the scenario's.
    pub set: Vec<(String, String)>,
    /// As it is run: a variant with these offsets.
    pub arm: Arm,
    /// Who touches what in it.
    pub usage: Usage,
}

impl Candidate {
    /// Offset and size of each item of [`Candidate::usage`], `None` for one that is not placed.
    pub fn places(&self) -> Vec<Option<(u64, u64)>> {
        let place = |item: &plan::Item| {
            let offset = self.offsets.get(&item.name)?.get(item.element as usize)?;
            Some((*offset, item.bytes))
        };
        self.usage.items.iter().map(place).collect()
    }

    /// The same under another name.
    fn named(self, name: &str) -> Candidate {
        let arm = Arm { name: name.to_owned(), variant: name.to_owned(), ..self.arm };
        Candidate { name: name.to_owned(), arm, ..self }
    }

    /// Whether the roles do the same as in the present layout.
    pub fn is_layout_only(&self) -> bool {
        !matches!(self.change, Change::Code(_))
    }
}

/// The present layout, then every other that some rule makes of `present`'s fields, none twice: those that only move fields
/// first, then those that change the program. `layout` is where everything lies at present. Fields that no role touches
/// are placed where the present layout places them.
///
/// # Errors
/// [`BindError`] for a step that names an element which is not there.
pub fn candidates(present: &Arm, layout: &Layout) -> Result<Vec<Candidate>, BindError> {
    let usage = plan::usage(&present.case)?;
    let mut made = vec![as_it_is(present, layout, &usage)];
    let kept: Vec<bool> = usage.items.iter().map(|item| made[0].offsets.contains_key(&item.name)).collect();
    for candidate in of_rules(present, &usage, &kept)? {
        add(&mut made, candidate);
    }
    if let Some(shifted) = shifted(&made[0]) {
        add(&mut made, shifted);
    }
    for variation in code::variations(&present.case, &usage, &Rates::of(&usage)) {
        for candidate in of_variation(present, &variation, &kept)? {
            add(&mut made, candidate);
        }
    }
    Ok(made)
}

/// Another variant of the scenario's as a candidate, under its own name; `None` where it does other work than the present
/// one, so that its times say nothing about a layout.
///
/// # Errors
/// As [`candidates`].
pub fn of_variant(present: &Arm, variant: &Arm, layout: &Layout) -> Result<Option<Candidate>, BindError> {
    let (one, other) = (&present.case, &variant.case);
    let work = |case: &Case| {
        let roles: Vec<_> = case.roles.iter().map(|r| (r.name.clone(), r.workers, r.steps.clone(), r.period)).collect();
        (
            roles,
            case.fields.iter().map(|f| (f.width, f.count)).collect::<Vec<_>>(),
            case.locks.iter().map(|l| l.kind).collect::<Vec<_>>(),
        )
    };
    if work(one) != work(other) {
        return Ok(None);
    }
    let usage = plan::usage(&variant.case)?;
    let candidate = as_it_is(variant, layout, &usage);
    let what = "a variant of the scenario's own".to_owned();
    Ok(Some(Candidate { what, change: Change::Layout, ..candidate.named(&variant.variant) }))
}

/// Adds a candidate, or its name to that of its twin. One whose name another has is numbered.
pub fn add(made: &mut Vec<Candidate>, candidate: Candidate) {
    let twin = |known: &&mut Candidate| known.offsets == candidate.offsets && known.set == candidate.set;
    if let Some(twin) = made.iter_mut().find(twin) {
        return twin.same_as.push(candidate.name);
    }
    let is_taken = |name: &String| made.iter().any(|known| known.name == *name);
    let name = candidate.name.clone();
    let free = std::iter::once(name.clone()).chain((2..).map(|n| format!("{name}-{n}"))).find(|name| !is_taken(name));
    made.push(candidate.named(&free.unwrap_or(name)));
}

/// The name of the layout as it stands.
pub const PRESENT: &str = "present";

fn as_it_is(arm: &Arm, layout: &Layout, usage: &Usage) -> Candidate {
    let mut offsets: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut placed: Vec<_> = layout.placed.iter().collect();
    placed.sort_by_key(|placed| placed.element);
    placed.iter().for_each(|placed| offsets.entry(placed.field.clone()).or_default().push(placed.offset));
    let natural = usage.items.iter().filter(|item| offsets.contains_key(&item.name)).map(|item| item.align).max();
    candidate(
        arm,
        usage,
        Plot {
            name: PRESENT,
            what: "as it stands",
            change: Change::Nothing,
            align: natural.unwrap_or(1),
            offsets,
            set: Vec::new(),
        },
    )
}

/// What a candidate is made of.
struct Plot<'a> {
    name: &'a str,
    what: &'a str,
    change: Change,
    align: u64,
    offsets: BTreeMap<String, Vec<u64>>,
    set: Vec<(String, String)>,
}

fn candidate(arm: &Arm, usage: &Usage, plot: Plot<'_>) -> Candidate {
    let Plot { name, what, change, align, offsets, set } = plot;
    let end = |item: &plan::Item| Some(offsets.get(&item.name)?.get(item.element as usize)? + item.bytes);
    let bytes = usage.items.iter().filter_map(end).max().unwrap_or(0).next_multiple_of(align);
    let case =
        Case { placement: Placement { strategy: Strategy::Explicit(offsets.clone()), shift: 0 }, ..arm.case.clone() };
    Candidate {
        arm: Arm { name: name.to_owned(), variant: name.to_owned(), sweep: Vec::new(), case, ..arm.clone() },
        name: name.to_owned(),
        same_as: Vec::new(),
        what: what.to_owned(),
        change,
        bytes,
        align,
        offsets,
        set,
        usage: usage.clone(),
    }
}

/// The layouts of all rules.
fn of_rules(arm: &Arm, usage: &Usage, kept: &[bool]) -> Result<Vec<Candidate>, BindError> {
    let rates = Rates::of(usage);
    let units = units(usage, &rates, kept);
    let guarded = guarded(&arm.case, usage, &units);
    let ground = Ground { units: &units, rates: &rates, items: usage.items.len(), guarded: &guarded };
    let plot = |ruled: &rules::Ruled| Plot {
        name: ruled.name,
        what: ruled.what,
        change: Change::Layout,
        align: ruled.align,
        offsets: named(usage, &ruled.offsets),
        set: Vec::new(),
    };
    Ok(rules::all(&ground).iter().map(|ruled| candidate(arm, usage, plot(ruled))).collect())
}

/// A changed program on the layout that suits it: fields grouped by what they cost, or by who uses them where there are too
/// many to weigh.
fn of_variation(arm: &Arm, variation: &code::Variation, kept: &[bool]) -> Result<Vec<Candidate>, BindError> {
    let changed = Arm { case: variation.case.clone(), ..arm.clone() };
    let usage = plan::usage(&changed.case)?;
    // Fields are kept by name: an array may have other elements now.
    let names: BTreeSet<&str> = {
        let before = plan::usage(&arm.case)?;
        let kept: BTreeSet<String> =
            before.items.iter().zip(kept).filter(|(_, kept)| **kept).map(|(item, _)| item.name.clone()).collect();
        usage.items.iter().map(|item| item.name.as_str()).filter(|name| kept.contains(*name)).collect()
    };
    let kept: Vec<bool> = usage.items.iter().map(|item| names.contains(item.name.as_str())).collect();
    let best = of_rules(&changed, &usage, &kept)?;
    let suited = ["grouped-64", "by-users"].iter().find_map(|name| best.iter().find(|made| made.name == *name));
    let finish = |made: &Candidate| Candidate {
        name: variation.name.clone(),
        what: variation.what.clone(),
        change: Change::Code(variation.when.clone()),
        set: variation.set.clone(),
        arm: Arm { name: variation.name.clone(), variant: variation.name.clone(), ..made.arm.clone() },
        ..made.clone()
    };
    Ok(suited.map(finish).into_iter().collect())
}

fn named(usage: &Usage, offsets: &Offsets) -> BTreeMap<String, Vec<u64>> {
    let mut named: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (item, offset) in usage.items.iter().zip(offsets) {
        if let Some(offset) = offset {
            named.entry(item.name.clone()).or_default().push(*offset);
        }
    }
    named
}

/// Units that every worker touches only while it holds a certain lock, by that lock's unit.
fn guarded(case: &Case, usage: &Usage, units: &[Unit]) -> BTreeMap<usize, Vec<usize>> {
    let held: Vec<Vec<BTreeSet<usize>>> = case.roles.iter().map(|role| held_in(&role.steps)).collect();
    let locks = units.iter().enumerate().filter(|(_, unit)| unit.lock);
    let mut guarded = BTreeMap::new();
    for (index, lock) in locks {
        let Some(number) = case.locks.iter().position(|known| known.name == usage.items[lock.first].name) else {
            continue;
        };
        let only_under = |unit: &&(usize, &Unit)| {
            let of_unit = |item: usize| (unit.1.first..unit.1.first + unit.1.items).contains(&item);
            let mut touches = usage.touches.iter().filter(|touch| of_unit(touch.item)).peekable();
            touches.peek().is_some() && touches.all(|touch| held[touch.role][touch.step].contains(&number))
        };
        let fields: Vec<(usize, &Unit)> =
            units.iter().enumerate().filter(|(_, unit)| !unit.lock && unit.rows == 1).collect();
        let data: Vec<usize> = fields.iter().filter(only_under).map(|(unit, _)| *unit).collect();
        // Under two locks at once a field stays with the first.
        let taken: BTreeSet<usize> = guarded.values().flatten().copied().collect();
        let data: Vec<usize> = data.into_iter().filter(|unit| !taken.contains(unit)).collect();
        if !data.is_empty() {
            guarded.insert(index, data);
        }
    }
    guarded
}

/// The present layout behind some bytes of room, so that its fields fall on lines otherwise: the least room of those that lose
/// fewest lines. `None` where none loses noticeably fewer.
fn shifted(present: &Candidate) -> Option<Candidate> {
    let rates = Rates::of(&present.usage);
    let loss = |shift: u64| {
        let place = |place: Option<(u64, u64)>| place.map_or((u64::MAX / 2, 1), |(at, bytes)| (at + shift, bytes));
        misses_per_second(&rates, &present.places().into_iter().map(place).collect::<Vec<_>>())
    };
    let step = present.align.max(8);
    let shifts = (1..).map(|n| n * step).take_while(|shift| *shift < plan::CACHE_LINE_BYTES);
    let best = shifts.map(|shift| (loss(shift), shift)).min_by(|a, b| a.0.total_cmp(&b.0))?;
    if loss(0) - best.0 <= crate::cost::NEGLIGIBLE {
        return None;
    }
    let offsets =
        present.offsets.iter().map(|(name, list)| (name.clone(), list.iter().map(|at| at + best.1).collect()));
    Some(candidate(
        &present.arm,
        &present.usage,
        Plot {
            name: &format!("shifted-{}", best.1),
            what: "as it stands, behind room at the front of an aligned struct",
            change: Change::Layout,
            align: plan::CACHE_LINE_BYTES,
            offsets: offsets.collect(),
            set: Vec::new(),
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::tests::arm_of;

    /// The candidates of a scenario's first arm, which is bound to two CPUs.
    pub(crate) fn made(text: &str) -> Vec<Candidate> {
        let arm = arm_of(text);
        let plan = scenario::parse("case.toml", text).unwrap().plan;
        let cpu = |id: u32| plan::Cpu { id: plan::CpuId(id), core: id, llc: 0, node: 0, socket: 0, usable: true };
        let bound = plan::bind(&plan, &plan::Topology { cpus: (0..4).map(cpu).collect() }, 0).unwrap();
        let layout = bound.arms[0].program.as_ref().unwrap().layout.clone();
        candidates(&arm, &layout).unwrap()
    }

    fn named<'a>(made: &'a [Candidate], name: &str) -> &'a Candidate {
        let is = |candidate: &&Candidate| candidate.name == name || candidate.same_as.iter().any(|same| same == name);
        made.iter()
            .find(is)
            .unwrap_or_else(|| panic!("{name} among {:?}", made.iter().map(|m| &m.name).collect::<Vec<_>>()))
    }

    const GUARDED: &str = r#"
placement = "declared"
[field.unused]
type = "u64"
[field.value]
type = "u64"
[field.flag]
type = "u32"
[lock.m]
kind = "tas"
[[role]]
name = "taker"
workers = 2
loop = ["lock m", "bump value", "unlock m"]
[[role]]
name = "watcher"
loop = ["load flag"]
"#;

    #[test]
    fn equal_layouts_are_one_candidate_with_several_names() {
        let made = made(
            "[field.hits]\ntype = \"u64\"\neach = \"worker\"\n[[role]]\nname = \"c\"\nworkers = 2\nloop = [\"bump hits[me]\"]",
        );
        assert_eq!(made[0].name, PRESENT);
        assert!(made[0].same_as.contains(&"packed".to_owned()));
        let padded = named(&made, "padded-64");
        assert_eq!((padded.bytes, padded.align, &padded.offsets["hits"]), (128, 64, &vec![0, 64]));
        assert!(padded.same_as.len() > 2, "{:?}", padded.same_as);
        assert_eq!(named(&made, "padded-128").bytes, 256);
        let distinct: BTreeSet<_> = made.iter().map(|m| (&m.offsets, &m.set)).collect();
        assert_eq!(distinct.len(), made.len());
    }

    #[test]
    fn a_lock_lies_with_what_it_guards_and_apart_from_it() {
        let made = made(GUARDED);
        let with = named(&made, "lock-with-data");
        assert_eq!((with.offsets["value"][0], with.offsets["m"][0]), (0, 8));
        let apart = named(&made, "padded-64");
        assert!(apart.offsets["m"][0] / 64 != apart.offsets["value"][0] / 64);
        assert!(made.iter().all(|candidate| candidate.offsets.len() == 4), "untouched fields keep a place");
    }

    #[test]
    fn each_candidate_binds_to_the_offsets_it_names() {
        let cpu = |id: u32| plan::Cpu { id: plan::CpuId(id), core: id, llc: 0, node: 0, socket: 0, usable: true };
        let topology = plan::Topology { cpus: (0..4).map(cpu).collect() };
        let plan = scenario::parse("case.toml", GUARDED).unwrap().plan;
        let made = made(GUARDED);
        let arms = made.iter().map(|candidate| candidate.arm.clone()).collect();
        let bound = plan::bind(&plan::Plan { arms, ..plan }, &topology, 0).unwrap();
        for (candidate, arm) in made.iter().zip(&bound.arms) {
            for placed in &arm.program.as_ref().unwrap().layout.placed {
                assert_eq!(
                    candidate.offsets[&placed.field][placed.element as usize], placed.offset,
                    "{}",
                    candidate.name
                );
            }
        }
    }

    #[test]
    fn no_two_candidates_have_one_name() {
        let mut made = made(GUARDED);
        let mut other = named(&made, "padded-64").clone();
        other.offsets.insert("value".to_owned(), vec![4096]);
        add(&mut made, other);
        let last = made.last().unwrap();
        assert_eq!((last.name.as_str(), last.arm.name.as_str()), ("padded-64-2", "padded-64-2"));
    }

    #[test]
    fn a_better_base_is_found() {
        let text = r#"
placement = { offsets = { a = 48, b = 56, c = 64 } }
[field.a]
type = "u64"
[field.b]
type = "u64"
[field.c]
type = "u64"
[[role]]
name = "x"
loop = ["bump a"]
[[role]]
name = "y"
loop = ["bump b", "bump c"]
"#;
        let made = made(text);
        assert_eq!(named(&made, "shifted-8").offsets["b"], [64]);
    }

    #[test]
    fn a_variant_that_does_other_work_is_no_layout() {
        let (arm, mut other) = (arm_of(GUARDED), arm_of(GUARDED));
        let layout = Layout { placed: Vec::new(), bytes: 0 };
        assert!(of_variant(&arm, &other, &layout).unwrap().is_some());
        other.variant = "own".to_owned();
        let own = of_variant(&arm, &other, &layout).unwrap().unwrap();
        assert_eq!((own.name.as_str(), own.arm.name.as_str(), own.arm.variant.as_str()), ("own", "own", "own"));
        other.case.roles[0].steps.pop();
        assert!(of_variant(&arm, &other, &layout).unwrap().is_none());
    }
}

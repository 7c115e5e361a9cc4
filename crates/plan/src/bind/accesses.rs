//! Who touches which element, how, and about how often.

use super::elements::{Elements, elements};
use super::{BindError, Seat, seats};
use crate::lock::{Lock, LockKind};
use crate::placement::Item;
use crate::region::{MemoryStep, MemoryVerb};
use crate::scenario::{Case, Field};
use crate::step::{Action, Step};
use crate::units::{PAGE_BYTES, TIMER_SLACK, WorkerIndex};
use std::collections::BTreeSet;

/// What a case's workers touch, before anything is placed.
#[derive(Clone, Debug, PartialEq)]
pub struct Usage {
    /// Every element of every field, then every lock, in declaration order, with who touches it and about how often.
    pub items: Vec<Item>,
    /// Each step of each worker that touches an item, once for each item it reaches, in the order of the workers.
    pub touches: Vec<Touch>,
}

/// One step of one worker and one item that it reaches.
#[derive(Clone, Debug, PartialEq)]
pub struct Touch {
    /// Index into [`Usage::items`].
    pub item: usize,
    /// Who.
    pub worker: WorkerIndex,
    /// Index into [`Case::roles`].
    pub role: usize,
    /// Index into [`Role::steps`](crate::Role::steps).
    pub step: usize,
    /// How often a pass does so, on average: 1 in each pass, less under `every` and where one of several is drawn.
    pub per_pass: f64,
    /// How often a second, estimated as [`Item::accesses_per_second`].
    pub per_second: f64,
    /// Whether it writes, so that other CPUs lose their copies of the line; taking a lock does.
    pub writes: bool,
}

/// Who touches what, and about how often; names no machine.
///
/// # Errors
/// [`BindError`] for a step that names an element which is not there.
pub fn usage(case: &Case) -> Result<Usage, BindError> {
    let mut table = Table::of(case);
    for seat in seats(case) {
        table.add_worker(case, seat)?;
    }
    Ok(Usage { items: table.items, touches: table.touches })
}

/// The items of [`usage`].
pub(super) fn items(case: &Case) -> Result<Vec<Item>, BindError> {
    usage(case).map(|usage| usage.items)
}

struct Table {
    items: Vec<Item>,
    touches: Vec<Touch>,
    /// Index of each field's first element, then of each lock.
    first: Vec<usize>,
    elements: Vec<usize>,
}

impl Table {
    fn of(case: &Case) -> Table {
        let mut table = Table { items: Vec::new(), touches: Vec::new(), first: Vec::new(), elements: Vec::new() };
        for field in &case.fields {
            let count = field.count.elements(case.worker_count());
            table.append((0..count).map(|element| field_item(field, element)));
        }
        for lock in &case.locks {
            table.append(std::iter::once(lock_item(lock)));
        }
        table
    }

    fn append(&mut self, items: impl Iterator<Item = Item>) {
        let first = self.items.len();
        self.first.push(first);
        self.items.extend(items);
        self.elements.push(self.items.len() - first);
    }

    fn add_worker(&mut self, case: &Case, seat: Seat) -> Result<(), BindError> {
        let visits = visits(case, seat)?;
        let pass_ns: f64 = visits.iter().map(|visit| visit.ns_per_pass).sum();
        for (nth, visit) in visits.into_iter().enumerate() {
            if let Some((object, reached)) = visit.object {
                self.touch((object, reached), (nth, visit.step), seat, pass_ns);
            }
        }
        Ok(())
    }

    /// Notes that the `nth` step touches the `reached` elements of the `object`-th field or lock.
    fn touch(&mut self, (object, reached): (usize, Elements), (nth, step): (usize, &Step), seat: Seat, pass_ns: f64) {
        let first = self.first[object];
        let share = if let Elements::Any(count) = reached { f64::from(count) } else { 1.0 };
        let per_pass = 1.0 / f64::from(step.every) / share;
        let per_second = accesses(&step.action) * per_pass / pass_ns * 1e9;
        for item in &mut self.items[first..first + self.elements[object]] {
            item.touched = true;
        }
        for element in reached.reachable() {
            let index = first + element as usize;
            let item = &mut self.items[index];
            let writes = item.lock || step.action.writes();
            let users = if writes { &mut item.writers } else { &mut item.readers };
            users.insert(seat.index);
            item.atomic |= is_atomic(&step.action);
            item.accesses_per_second += per_second;
            let (worker, role) = (seat.index, seat.role);
            self.touches.push(Touch { item: index, worker, role, step: nth, per_pass, per_second, writes });
        }
    }
}

/// One step in one worker's pass.
struct Visit<'a> {
    step: &'a Step,
    /// Nominal time a pass, `every` taken into account.
    ns_per_pass: f64,
    /// The field or lock, in the order of [`Table`], and the elements reached.
    object: Option<(usize, Elements)>,
}

fn visits(case: &Case, seat: Seat) -> Result<Vec<Visit<'_>>, BindError> {
    let visit = |step| {
        let object = touched_object(case, seat, step)?;
        let repeats = if let Some((_, Elements::All(count))) = object { f64::from(count) } else { 1.0 };
        Ok(Visit { step, ns_per_pass: nominal_ns(&step.action) * repeats / f64::from(step.every), object })
    };
    case.roles[seat.role].steps.iter().map(visit).collect()
}

fn touched_object(case: &Case, seat: Seat, step: &Step) -> Result<Option<(usize, Elements)>, BindError> {
    Ok(match &step.action {
        Action::Lock { lock, .. } | Action::Unlock { lock, .. } => Some((case.fields.len() + lock, Elements::One(0))),
        action => match action.target() {
            Some(target) => Some((target.field, elements(case, seat, step, target)?)),
            None => None,
        },
    })
}

/// What a step is taken to cost, nanoseconds. Access, atomic and lock steps: as measured uncontended on an AMD EPYC of
/// family 25. `pause`: about 10 cycles before Skylake, up to 140 since (Intel optimisation reference manual). `wait`: a
/// hand-over of a line. Memory steps: [`memory_ns`]. The rest: orders of magnitude; a lock's kind does not count, so
/// that no rule places by it. They turn a loop into accesses a second, which only rank elements as hot or cold: the
/// same error in all changes nothing, one of tenfold in a single step could move an element across
/// [`HOT_SHARE`](crate::placement::HOT_SHARE).
fn nominal_ns(action: &Action) -> f64 {
    match action {
        Action::Load(_) | Action::Store(_) | Action::Bump(_) => 0.5,
        Action::Add(_) | Action::Swap(_) | Action::Cas(_) | Action::Post(_) => 2.5,
        Action::Lock { .. } | Action::Unlock { .. } => 5.0,
        Action::Pause | Action::Fence => 20.0,
        Action::Flush(_) => 100.0,
        Action::Wait(_) => 200.0,
        Action::Yield | Action::Die => 500.0,
        Action::Work(nanos) => nanos.0 as f64,
        Action::Sleep(nanos) => nanos.0 as f64 + TIMER_SLACK.0 as f64,
        Action::Memory(step) => memory_ns(step),
    }
}

/// A page that is there already takes a few nanoseconds, one that the kernel has to find or to take away a microsecond,
/// and a call as much again.
fn memory_ns(step: &MemoryStep) -> f64 {
    let (pages, chunks) = ((step.bytes / PAGE_BYTES) as f64, step.chunks() as f64);
    let work = match step.verb {
        MemoryVerb::Touch | MemoryVerb::Reuse => pages * 2.0,
        _ => pages * 1_000.0 + chunks * 1_000.0,
    };
    work + chunks * step.pause.0 as f64
}

fn accesses(action: &Action) -> f64 {
    if let Action::Bump(_) = action { 2.0 } else { 1.0 }
}

fn is_atomic(action: &Action) -> bool {
    matches!(
        action,
        Action::Add(_) | Action::Swap(_) | Action::Cas(_) | Action::Post(_) | Action::Wait(_) | Action::Lock { .. }
    )
}

fn field_item(field: &Field, element: u32) -> Item {
    let bytes = field.width.bytes();
    let at = field.at.map(|at| at.saturating_add(u64::from(element) * bytes));
    untouched(&field.name, element, bytes, bytes, at)
}

fn lock_item(lock: &Lock) -> Item {
    let item = untouched(&lock.name, 0, LockKind::BYTES, LockKind::ALIGN, lock.at);
    Item { lock: true, atomic: true, ..item }
}

fn untouched(name: &str, element: u32, bytes: u64, align: u64, at: Option<u64>) -> Item {
    Item {
        name: name.to_owned(),
        element,
        bytes,
        align,
        at,
        lock: false,
        atomic: false,
        touched: false,
        writers: BTreeSet::new(),
        readers: BTreeSet::new(),
        accesses_per_second: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::{items, usage};
    use crate::fixtures::Scene;
    use crate::placement::Item;

    fn users(item: &Item) -> (Vec<u32>, Vec<u32>) {
        let list = |set: &std::collections::BTreeSet<crate::WorkerIndex>| set.iter().map(|w| w.0).collect();
        (list(&item.writers), list(&item.readers))
    }

    #[test]
    fn readers_and_writers_are_found_step_by_step() {
        let scene = Scene::new()
            .array("slot", 2)
            .field("flag")
            .field("unused")
            .lock("m", None)
            .role("writer", 2, &["lock m", "bump slot[me]", "unlock m"])
            .role("reader", 1, &["load slot[all]", "wait flag"]);
        let items = items(&scene.0).unwrap();
        let seen: Vec<_> = items.iter().map(|i| (i.name.as_str(), i.element, users(i), i.touched, i.atomic)).collect();
        assert_eq!(
            seen,
            [
                ("slot", 0, (vec![0], vec![2]), true, false),
                ("slot", 1, (vec![1], vec![2]), true, false),
                ("flag", 0, (vec![], vec![2]), true, true),
                ("unused", 0, (vec![], vec![]), false, false),
                ("m", 0, (vec![0, 1], vec![]), true, true),
            ]
        );
    }

    #[test]
    fn an_untouched_element_of_a_touched_field_stays_with_it() {
        let items = items(&Scene::new().array("x", 3).role("r", 1, &["load x[1]"]).0).unwrap();
        assert!(items.iter().all(|item| item.touched));
        assert_eq!(items[0].accesses_per_second, 0.0);
    }

    #[test]
    fn each_touch_says_who_does_what_how_often() {
        let scene = Scene::new().array("slot", 2).field("sum").lock("m", None).role(
            "r",
            2,
            &["lock m", "bump slot[me]", "unlock m", "every 4 load sum", "load slot[any]"],
        );
        let usage = usage(&scene.0).unwrap();
        let of = |worker: u32| usage.touches.iter().filter(move |touch| touch.worker.0 == worker);
        let seen: Vec<_> = of(1).map(|t| (t.item, t.step, t.per_pass, t.writes)).collect();
        let expected = [
            (3, 0, 1.0, true),
            (1, 1, 1.0, true),
            (3, 2, 1.0, true),
            (2, 3, 0.25, false),
            (0, 4, 0.5, false),
            (1, 4, 0.5, false),
        ];
        assert_eq!(seen, expected);
        let added: f64 = usage.touches.iter().filter(|touch| touch.item == 1).map(|touch| touch.per_second).sum();
        assert!((added / usage.items[1].accesses_per_second - 1.0).abs() < 1e-9);
    }

    #[test]
    fn rates_follow_every_any_and_work() {
        let scene = Scene::new().field("hot").field("rare").array("spread", 4).role(
            "r",
            1,
            &["add hot", "every 64 add rare", "add spread[any]"],
        );
        let busy = items(&scene.0).unwrap();
        let ratio = |a: &Item, b: &Item| a.accesses_per_second / b.accesses_per_second;
        assert!((ratio(&busy[0], &busy[1]) - 64.0).abs() < 1e-9);
        assert!((ratio(&busy[0], &busy[2]) - 4.0).abs() < 1e-9);
        let slow = items(&Scene::new().field("hot").role("r", 1, &["add hot", "work 1000000"]).0).unwrap();
        assert!((990.0..1000.0).contains(&slow[0].accesses_per_second), "a little under one each millisecond");
    }
}

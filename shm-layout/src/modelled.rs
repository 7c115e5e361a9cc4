//! Words of loom's for the models, in which each place of the code that asks for an ordering can be denied half of it. A
//! model that holds all the same does not show that the half is needed there.

use crate::atom::Atom;
use loom::sync::atomic::{AtomicU32, AtomicU64};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Half of an ordering at the place that asks for it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Site {
    half: Half,
    file: &'static str,
    line: u32,
    column: u32,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Half {
    Acquire,
    Release,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}:{}", self.half, self.file, self.line)
    }
}

thread_local! {
    // A model's threads take turns on the thread of the test that explores it.
    static DENIED: Cell<Option<Site>> = const { Cell::new(None) };
    static SEEN: RefCell<BTreeSet<Site>> = const { RefCell::new(BTreeSet::new()) };
}

/// What is left of an ordering that the caller asks for.
#[track_caller]
pub(crate) fn granted(order: Ordering) -> Ordering {
    let at = Location::caller();
    let is_denied = |half| {
        let site = Site { half, file: at.file(), line: at.line(), column: at.column() };
        SEEN.with_borrow_mut(|seen| seen.insert(site));
        DENIED.get() == Some(site)
    };
    match order {
        Ordering::Acquire if is_denied(Half::Acquire) => Ordering::Relaxed,
        Ordering::Release if is_denied(Half::Release) => Ordering::Relaxed,
        // Both are asked, so that both are seen.
        Ordering::AcqRel => match (is_denied(Half::Acquire), is_denied(Half::Release)) {
            (true, _) => Ordering::Release,
            (_, true) => Ordering::Acquire,
            _ => order,
        },
        order => order,
    }
}

/// A word of loom's.
#[derive(Debug, Default)]
pub(crate) struct Modelled<A>(pub(crate) A);

macro_rules! modelled {
    ($atomic:ty, $value:ty) => {
        impl Atom<$value> for Modelled<$atomic> {
            #[track_caller]
            fn load(&self, order: Ordering) -> $value {
                self.0.load(granted(order))
            }

            #[track_caller]
            fn store(&self, value: $value, order: Ordering) {
                self.0.store(value, granted(order));
            }

            #[track_caller]
            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_add(value, granted(order))
            }

            #[track_caller]
            fn fetch_max(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_max(value, granted(order))
            }
        }
    };
}

modelled!(AtomicU32, u32);
modelled!(AtomicU64, u64);

/// What is explored, and with how many preemptions.
#[derive(Clone)]
pub(crate) struct Model {
    preemptions: usize,
    run: Arc<dyn Fn() + Send + Sync>,
}

impl Model {
    pub(crate) fn new(preemptions: usize, run: impl Fn() + Send + Sync + 'static) -> Model {
        Model { preemptions, run: Arc::new(run) }
    }

    /// Runs it in every order with so many preemptions, and `LAB_PREEMPTIONS` more, and with every value that the
    /// orderings allow.
    ///
    /// # Panics
    /// Where it does in any.
    pub(crate) fn explore(&self) {
        let more = std::env::var("LAB_PREEMPTIONS").map_or(0, |text| text.parse().expect("LAB_PREEMPTIONS: a number"));
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(self.preemptions + more);
        let run = self.run.clone();
        builder.check(move || run());
    }

    fn finds_out(&self) -> bool {
        catch_unwind(AssertUnwindSafe(|| self.explore())).is_err()
    }
}

/// Explores the models; then again with each half of each ordering that they came by denied, one at a time. The halves
/// that none of them misses.
pub(crate) fn unmissed(models: &[Model]) -> Vec<String> {
    SEEN.take();
    models.iter().for_each(Model::explore);
    let sites = SEEN.take();
    assert!(!sites.is_empty(), "no orderings are asked for");
    let unmissed = sites.into_iter().filter(|site| {
        DENIED.set(Some(*site));
        let found_out = models.iter().any(Model::finds_out);
        DENIED.set(None);
        !found_out
    });
    unmissed.map(|site| site.to_string()).collect()
}

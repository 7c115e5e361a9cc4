//! The words by which processes tell each other things. In a segment they are the processor's; in the models (`models.rs`,
//! `lock/models.rs`) the same code runs on words that show every value its memory orderings allow.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A word of fixed width that several processes use at once. Orderings are those of the standard library's atomics.
#[allow(missing_docs)] // named and defined as there
pub trait Atom<T> {
    #[cfg_attr(test, track_caller)]
    fn load(&self, order: Ordering) -> T;
    #[cfg_attr(test, track_caller)]
    fn store(&self, value: T, order: Ordering);
    #[cfg_attr(test, track_caller)]
    fn fetch_add(&self, value: T, order: Ordering) -> T;
    #[cfg_attr(test, track_caller)]
    fn fetch_max(&self, value: T, order: Ordering) -> T;
}

macro_rules! processors_own {
    ($atomic:ty, $value:ty) => {
        impl Atom<$value> for $atomic {
            #[inline(always)]
            fn load(&self, order: Ordering) -> $value {
                self.load(order)
            }

            #[inline(always)]
            fn store(&self, value: $value, order: Ordering) {
                self.store(value, order);
            }

            #[inline(always)]
            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.fetch_add(value, order)
            }

            #[inline(always)]
            fn fetch_max(&self, value: $value, order: Ordering) -> $value {
                self.fetch_max(value, order)
            }
        }
    };
}

processors_own!(AtomicU32, u32);
processors_own!(AtomicU64, u64);

//! How far the CPUs of this machine are from each other.

mod measure;
mod readings;
mod rings;
mod sample;

pub(crate) use measure::{Measured, measure};

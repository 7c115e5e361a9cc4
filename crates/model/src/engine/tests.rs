//! The engine's tests: each room one question.

mod fingerprint;
mod growth;
mod kit;
mod locks;
mod places;
mod probes;
mod progress;
mod properties;
mod tables;

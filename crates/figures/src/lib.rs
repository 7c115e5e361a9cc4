//! How numbers are written wherever a run is shown: on a terminal, in Markdown, on the page.
#![forbid(unsafe_code)]

mod numbers;
mod predicted;
mod words;

pub use numbers::{Figure, NONE, count, percent, percent_number, plain, plural, wall_time};
pub use predicted::beside_prediction;
pub use words::in_words;

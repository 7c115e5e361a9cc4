//! The text of an exercise.toml.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    hostile::doors::exercise(bytes);
});

//! The text of a scenario.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    hostile::doors::scenario(bytes);
});

//! A program that a watched process executes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    hostile::doors::symbols(bytes);
});

//! The text of a machine file.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    hostile::doors::machine(bytes);
});

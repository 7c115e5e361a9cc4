//! What report --topology is given.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    hostile::doors::topology(bytes);
});

//! The first bytes of a segment that a worker attaches to.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    hostile::doors::segment(bytes);
});

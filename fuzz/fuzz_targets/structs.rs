//! A program or a file of BTF given to import.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    hostile::doors::structs(bytes);
});

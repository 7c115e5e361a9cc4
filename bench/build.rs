//! Compiles the C side of the comparisons at -O2, whatever the profile: it is the yardstick.

const SOURCES: [&str; 2] = ["c/loops.c", "c/locks.c"];

fn main() {
    SOURCES.iter().for_each(|source| println!("cargo::rerun-if-changed={source}"));
    cc::Build::new().files(SOURCES).std("c11").opt_level(2).debug(false).warnings(true).compile("in_c");
}

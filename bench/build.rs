//! Compiles the C side of the comparisons at -O2, whatever the profile: it is the yardstick. `c/target.c` is a program
//! of its own, for `attach` to watch.

use std::path::PathBuf;

const SOURCES: [&str; 2] = ["c/loops.c", "c/locks.c"];
const TARGET: &str = "c/target.c";

fn main() {
    SOURCES.iter().chain([&TARGET]).for_each(|source| println!("cargo::rerun-if-changed={source}"));
    cc::Build::new().files(SOURCES).std("c11").opt_level(2).debug(false).warnings(true).compile("in_c");
    let program = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it")).join("target");
    let compiler = cc::Build::new().opt_level(2).debug(true).warnings(true).get_compiler();
    let status = compiler.to_command().arg(TARGET).arg("-o").arg(&program).arg("-pthread").status();
    assert!(status.is_ok_and(|status| status.success()), "{TARGET} does not compile");
    println!("cargo::rustc-env=ATTACH_TARGET={}", program.display());
}

//! Compiles the C side of the comparison at -O2, whatever the profile: it is the yardstick.

fn main() {
    println!("cargo::rerun-if-changed=c/loops.c");
    cc::Build::new().file("c/loops.c").std("c11").opt_level(2).debug(false).warnings(true).compile("loops");
}

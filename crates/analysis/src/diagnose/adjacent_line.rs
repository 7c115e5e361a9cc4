//! Adjacent line: data of different workers on the two lines of one 128-byte pair, where parting the pair pays.
//!
//! # References
//! Intel 64 and IA-32 Architectures Optimization Reference Manual, "Data Prefetching": the spatial prefetcher
//! completes pairs of lines.

use super::{Cost, Sick, Words, cost, lines, names, report};
use crate::view::{View, same_work};
use crate::words::figure;
use plan::{BoundArm, CACHE_LINE_BYTES, LINE_PAIR_BYTES, Placed, Program};
use record::Diagnosis;

pub(super) fn find(view: &View) -> Option<(f64, Diagnosis)> {
    let mut found = Vec::new();
    for (arm, program) in view.variants() {
        let elements = lines::paired(program);
        let roles = lines::roles(program, &elements);
        if let Some(cost) = cost::worst(roles.iter().map(|role| pair_cost(view, arm, program, &elements, role))) {
            found.push(Sick { arm, program, elements, cost });
        }
    }
    report(view, found, words)
}

/// What a role pays as against variants in which the same work finds these elements on pairs of their own, and every
/// line is shared as it is here, so that nothing else explains the difference.
fn pair_cost(view: &View, arm: &BoundArm, program: &Program, elements: &[&Placed], role: &str) -> Option<Cost> {
    let on_lines = lines::conflicts(program, CACHE_LINE_BYTES);
    let cures = |(other, parted): &(&BoundArm, &Program)| {
        other.arm.name != arm.arm.name
            && same_work(other, arm)
            && lines::apart(parted, elements, LINE_PAIR_BYTES)
            && lines::conflicts(parted, CACHE_LINE_BYTES) == on_lines
    };
    cost::against_cured(view, arm, role, &view.variants().filter(cures).collect::<Vec<_>>())
}

fn words(sick: &Sick) -> Words {
    let Sick { arm, cost, .. } = sick;
    Words {
        kind: "adjacent_line",
        text: format!(
            "In `{}`, {} have lines of their own but these are the two halves of one 128-byte pair, which this CPU \
             fetches together: a pass of `{}` takes {} times as long as in `{}`.",
            arm.arm.name,
            names(sick),
            cost.role,
            figure(cost.ratio.median),
            cost.against
        ),
        cure:
            "Keep different workers' data 128 bytes apart: `placement = { pad = 128 }` here, `alignas(128)` in C and \
               C++, `#[repr(align(128))]` (or crossbeam's `CachePadded`) in Rust."
                .to_owned(),
    }
}

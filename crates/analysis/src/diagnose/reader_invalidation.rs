//! Reader invalidation: a role that only reads a line loses it to a neighbour's writes to other data there.

use super::own_lines::{self, line_cost};
use super::{Cost, Sick, Words, cost, lines, names, report};
use crate::view::View;
use crate::words::{figure, list};
use plan::{BoundArm, Placed, Program};
use record::Diagnosis;

pub(super) fn find(view: &View) -> Option<(f64, Diagnosis)> {
    let mut found = Vec::new();
    for (arm, program) in view.variants() {
        for elements in lines::kinds_of_falsely_shared(program) {
            if let Some(cost) = readers_cost(view, arm, program, &elements) {
                found.push(Sick { arm, program, elements, cost });
            }
        }
    }
    report(view, found, words)
}

/// What the roles pay that only read the line; by their own figure, whichever role heads the arm.
pub(super) fn readers_cost(view: &View, arm: &BoundArm, program: &Program, line: &[&Placed]) -> Option<Cost> {
    let writing = lines::writing_roles(program, line);
    let readers = lines::roles(program, line).into_iter().filter(|role| !writing.contains(role));
    cost::worst(readers.map(|role| line_cost(view, arm, line, &role)))
}

fn words(sick: &Sick) -> Words {
    let Sick { arm, program, elements, cost } = sick;
    let writers = lines::writing_roles(program, elements);
    Words {
        kind: "reader_invalidation",
        text: format!(
            "In `{}`, {} lie in one cache line, and though `{}` only reads there, each write of {} to other data takes \
             its copy of the line away: a pass of `{}` takes {} times as long as in `{}`.",
            arm.arm.name,
            names(sick),
            cost.role,
            list(&writers),
            cost.role,
            figure(cost.ratio.median),
            cost.against
        ),
        cure: own_lines::cure(sick),
    }
}

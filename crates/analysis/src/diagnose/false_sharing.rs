//! False sharing: different workers write different data in one cache line, and pay for it.

use super::own_lines::{self, line_cost};
use super::{Cost, Sick, Words, cost, lines, names, reader_invalidation, report};
use crate::view::View;
use crate::words::figure;
use plan::{BoundArm, Placed, Program};
use record::Diagnosis;
use std::collections::BTreeSet;

pub(super) fn find(view: &View) -> Option<(f64, Diagnosis)> {
    let mut found = Vec::new();
    for (arm, program) in view.variants() {
        for elements in lines::kinds_of_falsely_shared(program) {
            if let Some(cost) = writers_cost(view, arm, program, &elements) {
                found.push(Sick { arm, program, elements, cost });
            }
        }
    }
    report(view, found, words)
}

/// What the writers of the line pay. A line with one writer beside readers is the readers' case, unless the writer
/// alone pays.
fn writers_cost(view: &View, arm: &BoundArm, program: &Program, line: &[&Placed]) -> Option<Cost> {
    let writers: BTreeSet<_> = line.iter().flat_map(|e| &e.writers).collect();
    if writers.len() == 1 && reader_invalidation::readers_cost(view, arm, program, line).is_some() {
        return None;
    }
    let roles = lines::writing_roles(program, line);
    cost::worst(roles.iter().map(|role| line_cost(view, arm, line, role)))
}

fn words(sick: &Sick) -> Words {
    let Sick { arm, cost, .. } = sick;
    Words {
        kind: "false_sharing",
        text: format!(
            "In `{}`, {} lie in one cache line although different workers use them, so each write takes the line away \
             from the other CPU: a pass of `{}` takes {} times as long as in `{}`.",
            arm.arm.name,
            names(sick),
            cost.role,
            figure(cost.ratio.median),
            cost.against
        ),
        cure: own_lines::cure(sick),
    }
}

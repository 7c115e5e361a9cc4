//! The kernel's stacks at flushes and function-call interrupts, where they were asked for.

use crate::report::figures::count;
use crate::report::page::Page;
use crate::report::terminal::measured_variants;
use record::{Run, StackSummary};

/// Each variant's stacks, from the innermost function outwards. Nothing where none were kept.
pub(super) fn write(page: &mut Page, run: &Run) {
    let with_stacks: Vec<_> = measured_variants(run).filter(|arm| !arm.stacks.is_empty()).collect();
    if with_stacks.is_empty() {
        return;
    }
    page.heading("What the kernel was doing, as logged");
    for arm in with_stacks {
        page.prose(&arm.name);
        for StackSummary { role, event, count: times, frames } in &arm.stacks {
            page.item(2, "", &format!("{role}, {event}, {} times: {}", count(*times), frames.join(" < ")));
        }
    }
    page.legend(
        "flush_sent: the worker's call has other CPUs forget translations. interrupt, flush_remote: the worker's CPU is \
         interrupted and forgets them. flush_local, flush_local_mm: the worker's call flushes its own CPU. The function \
         where it happened stands first, its caller behind it.",
    );
}

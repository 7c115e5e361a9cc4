//! The kernel's stacks at flushes and function-call interrupts, where they were asked for.

use crate::report::figures::count;
use crate::report::page::Page;
use crate::report::terminal::measured_variants;
use record::{Run, StackSummary};

/// Of each variant's roles and kinds of event the most frequent stack, from the innermost function outwards. Nothing
/// where none were kept.
pub(super) fn write(page: &mut Page, run: &Run) {
    let with_stacks: Vec<_> = measured_variants(run).filter(|arm| !arm.stacks.is_empty()).collect();
    if with_stacks.is_empty() {
        return;
    }
    page.heading("What the kernel was doing, as logged");
    for arm in with_stacks {
        page.prose(&arm.name);
        let mut told: Option<(&str, &str)> = None;
        for StackSummary { role, event, count: times, frames } in &arm.stacks {
            // They come by role and event, the most frequent first.
            if told.replace((role, event)) == Some((role, event)) {
                continue;
            }
            page.item(2, "", &format!("{role}, {event}, {} times: {}", count(*times), frames.join(" < ")));
        }
    }
    page.legend(
        "flush_sent: the worker's call has other CPUs forget translations. interrupt, flush_remote: the worker's CPU is \
         interrupted and forgets them. flush_local, flush_local_mm: the worker's call flushes its own CPU. The function \
         where it happened stands first, its caller behind it; run.json has up to three of each.",
    );
}

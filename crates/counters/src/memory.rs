//! The counters that a run with memory steps asks for besides: who gave memory back, and whom that interrupted.

use crate::choice::{Choice, Meaning};
use crate::log::{LogKind, LogOrder};
use crate::order::{Order, SHOOTDOWNS};
use crate::refusal::no_tracepoint;
use crate::tracepoint::Tracepoint;
use host::{Invalidation, Root};
use record::Reading;

/// Passed in the task that was interrupted, or that interrupts. The numbers are those of `enum tlb_flush_reason`
/// (`include/linux/mm_types.h`), old ones of which the kernel has never changed: a wrong one would count another reason
/// under the name.
const TRACEPOINTS: [Tracepoint; 9] = [
    Tracepoint {
        name: "tlb_flushes_remote",
        system: "tlb",
        event: "tlb_flush",
        filter: Some("reason==1"),
        counts: "TLB flushes that other CPUs asked of the worker's while the worker was on it: the victim's side of a \
                 shootdown",
    },
    Tracepoint {
        name: "tlb_flushes_local",
        system: "tlb",
        event: "tlb_flush",
        filter: Some("reason==2"),
        counts: "TLB flushes of a range by the worker's own doing, on its CPU",
    },
    Tracepoint {
        name: "tlb_flushes_local_mm",
        system: "tlb",
        event: "tlb_flush",
        filter: Some("reason==3"),
        counts: "TLB flushes of a whole address space by the worker's own doing, on its CPU",
    },
    Tracepoint {
        name: "tlb_flushes_sent",
        system: "tlb",
        event: "tlb_flush",
        filter: Some("reason==4"),
        counts: "times the worker's doing had the kernel ask other CPUs to flush: the culprit's side of a shootdown, one \
                 for all CPUs that are asked together",
    },
    Tracepoint {
        name: "call_function_interrupts",
        system: "irq_vectors",
        event: "call_function_entry",
        filter: None,
        counts: "interrupts while the worker was on its CPU by which another had several CPUs call a function",
    },
    Tracepoint {
        name: "call_function_single_interrupts",
        system: "irq_vectors",
        event: "call_function_single_entry",
        filter: None,
        counts: "interrupts while the worker was on its CPU by which another had this CPU alone call a function",
    },
    Tracepoint {
        name: "csd_queued",
        system: "csd",
        event: "csd_queue_cpu",
        filter: None,
        counts: "functions that the worker's doing queued for other CPUs to call, a flush among them; one each CPU",
    },
    Tracepoint {
        name: "ipis_sent",
        system: "ipi",
        event: "ipi_send_cpu",
        filter: None,
        counts: "interrupts that the worker's doing sent to one other CPU; the kernel leaves this out where the CPU has \
                 one pending",
    },
    Tracepoint {
        name: "ipis_sent_mask",
        system: "ipi",
        event: "ipi_send_cpumask",
        filter: None,
        counts: "interrupts that the worker's doing sent to several other CPUs at once",
    },
];

/// Which tracepoints the log holds.
const LOGGED: [(LogKind, &str, &str); 3] = [
    (LogKind::Flush, "tlb", "tlb_flush"),
    (LogKind::Interrupt, "irq_vectors", "call_function_entry"),
    (LogKind::Interrupt, "irq_vectors", "call_function_single_entry"),
];

/// The counters, then the log: with the kernel's stack at each event where `stacks`.
pub(crate) fn choices(root: &Root, stacks: bool) -> (Vec<Choice>, LogOrder) {
    let invalidation = host::invalidation(root);
    let counted = TRACEPOINTS.iter().map(|of| tracepoint(root, of, invalidation));
    (std::iter::once(shootdowns(invalidation)).chain(counted).collect(), log(root, stacks, invalidation))
}

/// On a processor that invalidates by broadcast there is no interrupt, which is another thing than none counted.
fn broadcast() -> Reading {
    Reading::Unsupported {
        why: "this processor broadcasts TLB invalidations to its other CPUs (Arm's TLBI, inner shareable): none is \
              interrupted for one, and the kernel is not asked"
            .to_owned(),
    }
}

fn shootdowns(invalidation: Invalidation) -> Choice {
    let also = match invalidation {
        Invalidation::Both => {
            "; this processor has INVLPGB, by which the kernel may have it broadcast the invalidations of a process that \
             runs on more than three CPUs: those interrupt nobody and are not among them"
        }
        Invalidation::Interrupts | Invalidation::Broadcast => "",
    };
    let counts = format!(
        "interrupts by which other CPUs had the worker's CPU forget translations, whoever was running there{also}"
    );
    let order = match invalidation {
        Invalidation::Broadcast => Order::Refused { name: SHOOTDOWNS.to_owned(), reading: broadcast() },
        Invalidation::Interrupts | Invalidation::Both => Order::Shootdowns,
    };
    Choice { meaning: Meaning::by_kernel(SHOOTDOWNS, None, &counts, "proc_interrupts(5), row TLB"), order: Some(order) }
}

/// On a processor that broadcasts, a kernel without tracepoints of flushes lacks nothing: nobody is asked to flush.
fn tracepoint(root: &Root, tracepoint: &Tracepoint, invalidation: Invalidation) -> Choice {
    tracepoint.choice(root, |error| match invalidation {
        Invalidation::Broadcast if tracepoint.system == "tlb" => broadcast(),
        _ => no_tracepoint(error),
    })
}

fn log(root: &Root, stacks: bool, invalidation: Invalidation) -> LogOrder {
    let mut order = LogOrder { tracepoints: Vec::new(), missing: None, stacks };
    for (kind, system, event) in LOGGED {
        match host::tracepoint_id(root, system, event) {
            Ok(id) => order.tracepoints.push((kind, format!("{system}:{event}"), id)),
            Err(_) if invalidation == Invalidation::Broadcast => order.missing = Some(broadcast()),
            Err(error) => order.missing = order.missing.or_else(|| Some(no_tracepoint(&error))),
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::{choices, log};
    use crate::order::Order;
    use host::{Invalidation, Root};
    use plan::event::MEMORY_COUNTERS;
    use record::Reading;
    use std::path::Path;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (file, text) in files {
            let path: &Path = &folder.path().join(file);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
        let root = Root::at(folder.path());
        (folder, root)
    }

    #[test]
    fn each_counter_of_memory_steps_is_chosen_once() {
        let (_folder, root) = machine(&[]);
        let names: Vec<String> = choices(&root, false).0.into_iter().map(|choice| choice.meaning.name).collect();
        assert_eq!(names, MEMORY_COUNTERS);
    }

    #[test]
    fn without_tracefs_interrupts_are_noted_and_the_rest_says_what_is_missing() {
        let (_folder, root) = machine(&[("proc/cpuinfo", "flags : fpu\n")]);
        let (counters, log) = choices(&root, true);
        assert_eq!(counters[0].order, Some(Order::Shootdowns));
        for choice in &counters[1..] {
            let Some(Order::Refused { reading, .. }) = &choice.order else { panic!("{choice:?}") };
            assert!(reading.why().expect("no count").contains("tracefs"), "{reading:?}");
        }
        assert!(log.tracepoints.is_empty() && log.missing.expect("why").why().expect("why").contains("tracefs"));
    }

    #[test]
    fn a_processor_that_broadcasts_is_told_from_one_that_interrupts_nobody() {
        let (_folder, root) = machine(&[("proc/cpuinfo", "CPU implementer : 0x41\n")]);
        let (counters, log) = choices(&root, false);
        for order in counters.iter().take(5).map(|choice| choice.order.as_ref()) {
            let Some(Order::Refused { reading: Reading::Unsupported { why }, .. }) = order else { panic!("{order:?}") };
            assert!(why.contains("broadcasts"), "{why}");
        }
        assert!(log.missing.expect("why").why().expect("why").contains("broadcasts"));
        let (_folder, root) = machine(&[("proc/cpuinfo", "flags : fpu invlpgb\n")]);
        let shootdowns = choices(&root, false).0.remove(0);
        assert!(shootdowns.order == Some(Order::Shootdowns) && shootdowns.meaning.counts.contains("INVLPGB"));
    }

    #[test]
    fn what_the_kernel_has_is_logged_though_some_of_it_is_missing() {
        let tracing = "sys/kernel/tracing/events";
        let (_folder, root) = machine(&[
            (&format!("{tracing}/header_page"), ""),
            (&format!("{tracing}/tlb/tlb_flush/id"), "188\n"),
            (&format!("{tracing}/irq_vectors/call_function_single_entry/id"), "151\n"),
        ]);
        let order = log(&root, false, Invalidation::Interrupts);
        assert_eq!(order.tracepoints.iter().map(|(_, _, id)| *id).collect::<Vec<_>>(), [188, 151]);
        let missing = order.missing.expect("one is not there");
        assert!(missing.why().expect("why").contains("irq_vectors:call_function_entry"), "{missing:?}");
    }
}

//! The question, and the machine that answers it.

use crate::report::figures::{percent, plural};
use crate::report::page::Page;
use record::Run;
use std::collections::BTreeSet;

/// Share of CPU time taken by the hypervisor from which on it is worth a word.
const WORTH_SAYING: f64 = 0.001;

/// Title, question, host.
pub(super) fn write(page: &mut Page, run: &Run) {
    page.heading(&run.scenario.title);
    if !run.scenario.question.is_empty() {
        page.prose(&run.scenario.question);
    }
    page.blank();
    page.prose(&host(run));
}

fn host(run: &Run) -> String {
    let host = &run.host;
    let cpus: BTreeSet<u32> = run.arms.iter().flat_map(|arm| &arm.workers).map(|worker| worker.cpu).collect();
    let used = match cpus.len() {
        0 => format!("no CPU used of {}", host.cpus),
        1 => format!("CPU {} of {}", ranges(&cpus), plural(host.cpus.into(), "CPU")),
        _ => format!("CPUs {} of {}", ranges(&cpus), host.cpus),
    };
    let hypervisor = match &host.hypervisor {
        Some(name) => format!("virtual machine ({name})"),
        None => "no hypervisor seen".to_owned(),
    };
    let stolen = match host.stolen_share {
        Some(share) if share >= WORTH_SAYING => {
            format!("; {} of CPU time stolen by other guests", percent(share))
        }
        _ => String::new(),
    };
    format!("Host: {}; {used}; {hypervisor}{stolen}", host.cpu_model)
}

/// `0, 2–5`: CPU numbers, runs of three and more drawn together.
fn ranges(cpus: &BTreeSet<u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(cpu) => *last = cpu,
            _ => runs.push((cpu, cpu)),
        }
    }
    let shown = runs.into_iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}–{last}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn neighbouring_cpus_are_drawn_together() {
        assert_eq!(ranges(&[0, 1].into()), "0, 1");
        assert_eq!(ranges(&[0, 2, 3, 4, 5, 9].into()), "0, 2–5, 9");
    }
}

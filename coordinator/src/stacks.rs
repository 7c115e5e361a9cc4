//! The kernel's stacks of a run, by the names of its functions.

use host::{KernelSymbols, Root, SymbolsError};
use record::{ArmSummary, KernelObservation, Observation, Run, StackSummary, Warning};
use std::collections::BTreeMap;

/// Stacks shown of one role at one kind of event: the rest are rare ways to the same place.
const MOST_STACKS: usize = 3;

/// Fills in [`ArmSummary::stacks`], or warns of what keeps them away. Addresses are left out of the record, named or
/// not.
pub(crate) fn name(run: &mut Run, root: &Root) {
    let has_stacks = run.observations.iter().filter_map(|o| o.kernel.as_ref()).any(|kernel| !kernel.stacks.is_empty());
    if !has_stacks {
        return run.warnings.extend(nothing_kept(&run.observations));
    }
    match KernelSymbols::read(root) {
        Ok(symbols) => {
            let Run { arms, observations, .. } = run;
            arms.iter_mut().for_each(|arm| arm.stacks = of_arm(arm, observations, &symbols));
        }
        Err(error) => run.warnings.push(unnamed(&error)),
    }
}

/// Most frequent first, by role and event.
fn of_arm(arm: &ArmSummary, observations: &[Observation], symbols: &KernelSymbols) -> Vec<StackSummary> {
    let kept = observations.iter().filter(|o| o.arm == arm.name && o.spoiled.is_empty());
    let mut counts: BTreeMap<(&str, &str), BTreeMap<Vec<String>, u64>> = BTreeMap::new();
    for (role, kernel) in kept.filter_map(|o| Some((o.role.as_str(), o.kernel.as_ref()?))) {
        for stack in &kernel.stacks {
            // Stacks that differ within a function alone are one.
            let names = stack.frames.iter().map(|frame| symbols.name(*frame).unwrap_or("?").to_owned()).collect();
            *counts.entry((role, stack.event)).or_default().entry(names).or_default() += stack.count;
        }
    }
    let most = |((role, event), stacks): ((&str, &str), BTreeMap<Vec<String>, u64>)| {
        let mut stacks: Vec<(Vec<String>, u64)> = stacks.into_iter().collect();
        stacks.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let summary = |(frames, count)| StackSummary { role: role.to_owned(), event: event.to_owned(), count, frames };
        stacks.into_iter().take(MOST_STACKS).map(summary).collect::<Vec<_>>()
    };
    counts.into_iter().flat_map(most).collect()
}

/// Where something is missing, the warning on the log says it; a run without any event has nothing to show.
fn nothing_kept(observations: &[Observation]) -> Option<Warning> {
    let is_open = |kernel: &KernelObservation| kernel.missing.is_none();
    let nothing_happened = observations.iter().filter_map(|o| o.kernel.as_ref()).all(is_open);
    nothing_happened.then(|| Warning {
        id: "no_stacks".into(),
        text: "no flush and no function-call interrupt happened in any window, so there is no stack to show".into(),
        advice: "run a scenario whose steps give memory back while another worker has it mapped".into(),
    })
}

fn unnamed(error: &SymbolsError) -> Warning {
    Warning {
        id: "stacks_unnamed".into(),
        text: format!("the kernel's stacks were kept, but have no names: {error}"),
        advice: error.cure().unwrap_or("run outside of the container").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::name;
    use crate::report::testing;
    use host::Root;
    use record::{KernelObservation, Reading, Run, StackCount};

    /// A machine that names these functions.
    fn machine(kallsyms: &str) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("proc")).unwrap();
        std::fs::write(folder.path().join("proc/kallsyms"), kallsyms).unwrap();
        let root = Root::at(folder.path());
        (folder, root)
    }

    const NAMES: &str = "ffffffff81000000 T flush_tlb_func\nffffffff81000100 T sysvec_call_function\n";
    const BASE: u64 = 0xffff_ffff_8100_0000;

    /// Each worker was interrupted in two places of one function, and once elsewhere.
    fn run(missing: Option<Reading>, stacks: &[(u64, u64)]) -> Run {
        let mut run = testing::false_sharing();
        let stack = |(offset, count): &(u64, u64)| StackCount {
            event: "flush_remote",
            frames: vec![BASE + offset, BASE + 0x110],
            count: *count,
        };
        for seen in &mut run.observations {
            let stacks = stacks.iter().map(stack).collect();
            seen.kernel = Some(KernelObservation { missing: missing.clone(), stacks, ..KernelObservation::default() });
        }
        run.warnings.clear();
        run
    }

    fn warned(run: &Run) -> Vec<&str> {
        run.warnings.iter().map(|warning| warning.id.as_str()).collect()
    }

    #[test]
    fn stacks_of_one_way_add_up_over_workers_and_repetitions_by_their_functions_names() {
        let mut run = run(None, &[(0x10, 5), (0x20, 2), (0x110, 1)]);
        name(&mut run, &machine(NAMES).1);
        let arm = run.arms.iter().find(|arm| arm.name == "packed").unwrap();
        let workers = run.observations.iter().filter(|o| o.arm == "packed" && o.spoiled.is_empty()).count() as u64;
        let seen: Vec<_> = arm.stacks.iter().map(|s| (s.event.as_str(), s.count, s.frames.join(" "))).collect();
        let way = |first: &str| format!("{first} sysvec_call_function");
        let wanted = [
            ("flush_remote", 7 * workers, way("flush_tlb_func")),
            ("flush_remote", workers, way("sysvec_call_function")),
        ];
        assert!(workers > 1);
        assert_eq!((seen.as_slice(), warned(&run)), (wanted.as_slice(), vec![]));
    }

    #[test]
    fn what_keeps_names_or_stacks_away_is_said() {
        let mut hidden = run(None, &[(0x10, 5)]);
        name(&mut hidden, &machine("0000000000000000 T flush_tlb_func\n").1);
        assert_eq!(warned(&hidden), ["stacks_unnamed"]);
        assert!(hidden.arms.iter().all(|arm| arm.stacks.is_empty()));
        let mut quiet = run(None, &[]);
        name(&mut quiet, &machine(NAMES).1);
        assert_eq!(warned(&quiet), ["no_stacks"]);
        let mut closed = run(Some(Reading::Unsupported { why: "no tracefs".into() }), &[]);
        name(&mut closed, &machine(NAMES).1);
        assert_eq!(warned(&closed), [""; 0], "the warning on the log says why");
    }
}

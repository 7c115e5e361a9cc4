//! Processors that tell each other to forget translations, without an interrupt.

use crate::root::Root;

/// Who tells other CPUs that a translation is void.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Invalidation {
    /// The kernel, by interrupting each of them.
    Interrupts,
    /// The kernel by interrupts, and for processes that run on many CPUs the processor.
    Both,
    /// The processor: no CPU is interrupted.
    Broadcast,
}

/// How this machine's CPUs learn of it. By interrupts where nothing says otherwise.
///
/// # References
/// Arm ARM, TLBI …IS (inner shareable); AMD APM volume 3, INVLPGB, cpuinfo's flag `invlpgb`, which Linux uses from 6.15
/// on for processes on more than three CPUs (`arch/x86/mm/tlb.c`, consider_global_asid).
pub fn invalidation(root: &Root) -> Invalidation {
    let text = root.text("proc/cpuinfo").unwrap_or_default();
    let words = |key: &str| {
        let line = text.lines().find(|line| line.split(':').next().is_some_and(|name| name.trim() == key));
        line.and_then(|line| line.split_once(':')).map(|(_, words)| words.to_owned())
    };
    match (words("flags"), words("CPU implementer")) {
        (Some(flags), _) if flags.split_whitespace().any(|flag| flag == "invlpgb") => Invalidation::Both,
        (None, Some(_)) => Invalidation::Broadcast,
        _ => Invalidation::Interrupts,
    }
}

#[cfg(test)]
mod tests {
    use super::{Invalidation, invalidation};
    use crate::fixture::Fixture;

    #[test]
    fn each_kind_of_processor_is_known_by_its_own_words() {
        let of = |text: &str| invalidation(&Fixture::new().file("proc/cpuinfo", text).root());
        assert_eq!(of("processor : 0\nflags\t\t: fpu invlpg pcid\n"), Invalidation::Interrupts);
        assert_eq!(of("processor : 0\nflags\t\t: fpu invlpgb pcid\n"), Invalidation::Both);
        assert_eq!(of("processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n"), Invalidation::Broadcast);
        assert_eq!(invalidation(&Fixture::new().root()), Invalidation::Interrupts);
    }
}

//! The kernel's watchdog for CPUs that hang with interrupts off.

use crate::root::Root;

/// Whether it is on, which on most kernels takes a counter of every CPU from everybody else; false on a kernel without
/// one; `None` where the kernel's settings cannot be read.
///
/// # References
/// `Documentation/admin-guide/lockup-watchdogs.rst`; `lib/Kconfig.debug`, HARDLOCKUP_DETECTOR_BUDDY, is the kind that
/// takes no counter.
pub fn nmi_watchdog(root: &Root) -> Option<bool> {
    match root.number::<u8>("proc/sys/kernel/nmi_watchdog") {
        Some(on) => Some(on != 0),
        None => root.lacks("proc/sys/kernel", "nmi_watchdog").then_some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::nmi_watchdog;
    use crate::fixture::Fixture;

    #[test]
    fn a_kernel_without_one_differs_from_a_kernel_that_does_not_say() {
        let of = |file, text| nmi_watchdog(&Fixture::new().file(file, text).root());
        assert_eq!(of("proc/sys/kernel/nmi_watchdog", "1\n"), Some(true));
        assert_eq!(of("proc/sys/kernel/nmi_watchdog", "0\n"), Some(false));
        assert_eq!(of("proc/sys/kernel/ostype", "Linux\n"), Some(false));
        assert_eq!(of("proc/sys/kernel/nmi_watchdog", ""), None, "masked");
        assert_eq!(nmi_watchdog(&Fixture::new().root()), None);
    }
}

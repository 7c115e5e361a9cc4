//! The hardware that the kernel reads the time from.

use crate::root::Root;

/// The kernel's choice among its clocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockSource {
    /// `tsc`, `kvm-clock`, `hpet`, ….
    pub current: String,
    /// Those that it could use, best first.
    pub available: Vec<String>,
}

/// Reads which clock is in use; `None` where the kernel does not say.
///
/// # References
/// `Documentation/timers/timekeeping.rst`; `Documentation/admin-guide/kernel-parameters.txt`, clocksource= and tsc=.
pub fn clock_source(root: &Root) -> Option<ClockSource> {
    let folder = "sys/devices/system/clocksource/clocksource0";
    let current = root.text(&format!("{folder}/current_clocksource")).filter(|name| !name.is_empty())?;
    let available = root.text(&format!("{folder}/available_clocksource")).unwrap_or_default();
    Some(ClockSource { current, available: available.split_whitespace().map(str::to_owned).collect() })
}

#[cfg(test)]
mod tests {
    use super::clock_source;
    use crate::fixture::Fixture;

    #[test]
    fn the_choice_and_its_alternatives_are_read() {
        let folder = "sys/devices/system/clocksource/clocksource0";
        let fixture = Fixture::new()
            .file(&format!("{folder}/current_clocksource"), "hpet\n")
            .file(&format!("{folder}/available_clocksource"), "hpet acpi_pm \n");
        let seen = clock_source(&fixture.root()).unwrap();
        assert_eq!((seen.current.as_str(), seen.available), ("hpet", vec!["hpet".to_owned(), "acpi_pm".to_owned()]));
        assert_eq!(clock_source(&Fixture::new().root()), None);
    }
}

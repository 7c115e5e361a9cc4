//! How deeply a CPU sleeps when it has nothing to do.

use crate::root::Root;
use plan::CpuId;

/// One sleeping state that the kernel may choose for a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleState {
    /// `POLL`, `C1`, `C6`, ….
    pub name: String,
    /// How long the CPU needs to leave it, by the firmware's or driver's table, µs.
    pub exit_us: u64,
    /// Whether it is switched off, by a user or by default.
    pub disabled: bool,
}

/// The machine's idle driver: `intel_idle`, `acpi_idle`, `haltpoll`; `None` where there is none, and CPUs sleep as the
/// architecture or the hypervisor does it.
///
/// # References
/// `Documentation/admin-guide/pm/cpuidle.rst`.
pub fn idle_driver(root: &Root) -> Option<String> {
    root.text("sys/devices/system/cpu/cpuidle/current_driver").filter(|name| !name.is_empty() && name != "none")
}

/// The states of `cpu`, shallowest first as the kernel numbers them; none where there is no driver.
///
/// # References
/// `Documentation/ABI/testing/sysfs-devices-system-cpu`, cpuidle/stateN.
pub fn idle_states(root: &Root, cpu: CpuId) -> Vec<IdleState> {
    let folder = format!("sys/devices/system/cpu/cpu{}/cpuidle", cpu.0);
    let number = |name: &String| name.strip_prefix("state").and_then(|number| number.parse::<u32>().ok());
    let mut numbers: Vec<u32> = root.names(&folder).iter().filter_map(number).collect();
    numbers.sort_unstable();
    let read = |number: u32| {
        let file = |name: &str| format!("{folder}/state{number}/{name}");
        Some(IdleState {
            name: root.text(&file("name"))?,
            exit_us: root.number(&file("latency"))?,
            // A bit for the user and one for the driver, as one number.
            disabled: root.number::<u64>(&file("disable")).is_some_and(|disabled| disabled != 0),
        })
    };
    numbers.into_iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::{IdleState, idle_driver, idle_states};
    use crate::fixture::Fixture;
    use plan::CpuId;

    #[test]
    fn states_are_numbered_not_spelled() {
        let folder = "sys/devices/system/cpu/cpu0/cpuidle";
        let state = |fixture: Fixture, number: u32, name: &str, us: u32, disable: &str| {
            fixture
                .file(&format!("{folder}/state{number}/name"), name)
                .file(&format!("{folder}/state{number}/latency"), &us.to_string())
                .file(&format!("{folder}/state{number}/disable"), disable)
        };
        let fixture = state(state(state(Fixture::new(), 10, "C10", 200, "1\n"), 2, "C1E", 10, "0\n"), 0, "POLL", 0, "");
        let of = |name: &str, exit_us, disabled| IdleState { name: name.to_owned(), exit_us, disabled };
        let wanted = [of("POLL", 0, false), of("C1E", 10, false), of("C10", 200, true)];
        assert_eq!(idle_states(&fixture.root(), CpuId(0)), wanted);
        assert!(idle_states(&fixture.root(), CpuId(1)).is_empty());
    }

    #[test]
    fn no_driver_is_no_name() {
        let driver =
            |text| idle_driver(&Fixture::new().file("sys/devices/system/cpu/cpuidle/current_driver", text).root());
        assert_eq!(driver("intel_idle\n").as_deref(), Some("intel_idle"));
        assert_eq!((driver("none\n"), idle_driver(&Fixture::new().root())), (None, None));
    }
}

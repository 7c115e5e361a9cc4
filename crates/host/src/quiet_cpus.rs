//! CPUs that the kernel was told to keep its own work and other processes away from.

use crate::cmdline::{command_line_is_shown, kernel_parameter};
use crate::cpu_list::parse_cpu_list;
use crate::root::Root;
use std::collections::BTreeSet;

/// Which CPUs are spared what. A set is `None` where this kernel cannot do it, does not show it, or says it in a
/// notation unknown here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuietCpus {
    /// `isolcpus`: the scheduler places nothing there on its own.
    pub isolated: Option<BTreeSet<u32>>,
    /// `nohz_full`: the tick stops while one task runs.
    pub nohz_full: Option<BTreeSet<u32>>,
    /// `rcu_nocbs`, and every CPU of `nohz_full`: RCU callbacks run in a thread that may be elsewhere. An empty set
    /// also stands for a kernel that cannot.
    pub rcu_nocbs: Option<BTreeSet<u32>>,
}

/// Reads `/sys/devices/system/cpu` and the command line.
///
/// # References
/// `Documentation/ABI/testing/sysfs-devices-system-cpu`; `Documentation/admin-guide/kernel-parameters.txt`, `isolcpus`,
/// `nohz_full`, `rcu_nocbs`.
pub fn quiet_cpus(root: &Root) -> QuietCpus {
    // Where none was given, the kernel prints a set that it never made.
    let list = |text: String| if text == "(null)" { Some(BTreeSet::new()) } else { parse_cpu_list(&text) };
    let of = |name: &str| root.text(&format!("sys/devices/system/cpu/{name}")).and_then(list);
    let nohz_full = of("nohz_full");
    let mut rcu_nocbs = match kernel_parameter(root, "rcu_nocbs").as_deref() {
        Some("all") => of("possible").or_else(|| of("online")),
        Some(given) => parse_cpu_list(given),
        None => command_line_is_shown(root).then(BTreeSet::new),
    };
    if let (Some(all), Some(more)) = (&mut rcu_nocbs, &nohz_full) {
        all.extend(more);
    }
    QuietCpus { isolated: of("isolated"), nohz_full, rcu_nocbs }
}

#[cfg(test)]
mod tests {
    use super::{QuietCpus, quiet_cpus};
    use crate::fixture::Fixture;

    #[test]
    fn each_is_read_from_where_the_kernel_says_it() {
        let fixture = Fixture::new()
            .file("sys/devices/system/cpu/isolated", "2-3\n")
            .file("sys/devices/system/cpu/nohz_full", "3\n")
            .file("proc/cmdline", "isolcpus=2-3 nohz_full=3 rcu_nocbs=2\n");
        let seen = quiet_cpus(&fixture.root());
        let set = |cpus: &[u32]| Some(cpus.iter().copied().collect());
        assert_eq!(seen, QuietCpus { isolated: set(&[2, 3]), nohz_full: set(&[3]), rcu_nocbs: set(&[2, 3]) });
    }

    #[test]
    fn none_is_an_empty_set_and_what_the_kernel_lacks_is_not() {
        let fixture = Fixture::new()
            .file("sys/devices/system/cpu/isolated", "\n")
            .file("sys/devices/system/cpu/nohz_full", "(null)\n")
            .file("proc/cmdline", "quiet\n");
        let none = Some([].into());
        let seen = quiet_cpus(&fixture.root());
        assert_eq!(seen, QuietCpus { isolated: none.clone(), nohz_full: none.clone(), rcu_nocbs: none.clone() });
        let silent = quiet_cpus(&Fixture::new().root());
        assert_eq!(silent, QuietCpus::default());
    }

    #[test]
    fn callbacks_can_be_moved_from_all_cpus_and_in_notations_that_are_not_read() {
        let with = |value: &str| {
            let line = format!("rcu_nocbs={value}\n");
            quiet_cpus(&Fixture::new().online("0-1").file("proc/cmdline", &line).root()).rcu_nocbs
        };
        assert_eq!(with("all"), Some([0, 1].into()));
        assert_eq!(with("1-N"), None);
    }
}

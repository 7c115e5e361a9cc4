//! Which performance-monitoring unit counts for a CPU where the machine has several kinds of core.

use crate::cpu_list::parse_cpu_list;
use crate::root::Root;
use plan::CpuId;

/// The perf type number of the core PMU that serves `cpu`, on a machine with more than one kind of core; `None` on all
/// others, where generic events need no such number. It goes into bits 63:32 of a generic event's `config`: without it
/// the kernel picks one kind of core, and an event never runs on the other.
///
/// # References
/// perf_event_open(2), PERF_PMU_TYPE_SHIFT; `tools/perf/Documentation/intel-hybrid.txt`.
pub fn core_pmu_type(root: &Root, cpu: CpuId) -> Option<u32> {
    let folder = "sys/bus/event_source/devices";
    let is_core = |name: &String| name.starts_with("cpu_") || name.starts_with("armv");
    let serving: Vec<String> = root.names(folder).into_iter().filter(is_core).collect();
    if serving.len() < 2 {
        return None;
    }
    let serves = |name: &&String| {
        let cpus = root.text(&format!("{folder}/{name}/cpus")).and_then(|text| parse_cpu_list(&text));
        cpus.is_some_and(|cpus| cpus.contains(&cpu.0))
    };
    root.number(&format!("{folder}/{}/type", serving.iter().find(serves)?))
}

#[cfg(test)]
mod tests {
    use super::core_pmu_type;
    use crate::fixture::Fixture;
    use plan::CpuId;

    #[test]
    fn hybrid_machines_have_a_unit_for_each_kind_of_core() {
        let devices = "sys/bus/event_source/devices";
        let fixture = Fixture::new()
            .file(&format!("{devices}/cpu_core/cpus"), "0-3\n")
            .file(&format!("{devices}/cpu_core/type"), "4\n")
            .file(&format!("{devices}/cpu_atom/cpus"), "4-7\n")
            .file(&format!("{devices}/cpu_atom/type"), "10\n")
            .file(&format!("{devices}/msr/type"), "11\n");
        let of = |cpu| core_pmu_type(&fixture.root(), CpuId(cpu));
        assert_eq!((of(3), of(4), of(9)), (Some(4), Some(10), None));
    }

    #[test]
    fn one_kind_of_core_needs_no_number() {
        let fixture = Fixture::new().file("sys/bus/event_source/devices/cpu/type", "4\n");
        assert_eq!(core_pmu_type(&fixture.root(), CpuId(0)), None);
    }
}

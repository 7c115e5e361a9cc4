//! The caches that hold a CPU's data.

use crate::cpu_list::parse_cpu_list;
use crate::root::Root;
use plan::CpuId;
use std::collections::BTreeSet;

/// One cache, as it serves one CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// 1 is nearest to the core.
    pub level: u32,
    /// Its whole size; `None` where the kernel does not say.
    pub bytes: Option<u64>,
    /// Lines a set; `None` where the kernel does not say, or says 0, with which Arm firmware leaves it open.
    pub ways: Option<u32>,
    /// Its line, the unit that moves between caches; `None` where the kernel does not say.
    pub line_bytes: Option<u32>,
    /// The CPUs that share it, this one included; empty where the kernel does not say.
    pub shared_by: BTreeSet<u32>,
}

/// The data and unified caches of `cpu`, nearest first; none where sysfs does not describe them, as in many containers
/// and virtual machines. Under a hypervisor they are what it chose to describe.
///
/// # References
/// `Documentation/ABI/testing/sysfs-devices-system-cpu`, cache/index*.
pub fn data_caches(root: &Root, cpu: CpuId) -> Vec<Cache> {
    let folder = format!("sys/devices/system/cpu/cpu{}/cache", cpu.0);
    let read = |index: &String| {
        let file = |name: &str| root.text(&format!("{folder}/{index}/{name}"));
        if file("type").as_deref() == Some("Instruction") {
            return None;
        }
        Some(Cache {
            level: file("level")?.parse().ok()?,
            bytes: file("size").and_then(|size| bytes(&size)),
            ways: file("ways_of_associativity").and_then(|text| text.parse().ok()).filter(|ways| *ways > 0),
            line_bytes: file("coherency_line_size").and_then(|text| text.parse().ok()).filter(|bytes| *bytes > 0),
            shared_by: file("shared_cpu_list").and_then(|list| parse_cpu_list(&list)).unwrap_or_default(),
        })
    };
    let indices = root.names(&folder).into_iter().filter(|name| name.starts_with("index"));
    let mut caches: Vec<Cache> = indices.filter_map(|index| read(&index)).collect();
    caches.sort_by_key(|cache| cache.level);
    caches
}

/// The kernel writes `32768K`; nothing else has been seen, and nothing else is guessed at.
fn bytes(size: &str) -> Option<u64> {
    size.strip_suffix('K')?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::data_caches;
    use crate::fixture::Fixture;
    use plan::CpuId;

    #[test]
    fn data_caches_are_read_nearest_first_and_instruction_caches_left_out() {
        let folder = "sys/devices/system/cpu/cpu1/cache";
        let fixture = Fixture::new().caches(1, &[(3, "Unified", "0-7"), (1, "Instruction", "1"), (1, "Data", "1")]);
        let fixture = fixture.file(&format!("{folder}/index0/size"), "32768K\n");
        let fixture = fixture.file(&format!("{folder}/index2/size"), "48K\n");
        let fixture = fixture.file(&format!("{folder}/index2/coherency_line_size"), "64\n");
        let fixture = fixture.file(&format!("{folder}/index2/ways_of_associativity"), "12\n");
        let fixture = fixture.file(&format!("{folder}/index0/ways_of_associativity"), "0\n");
        let seen = data_caches(&fixture.root(), CpuId(1));
        let of: Vec<_> = seen.iter().map(|c| (c.level, c.bytes, c.line_bytes, c.shared_by.len())).collect();
        assert_eq!(of, [(1, Some(49_152), Some(64), 1), (3, Some(33_554_432), None, 8)]);
        assert_eq!(seen.iter().map(|c| c.ways).collect::<Vec<_>>(), [Some(12), None]);
        assert!(data_caches(&fixture.root(), CpuId(0)).is_empty());
    }

    #[test]
    fn what_is_not_said_stays_open() {
        let fixture = Fixture::new().file("sys/devices/system/cpu/cpu0/cache/index0/level", "2\n");
        let fixture = fixture.file("sys/devices/system/cpu/cpu0/cache/index0/size", "1M\n");
        let seen = data_caches(&fixture.root(), CpuId(0));
        assert_eq!((seen.len(), seen[0].bytes, seen[0].shared_by.len()), (1, None, 0));
    }
}

//! perf's names of generic events: what of the kernel's each stands for.

/// A generic event: `type` and `config` as `linux/perf_event.h` numbers them.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Generic {
    pub(crate) kind: u32,
    pub(crate) config: u64,
}

/// `enum perf_type_id` of `linux/perf_event.h`. A wrong number would count another event under the name.
pub(crate) const HARDWARE: u32 = 0;
pub(crate) const SOFTWARE: u32 = 1;
pub(crate) const TRACEPOINT: u32 = 2;
pub(crate) const CACHE: u32 = 3;
pub(crate) const RAW: u32 = 4;

/// `enum perf_hw_id` of `linux/perf_event.h`; position is number.
const HARDWARE_NAMES: [&[&str]; 10] = [
    &["cycles", "cpu-cycles"],
    &["instructions"],
    &["cache-references"],
    &["cache-misses"],
    &["branches", "branch-instructions"],
    &["branch-misses"],
    &["bus-cycles"],
    &["stalled-cycles-frontend", "idle-cycles-frontend"],
    &["stalled-cycles-backend", "idle-cycles-backend"],
    &["ref-cycles"],
];

/// `enum perf_sw_ids` of `linux/perf_event.h`; position is number.
const SOFTWARE_NAMES: [&[&str]; 12] = [
    &["cpu-clock"],
    &["task-clock"],
    &["page-faults", "faults"],
    &["context-switches", "cs"],
    &["cpu-migrations", "migrations"],
    &["minor-faults"],
    &["major-faults"],
    &["alignment-faults"],
    &["emulation-faults"],
    &["dummy"],
    &["bpf-output"],
    &["cgroup-switches"],
];

/// Software events that the kernel raises while it switches tasks: in user mode alone they are never seen.
const IN_THE_KERNEL: [u64; 3] = [3, 4, 11];

/// A generic cache: its names, and whether it has reads, writes and prefetches. Position is number.
type Cache = (&'static [&'static str], [bool; 3]);

/// `enum perf_hw_cache_id` of `linux/perf_event.h`; names and operations as perf takes them (`evsel__hw_cache` and
/// `evsel__hw_cache_stat` in `tools/perf/util/evsel.c`).
const CACHES: [Cache; 7] = [
    (&["L1-dcache", "l1-d", "l1d", "L1-data"], [true, true, true]),
    (&["L1-icache", "l1-i", "l1i", "L1-instruction"], [true, false, true]),
    (&["LLC", "L2"], [true, true, true]),
    (&["dTLB", "d-tlb", "Data-TLB"], [true, true, true]),
    (&["iTLB", "i-tlb", "Instruction-TLB"], [true, false, false]),
    (&["branch", "branches", "bpu", "btb", "bpc"], [true, false, false]),
    (&["node"], [true, true, true]),
];

/// `enum perf_hw_cache_op_id`: all accesses of a kind, then the word before `-misses`, then other spellings.
const OPERATIONS: [&[&str]; 3] = [
    &["loads", "load", "read"],
    &["stores", "store", "write"],
    &["prefetches", "prefetch", "speculative-read", "speculative-load"],
];

/// `enum perf_hw_cache_op_result_id`.
const RESULTS: [&[&str]; 2] = [&["refs", "Reference", "ops", "access"], &["misses", "miss"]];

/// The event that perf means by `name`, letters' case aside.
pub(crate) fn generic(name: &str) -> Option<Generic> {
    let among =
        |names: &[&[&str]]| names.iter().position(|aliases| aliases.iter().any(|a| a.eq_ignore_ascii_case(name)));
    if let Some(config) = among(&HARDWARE_NAMES) {
        return Some(Generic { kind: HARDWARE, config: config as u64 });
    }
    if let Some(config) = among(&SOFTWARE_NAMES) {
        return Some(Generic { kind: SOFTWARE, config: config as u64 });
    }
    cache(name).map(|config| Generic { kind: CACHE, config })
}

/// Whether the event happens in the kernel alone, so that user mode alone would always read 0.
pub(crate) fn is_in_kernel_alone(generic: Generic) -> bool {
    generic.kind == SOFTWARE && IN_THE_KERNEL.contains(&generic.config)
}

/// Whether `name` is of perf's way to name cache events, though perhaps of none that there is: `L1-icache-stores`.
pub(crate) fn is_of_a_cache(name: &str) -> bool {
    CACHES.iter().flat_map(|(names, _)| *names).any(|cache| stripped(name, cache).is_some_and(|r| r.starts_with('-')))
}

/// `config` of CACHE, CACHE-OPERATION, CACHE-RESULT, or both in either order. Without an operation reads are meant,
/// without a result all accesses.
fn cache(name: &str) -> Option<u64> {
    let all = CACHES.iter().enumerate().flat_map(|(id, (names, has))| names.iter().map(move |name| (id, *name, has)));
    // The longest name first: `l1-d` begins `l1-dcache` too, and `branch` begins `branches`.
    let begun = all.filter_map(|(id, cache, has)| Some((cache.len(), id, has, stripped(name, cache)?)));
    let (_, id, has, rest) =
        begun.filter(|(_, _, _, rest)| rest.is_empty() || rest.starts_with('-')).max_by_key(|b| b.0)?;
    let (operation, result) = match rest.strip_prefix('-') {
        None => (0, 0),
        Some(words) => operation_and_result(words)?,
    };
    has[operation].then_some(id as u64 | (operation as u64) << 8 | (result as u64) << 16)
}

fn operation_and_result(words: &str) -> Option<(usize, usize)> {
    let of = |names: &[&[&str]], word: &str| {
        names.iter().position(|names| names.iter().any(|n| n.eq_ignore_ascii_case(word)))
    };
    if let Some(operation) = of(&OPERATIONS, words) {
        return Some((operation, 0));
    }
    if let Some(result) = of(&RESULTS, words) {
        return Some((0, result));
    }
    let cuts = words.match_indices('-').map(|(at, _)| (&words[..at], &words[at + 1..]));
    let both = |(a, b): (&str, &str)| match (of(&OPERATIONS, a), of(&RESULTS, b)) {
        (Some(operation), Some(result)) => Some((operation, result)),
        _ => Some((of(&OPERATIONS, b)?, of(&RESULTS, a)?)),
    };
    cuts.into_iter().find_map(both)
}

/// `name` without `prefix`, letters' case aside.
fn stripped<'n>(name: &'n str, prefix: &str) -> Option<&'n str> {
    let head = name.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &name[prefix.len()..])
}

/// Every name worth offering: all hardware and software names, and the usual spelling of each cache event.
pub(crate) fn all() -> Vec<String> {
    let plain = HARDWARE_NAMES.iter().chain(&SOFTWARE_NAMES).flat_map(|names| names.iter().map(|n| (*n).to_owned()));
    let caches = CACHES.iter().flat_map(|(names, has)| {
        let known = OPERATIONS.iter().zip(has).filter(|(_, has)| **has);
        known.flat_map(|(op, _)| [format!("{}-{}", names[0], op[0]), format!("{}-{}-misses", names[0], op[1])])
    });
    plain.chain(caches).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(name: &str) -> Option<(u32, u64)> {
        generic(name).map(|generic| (generic.kind, generic.config))
    }

    #[test]
    fn hardware_and_software_names_have_their_aliases() {
        for (a, b, wanted) in [
            ("cycles", "cpu-cycles", (0, 0)),
            ("branches", "branch-instructions", (0, 4)),
            ("stalled-cycles-frontend", "idle-cycles-frontend", (0, 7)),
            ("stalled-cycles-backend", "Idle-Cycles-Backend", (0, 8)),
            ("page-faults", "faults", (1, 2)),
            ("context-switches", "cs", (1, 3)),
            ("cpu-migrations", "migrations", (1, 4)),
        ] {
            assert_eq!((config(a), config(b)), (Some(wanted), Some(wanted)), "{a} {b}");
        }
        assert_eq!((config("ref-cycles"), config("cgroup-switches")), (Some((0, 9)), Some((1, 11))));
    }

    #[test]
    fn cache_events_are_cache_operation_and_result() {
        for (name, wanted) in [
            ("L1-dcache-loads", 0x0),
            ("L1-dcache-load-misses", 0x10000),
            ("l1d-read-miss", 0x10000),
            ("L1-dcache-misses", 0x10000),
            ("l1d-misses-load", 0x10000),
            ("LLC", 0x2),
            ("LLC-stores", 0x102),
            ("LLC-prefetch-misses", 0x10202),
            ("l1-data-speculative-read-refs", 0x200),
            ("dTLB-prefetches", 0x203),
            ("iTLB-load-misses", 0x10004),
            ("branch-load-misses", 0x10005),
            ("branches-loads", 0x5),
            ("bpu-loads", 0x5),
            ("node-store-misses", 0x10106),
        ] {
            assert_eq!(config(name), Some((CACHE, wanted)), "{name}");
        }
        for name in ["L1-icache-stores", "iTLB-stores", "branch-prefetches", "LLC-", "LLC-lots", "LLC-load-load", "L3"]
        {
            assert_eq!(config(name), None, "{name}");
        }
    }

    #[test]
    fn every_offered_name_is_known() {
        let unknown: Vec<String> = all().into_iter().filter(|name| generic(name).is_none()).collect();
        assert_eq!(unknown, [""; 0]);
        assert!(all().len() > 50);
    }
}

//! The screen of `topology`: a tree of CPUs, and where they were measured a matrix of times between them, the same as
//! shades, and what lies at each distance.

use crate::report::figures::{NONE, plain, plural};
use crate::report::page::{Page, Shade};
use crate::report::style::{Style, Tone};
use crate::report::table::{Cell, Column, Grid, Notes, Row, head};
use record::{CacheRow, CostProbe, CpuRow, PairLatency, Topology};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Cores of one last level that each get a line of their own; more are counted.
const CORES_SHOWN: usize = 8;
/// Pairs that are listed one by one; more are in the JSON.
const PAIRS_SHOWN: usize = 28;
/// From the nearest to the farthest.
const SHADES: [char; 6] = ['.', ':', '+', '*', '#', '@'];

/// The screen. Lines take at most the style's width. `written` is the machine file that was made.
pub(crate) fn render(topology: &Topology, written: Option<&Path>, style: &Style) -> String {
    let mut page = Page::new(style);
    tree(&mut page, topology);
    if !topology.latency_ns.is_empty() {
        matrix(&mut page, topology);
        heat_map(&mut page, topology, style);
        pairs(&mut page, topology);
        distances(&mut page, topology);
        costs(&mut page, topology);
        adjacent_line(&mut page, topology);
    }
    if let Some(path) = written {
        page.blank();
        page.prose(&format!("This machine is in {}: `--machine` takes it.", path.display()));
    }
    page.finish()
}

/// Sockets, NUMA nodes, last levels, cores, threads: each below what it is part of.
fn tree(page: &mut Page<'_>, topology: &Topology) {
    let hypervisor = topology.hypervisor.as_ref();
    let of = hypervisor.map_or(String::new(), |name| format!(", as {name} describes them"));
    page.prose(&format!("{}: {}{of}", topology.cpu_model, plural(topology.cpus.len() as u64, "CPU")));
    for (socket, cpus) in grouped(topology.cpus.iter(), |cpu| cpu.socket) {
        page.item(0, "", &format!("socket {socket}: {}", cpu_list(&cpus)));
        let nodes = grouped(cpus.iter().copied(), |cpu| cpu.node);
        for (node, cpus) in &nodes {
            page.item(2, "", &format!("NUMA node {node}: {}", cpu_list(cpus)));
            for (_, cpus) in grouped(cpus.iter().copied(), |cpu| cpu.llc) {
                last_level(page, topology, &cpus);
            }
        }
    }
    let hidden = topology.cpus.iter().filter(|cpu| !cpu.usable).count() as u64;
    if hidden > 0 {
        page.prose(&format!("{} of these may not be used by this process.", plural(hidden, "CPU")));
    }
}

fn last_level(page: &mut Page<'_>, topology: &Topology, cpus: &[&CpuRow]) {
    let top = topology.caches.iter().map(|cache| cache.level).max().unwrap_or(0);
    let shared = cpus.first().and_then(|cpu| cache_of(topology, cpu.id, top)).filter(|cache| cache.level > 2);
    let what = shared.map_or("one last level, not described".to_owned(), described);
    page.item(4, "", &format!("{what}: {}", cpu_list(cpus)));
    let cores = grouped(cpus.iter().copied(), |cpu| cpu.core);
    let own = |cpu: &CpuRow| {
        let private = [1, 2].iter().filter_map(|level| cache_of(topology, cpu.id, *level)).map(described);
        private.collect::<Vec<_>>().join(", ")
    };
    if cores.len() <= CORES_SHOWN {
        for (core, threads) in &cores {
            let own = threads.first().map(|cpu| own(cpu)).filter(|own| !own.is_empty());
            let own = own.map_or(String::new(), |own| format!(" ({own})"));
            page.item(6, "", &format!("core {core}: {}{own}", cpu_list(threads)));
        }
        return;
    }
    // Cores that differ, as those of a hybrid processor do, are told apart.
    let mut kinds: BTreeMap<(usize, String), usize> = BTreeMap::new();
    for threads in cores.values() {
        *kinds.entry((threads.len(), threads.first().map_or(String::new(), |cpu| own(cpu)))).or_default() += 1;
    }
    for ((threads, own), count) in kinds {
        let each = if own.is_empty() { String::new() } else { format!(", each {own}") };
        page.item(6, "", &format!("{} of {}{each}", plural(count as u64, "core"), plural(threads as u64, "thread")));
    }
}

fn grouped<'a>(
    cpus: impl Iterator<Item = &'a CpuRow>,
    group: impl Fn(&CpuRow) -> u32,
) -> BTreeMap<u32, Vec<&'a CpuRow>> {
    let mut groups: BTreeMap<u32, Vec<&CpuRow>> = BTreeMap::new();
    cpus.for_each(|cpu| groups.entry(group(cpu)).or_default().push(cpu));
    groups
}

fn cpu_list(cpus: &[&CpuRow]) -> String {
    let ids: BTreeSet<u32> = cpus.iter().map(|cpu| cpu.id).collect();
    format!("{} {}", if ids.len() == 1 { "CPU" } else { "CPUs" }, host::format_cpu_list(&ids))
}

fn cache_of(topology: &Topology, cpu: u32, level: u32) -> Option<&CacheRow> {
    let serves = |cache: &&CacheRow| host::parse_cpu_list(&cache.cpus).is_some_and(|cpus| cpus.contains(&cpu));
    topology.caches.iter().filter(|cache| cache.level == level).find(serves)
}

/// `L2 1 MiB 16 ways`.
fn described(cache: &CacheRow) -> String {
    let size = cache.bytes.map_or(String::new(), |bytes| match bytes / 1024 {
        kib if kib >= 1024 && kib.is_multiple_of(256) => format!(" {}\u{a0}MiB", plain(kib as f64 / 1024.0)),
        kib => format!(" {kib}\u{a0}KiB"),
    });
    let ways = cache.ways.map_or(String::new(), |ways| format!(" {ways}\u{a0}ways"));
    format!("L{}{size}{ways}", cache.level)
}

/// The measured CPUs, and the median of each pair.
struct Matrix<'a> {
    cpus: Vec<u32>,
    pairs: BTreeMap<(u32, u32), &'a PairLatency>,
}

impl<'a> Matrix<'a> {
    fn of(topology: &'a Topology) -> Matrix<'a> {
        let pairs: BTreeMap<(u32, u32), &PairLatency> =
            topology.latency_ns.iter().map(|pair| ((pair.from, pair.to), pair)).collect();
        let cpus: BTreeSet<u32> = pairs.keys().flat_map(|(from, to)| [*from, *to]).collect();
        Matrix { cpus: cpus.into_iter().collect(), pairs }
    }

    fn median(&self, a: u32, b: u32) -> Option<f64> {
        self.pairs.get(&(a.min(b), a.max(b))).map(|pair| pair.median)
    }
}

fn matrix(page: &mut Page<'_>, topology: &Topology) {
    let matrix = Matrix::of(topology);
    page.heading("One way of a line between two processes, ns, medians");
    let columns = matrix.cpus.iter().map(|cpu| Column::figures(format!("to {cpu}"), cpu.to_string()));
    let mut grid = Grid { columns: std::iter::once(Column::words("CPU")).chain(columns).collect(), rows: Vec::new() };
    for from in &matrix.cpus {
        let cells = matrix.cpus.iter().map(|to| match matrix.median(*from, *to) {
            Some(median) => Cell::text(plain(median)),
            None if from == to => Cell::text(""),
            None => Cell::text(NONE),
        });
        grid.rows.push(Row::new(std::iter::once(Cell::text(from.to_string())).chain(cells).collect()));
    }
    page.grid_in_bands(grid, 1, &Notes::default());
    if let Some(sample) = &topology.sample {
        page.legend(&format!(
            "{} of {} that this process could measure, {} each. CPUs {}: {}.",
            plural(sample.pairs.into(), "pair"),
            sample.of,
            plural(sample.repetitions.into(), "time"),
            sample.cpus,
            sample.why
        ));
    }
}

/// The matrix as shades: the range in as many steps as there are shades, each as many times as long as the one before.
fn heat_map(page: &mut Page<'_>, topology: &Topology, style: &Style) {
    let matrix = Matrix::of(topology);
    let medians = || topology.latency_ns.iter().map(|pair| pair.median);
    let (Some(low), Some(high)) = (medians().reduce(f64::min), medians().reduce(f64::max)) else { return };
    let scale = Scale { low, high };
    page.heading("The same as a heat map");
    let label = matrix.cpus.iter().map(|cpu| cpu.to_string().len()).max().unwrap_or(1);
    // Two columns a shade where there is room: then a square looks like one.
    let room = style.width().saturating_sub(label + 1);
    let wide = if 2 * matrix.cpus.len() <= room { 2 } else { 1 };
    for band in matrix.cpus.chunks((room / wide).max(1)) {
        if band.len() < matrix.cpus.len() {
            page.prose(&format!("to CPUs {} to {}", band[0], band[band.len() - 1]));
        }
        for from in &matrix.cpus {
            let shades = band.iter().map(|to| match matrix.median(*from, *to) {
                Some(median) => shade(scale.step(median)),
                None => Shade { sign: if from == to { ' ' } else { '?' }, tone: None },
            });
            page.shades(&format!("{from:>label$} "), &shades.collect::<Vec<_>>(), wide);
        }
    }
    page.legend(&scale.legend());
}

fn shade(step: usize) -> Shade {
    let tone = [Tone::Good, Tone::Caution, Tone::Bad][step * 3 / SHADES.len()];
    Shade { sign: SHADES[step], tone: Some(tone) }
}

struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    /// Which shade, from 0; all are the first where nothing differs by a tenth.
    fn step(&self, ns: f64) -> usize {
        if self.steps() == 1 {
            return 0;
        }
        let share = (ns / self.low).ln() / (self.high / self.low).ln();
        ((share * SHADES.len() as f64) as usize).min(SHADES.len() - 1)
    }

    fn steps(&self) -> usize {
        if self.high < 1.1 * self.low { 1 } else { SHADES.len() }
    }

    fn legend(&self) -> String {
        if self.steps() == 1 {
            return format!(
                "{} {} to {} ns: no pair is much farther than another",
                SHADES[0],
                plain(self.low),
                plain(self.high)
            );
        }
        let from = |step: usize| self.low * (self.high / self.low).powf(step as f64 / SHADES.len() as f64);
        let parts = SHADES.iter().enumerate().map(|(step, sign)| format!("{sign} from {}", plain(from(step))));
        format!("{} ns; up to {} ns", parts.collect::<Vec<_>>().join(", "), plain(self.high))
    }
}

fn pairs(page: &mut Page<'_>, topology: &Topology) {
    page.heading("Spread of each pair");
    if topology.latency_ns.len() > PAIRS_SHOWN {
        let widest = topology.latency_ns.iter().max_by(|a, b| (a.max / a.min).total_cmp(&(b.max / b.min)));
        if let Some(pair) = widest {
            page.prose(&format!(
                "{} in all: `--json` has each. The widest is CPUs {} and {}: {} ns, {} to {}.",
                plural(topology.latency_ns.len() as u64, "pair"),
                pair.from,
                pair.to,
                plain(pair.median),
                plain(pair.min),
                plain(pair.max)
            ));
        }
        return;
    }
    let mut notes = Notes::default();
    let columns = vec![
        Column::words("CPUs"),
        Column::words("distance"),
        Column::figures("one way", head("one way", "ns")),
        Column::figures("least", head("least", "ns")),
        Column::figures("most", head("most", "ns")),
        Column::figures("contended", head("contended", "ns")),
        Column::figures("tenure", head("tenure", "ns")),
    ];
    let mut grid = Grid { columns, rows: Vec::new() };
    for pair in &topology.latency_ns {
        grid.rows.push(Row::new(vec![
            Cell::text(format!("{}, {}", pair.from, pair.to)),
            Cell::text(&pair.distance),
            Cell::text(plain(pair.median)),
            Cell::text(plain(pair.min)),
            Cell::text(plain(pair.max)),
            figure(pair.contended_ns, &mut notes),
            figure(pair.tenure_ns, &mut notes),
        ]));
    }
    page.grid(&grid, &notes);
}

fn distances(page: &mut Page<'_>, topology: &Topology) {
    page.heading("By distance: medians over the pairs");
    let mut notes = Notes::default();
    let columns = vec![
        Column::words("distance"),
        Column::figures("pairs", "pairs"),
        Column::figures("one way", head("one way", "ns")),
        Column::figures("contended", head("contended", "ns")),
        Column::figures("fetch", head("fetch", "ns")),
        Column::figures("tenure", head("tenure", "ns")),
    ];
    let mut grid = Grid { columns, rows: Vec::new() };
    for row in &topology.distances {
        grid.rows.push(Row::new(vec![
            Cell::text(&row.distance),
            Cell::text(row.pairs.to_string()),
            Cell::text(plain(row.transfer_ns)),
            figure(row.contended_ns, &mut notes),
            figure(row.fetch_ns, &mut notes),
            figure(row.tenure_ns, &mut notes),
        ]));
    }
    page.grid(&grid, &notes);
    page.legend(
        "distance: what two CPUs share: a core, the cluster of a last level, a socket, the machine. contended: a bump while \
         both CPUs count up words of one line. fetch: from asking for a line that the other CPU has to having it; tenure: \
         how long a CPU keeps it meanwhile; both worked out from the two that are measured.",
    );
}

fn figure(ns: Option<f64>, notes: &mut Notes) -> Cell {
    match ns {
        Some(ns) => Cell::text(plain(ns)),
        None => notes.missing("evictions left too little time in which both CPUs ran: measure again".to_owned()),
    }
}

fn costs(page: &mut Page<'_>, topology: &Topology) {
    let Some(costs) = &topology.costs else { return };
    page.heading("What operations cost, ns, medians over these CPUs");
    let CostProbe { load_ns, store_ns, bump_ns, atomic_ns, fence_ns, pause_ns, flush_ns, .. } = *costs;
    let CostProbe { instruction_ns, clock_ns, syscall_ns, futex_ns, wake_ns, l1_ns, l2_ns, llc_ns, memory_ns, .. } =
        *costs;
    let line = |figures: &[(&str, Option<f64>)]| {
        let parts = figures.iter().map(|(name, ns)| format!("{name}\u{a0}{}", ns.map_or(NONE.to_owned(), plain)));
        parts.collect::<Vec<_>>().join(", ")
    };
    let loops = [
        ("load", load_ns),
        ("store", store_ns),
        ("bump", bump_ns),
        ("add", atomic_ns),
        ("fence", fence_ns),
        ("pause", pause_ns),
        ("flush", flush_ns),
    ];
    page.prose(&format!("in a loop of their own: {}", line(&loops)));
    page.prose(&format!(
        "one after the other: {}",
        line(&[
            ("instruction", instruction_ns),
            ("clock\u{a0}read", clock_ns),
            ("system\u{a0}call", syscall_ns),
            ("futex\u{a0}call", futex_ns),
            ("waking\u{a0}a\u{a0}sleeper", wake_ns)
        ])
    ));
    page.prose(&format!(
        "a load that waits for the one before, served by: {}",
        line(&[("L1", l1_ns), ("L2", l2_ns), ("last\u{a0}level", llc_ns), ("memory", memory_ns)])
    ));
}

fn adjacent_line(page: &mut Page<'_>, topology: &Topology) {
    page.heading("Two lines of a 128-byte pair");
    let Some(seen) = &topology.adjacent_line else {
        page.prose("Not told: a placement has no figure. Measure again with nothing else on these CPUs.");
        return;
    };
    let verdict = match seen.matters {
        true => "they disturb each other: keep what different CPUs write 128 bytes apart",
        false => "no sign that they disturb each other: 64 bytes of room are enough",
    };
    page.prose(&format!(
        "{verdict}. Two workers that flush their own line in each pass took {} ns a pass on the lines of a pair, {} ns on \
         neighbouring lines of two pairs, {} ns on lines 256 bytes apart.",
        plain(seen.pair_ns),
        plain(seen.across_ns),
        plain(seen.apart_ns)
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::style::ColourChoice;
    use crate::report::text::columns;
    use record::{AdjacentLine, DistanceRow, PairSample, SCHEMA_VERSION};

    /// A socket of clusters of `cores` cores; all pairs measured.
    fn measured(clusters: u32, cores: u32) -> Topology {
        let count = clusters * cores;
        let cpu = |id: u32| CpuRow { id, core: id, llc: id / cores, node: 0, socket: 0, usable: true };
        let cache = |level, bytes, cpus: String| CacheRow {
            level,
            bytes: Some(bytes),
            ways: Some(8),
            line_bytes: Some(64),
            cpus,
        };
        let private = (0..count).map(|id| cache(1, 48 << 10, id.to_string()));
        let shared = (0..clusters).map(|c| cache(3, 32 << 20, format!("{}-{}", c * cores, (c + 1) * cores - 1)));
        let pair = |from: u32, to: u32| {
            let (distance, median) = if from / cores == to / cores { ("cluster", 23.0) } else { ("socket", 107.0) };
            PairLatency {
                from,
                to,
                distance: distance.to_owned(),
                median,
                min: median - 1.5,
                max: median + 30.0,
                readings: 20,
                contended_ns: (to != 1).then_some(4.25),
                fetch_ns: Some(median / 1.5),
                tenure_ns: (to != 1).then_some(3.0),
            }
        };
        let latency_ns: Vec<PairLatency> =
            (0..count).flat_map(|from| (from + 1..count).map(move |to| pair(from, to))).collect();
        let row = |distance: &str, transfer_ns| DistanceRow {
            distance: distance.to_owned(),
            pairs: 3,
            transfer_ns,
            contended_ns: Some(4.25),
            fetch_ns: Some(transfer_ns / 1.5),
            tenure_ns: None,
        };
        Topology {
            schema_version: SCHEMA_VERSION,
            cpu_model: "Some CPU \u{1b}[2J".to_owned(),
            hypervisor: Some("KVM".to_owned()),
            cpus: (0..count).map(cpu).collect(),
            caches: private.chain(shared).collect(),
            sample: Some(PairSample {
                cpus: format!("0-{}", count - 1),
                pairs: latency_ns.len() as u32,
                of: latency_ns.len() as u32,
                repetitions: 10,
                why: "one thread of every core".to_owned(),
            }),
            latency_ns,
            distances: vec![row("cluster", 23.0), row("socket", 107.0)],
            costs: Some(CostProbe { load_ns: Some(0.0625), ..CostProbe::default() }),
            adjacent_line: Some(AdjacentLine { pair_ns: 310.0, across_ns: 205.0, apart_ns: 200.0, matters: true }),
        }
    }

    /// The screen with ordinary blanks, on a plain page of that width.
    fn screen(topology: &Topology, written: Option<&Path>, width: usize) -> String {
        render(topology, written, &Style::plain(width)).replace('\u{a0}', " ")
    }

    #[test]
    fn the_screen_says_each_thing_once_with_its_unit() {
        let text = screen(&measured(2, 2), Some(Path::new("host.toml")), 80);
        let expected = "\
Some CPU \\u{1b}[2J: 4 CPUs, as KVM describes them
socket 0: CPUs 0-3
  NUMA node 0: CPUs 0-3
    L3 32 MiB 8 ways: CPUs 0-1
      core 0: CPU 0 (L1 48 KiB 8 ways)
      core 1: CPU 1 (L1 48 KiB 8 ways)
    L3 32 MiB 8 ways: CPUs 2-3
      core 2: CPU 2 (L1 48 KiB 8 ways)
      core 3: CPU 3 (L1 48 KiB 8 ways)

One way of a line between two processes, ns, medians
CPU    0    1    2    3
───────────────────────
0          23  107  107
1     23       107  107
2    107  107        23
3    107  107   23
6 pairs of 6 that this process could measure, 10 times each. CPUs 0-3: one
thread of every core.

The same as a heat map
0   ..@@@@
1 ..  @@@@
2 @@@@  ..
3 @@@@..
. from 23, : from 29.7, + from 38.4, * from 49.6, # from 64.1, @ from 82.8 ns;
up to 107 ns

Spread of each pair
                one way  least  most  contended  tenure
CPUs  distance       ns     ns    ns         ns      ns
───────────────────────────────────────────────────────
0, 1  cluster        23   21.5    53       –[1]    –[1]
0, 2  socket        107    106   137       4.25       3
";
        assert!(text.starts_with(expected), "{text}");
        for part in [
            "[1] evictions left too little time in which both CPUs ran: measure again\n",
            "in a loop of their own: load 0.0625, store –,",
            "they disturb each other: keep what different CPUs write 128 bytes apart.",
            "This machine is in host.toml: `--machine` takes it.\n",
        ] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
    }

    #[test]
    fn nothing_is_wider_than_the_page_and_nothing_is_cut() {
        for (clusters, cores) in [(1, 2), (2, 8), (8, 2), (16, 8)] {
            let topology = measured(clusters, cores);
            for width in [40, 60, 80, 120] {
                let text = render(&topology, None, &Style::plain(width));
                let wide: Vec<&str> = text.lines().filter(|line| columns(line) > width).collect();
                assert!(wide.is_empty(), "{clusters} × {cores} at {width}: {wide:?}");
            }
            let text = render(&topology, None, &Style::plain(80));
            let shades = text.matches('@').count() + text.matches('.').count();
            let count = (clusters * cores) as usize;
            assert!(shades >= count * (count - 1), "each pair has its shades: {text}");
        }
    }

    #[test]
    fn colour_only_repeats_the_shades() {
        let topology = measured(2, 2);
        let coloured = render(&topology, None, &Style::decide(ColourChoice::Always, Some(80), |_| None, false));
        assert!(
            coloured.contains("\u{1b}[32m..\u{1b}[0m") && coloured.contains("\u{1b}[1;31m@@\u{1b}[0m"),
            "{coloured}"
        );
        let mut plain = coloured;
        for code in ["\u{1b}[1m", "\u{1b}[2m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[1;31m", "\u{1b}[0m"] {
            plain = plain.replace(code, "");
        }
        assert_eq!(plain, render(&topology, None, &Style::plain(80)));
    }

    #[test]
    fn equal_pairs_have_one_shade_and_the_scale_goes_from_end_to_end() {
        let even = Scale { low: 40.0, high: 43.0 };
        assert_eq!((even.step(40.0), even.step(43.0)), (0, 0));
        assert!(even.legend().contains("no pair is much farther"));
        let wide = Scale { low: 20.0, high: 200.0 };
        assert_eq!((wide.step(20.0), wide.step(63.3), wide.step(200.0)), (0, 3, 5));
    }

    #[test]
    fn without_measuring_there_is_the_tree_alone() {
        let bare = Topology { latency_ns: vec![], sample: None, costs: None, adjacent_line: None, ..measured(1, 16) };
        let text = screen(&bare, None, 80);
        assert!(text.ends_with("16 cores of 1 thread, each L1 48 KiB 8 ways\n"), "{text}");
        assert_eq!(text.lines().count(), 5, "{text}");
    }
}

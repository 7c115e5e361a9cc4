//! A machine from its file: each figure within bounds and with its source, or a refusal that names line, column and
//! cure.

use super::{CacheShape, Caches, Costs, Distance, Distances, Machine, Shape, Source};
use crate::protocol::Protocol;
use plan::CACHE_LINE_BYTES;
use toml_text::Refusal;
use toml_text::context::{Context, Kind, Place};
use toml_text::document::{self, Entry, Node, Table, Value};
use toml_text::refusal::Problem;
use toml_text::{read, words};

/// Keys at the top of the file.
const TOP: &[&str] = &["name", "title", "protocol", "source", "sources", "shape", "caches", "distance", "costs"];
/// Keys of `[shape]`.
const SHAPE: &[&str] = &["sockets", "clusters", "cores", "threads", "source", "sources"];
/// Keys of `[caches]`.
const CACHES: &[&str] = &["inclusive", "pairs", "memory_ns", "source", "sources", "l1", "l2", "llc"];
/// Keys of `[caches.l1]`, beyond which the other levels' `ns` count.
const L1: &[&str] = &["kib", "ways", "source", "sources"];
/// Keys of `[caches.l2]` and `[caches.llc]`.
const LEVEL: &[&str] = &["kib", "ways", "ns", "source", "sources"];
/// Keys of `[distance]`.
const DISTANCE: &[&str] = &["cluster", "socket", "machine"];
/// Keys of `[distance.NAME]`.
const ONE_DISTANCE: &[&str] = &["fetch_ns", "tenure_ns", "source", "sources"];
/// Keys of `[costs]`.
const COSTS: &[&str] = &[
    "load_ns",
    "store_ns",
    "bump_ns",
    "atomic_ns",
    "fence_ns",
    "pause_ns",
    "flush_ns",
    "instruction_ns",
    "clock_ns",
    "syscall_ns",
    "futex_ns",
    "wake_ns",
    "store_buffer",
    "window",
    "source",
    "sources",
];

pub(super) static KIND: Kind = Kind {
    name: "machine",
    reference: "crates/model/machines/README.md",
    if_missing: "check the path; `coordinator topology --measure --write FILE` makes a machine file of this host",
    example: "crates/model/machines/xeon-8375c-2s.toml",
    if_twice: "keep one of the two",
    depth: "three",
    sections: &[
        ("the top of the file", TOP),
        ("[shape]", SHAPE),
        ("[caches]", CACHES),
        ("[caches.l2]", LEVEL),
        ("[distance.cluster]", ONE_DISTANCE),
        ("[costs]", COSTS),
    ],
};

/// Bounds of a time, nanoseconds: from the thousandth of a cycle to a second. A waking on a busy machine takes
/// milliseconds.
pub(super) const NS: (f64, f64) = (0.001, 1e9);
/// Bounds of each number of the shape; the most CPUs of all of them together.
const COUNT: (u64, u64) = (1, 1_024);
const CPUS_MAX: u64 = 8_192;
/// Bounds of a cache's size, KiB, and of its ways.
const KIB: (u64, u64) = (1, 4 << 20);
const WAYS: (u64, u64) = (1, 1_024);
/// Bounds of the core's buffers.
const ENTRIES: (u64, u64) = (1, 4_096);

/// Turns a machine file's text into a machine; `name` is the path to show in messages.
pub(super) fn parse(name: &str, text: &str) -> Result<Machine, Refusal> {
    let mut reader = Reader { context: Context::new(&KIND, name, text, &[]), sources: Vec::new() };
    match reader.machine() {
        Some(machine) if reader.context.problems.is_empty() => Ok(machine),
        _ => Err(reader.context.into_refusal()),
    }
}

struct Reader {
    context: Context,
    sources: Vec<Source>,
}

/// A table of the file, and what messages call it.
#[derive(Copy, Clone)]
struct Section<'a> {
    table: &'a Table,
    /// `[caches.l2]`, or "the top of the file".
    shown: &'a str,
    /// `caches.l2`; empty at the top.
    path: &'a str,
    /// What to show where a key is missing.
    place: &'a Place,
    /// The keys it may have.
    known: &'a [&'a str],
}

impl Reader {
    fn machine(&mut self) -> Option<Machine> {
        let root = document::read(&mut self.context)?;
        let place = root.entries.first().map_or_else(Place::default, |entry| entry.key_place.clone());
        let top = Section { table: &root, shown: "the top of the file", path: "", place: &place, known: TOP };
        read::known_keys(&mut self.context, top.table, TOP, top.shown);
        self.sources(top);
        let name = self.name(top);
        let title = self.line(top, "title", "\"Two sockets of Xeon Platinum 8375C\"");
        let protocol = self.protocol(top);
        let shape = self.section(top, "shape", SHAPE, Self::shape);
        let caches = self.caches(top);
        let distances = self.distances(top, shape.as_ref());
        let costs = self.section(top, "costs", COSTS, Self::costs);
        self.sources.sort();
        Some(Machine {
            name: name?,
            title: title?,
            protocol: protocol?,
            shape: shape?,
            caches: caches?,
            distances: distances?,
            costs: costs?,
            sources: std::mem::take(&mut self.sources),
        })
    }

    /// The table `key` of `parent`, read by `body`; its keys are checked and its sources kept.
    fn section<T>(
        &mut self,
        parent: Section<'_>,
        key: &str,
        known: &[&str],
        body: impl FnOnce(&mut Self, Section<'_>) -> Option<T>,
    ) -> Option<T> {
        let path = if parent.path.is_empty() { key.to_owned() } else { format!("{}.{key}", parent.path) };
        let shown = format!("[{path}]");
        let Some(entry) = parent.table.entry(key) else {
            let problem = Problem::at(parent.place, format!("{shown} is missing"));
            self.refuse_missing(
                parent,
                key,
                problem.cure(format!("add the table {shown} with {}", words::listed(known))),
            );
            return None;
        };
        let Some(table) = entry.node.table() else {
            read::wrong_type(&mut self.context, &entry.node, key, "a table", "{ … }");
            return None;
        };
        let section = Section { table, shown: &shown, path: &path, place: place_of(entry), known };
        read::known_keys(&mut self.context, table, known, &shown);
        if known.contains(&"source") {
            self.sources(section);
        }
        body(self, section)
    }

    /// Keeps a table's `source`, and its `sources` of single figures.
    fn sources(&mut self, section: Section<'_>) {
        if let Some(text) = self.line(section, "source", "\"https://…, table 3\"") {
            self.sources.push(Source { of: section.path.to_owned(), text });
        }
        let Some(node) = section.table.get("sources") else { return };
        let Some(single) = node.table() else {
            let example = "{ wake_ns = \"https://…\" }";
            read::wrong_type(&mut self.context, node, "sources", "a table of figures", example);
            return;
        };
        let figure =
            |entry: &&Entry| !matches!(entry.key.as_str(), "source" | "sources") && entry.node.table().is_none();
        let figures: Vec<&str> = section.table.entries.iter().filter(figure).map(|entry| entry.key.as_str()).collect();
        read::known_keys(&mut self.context, single, &figures, &format!("`sources` of {}", section.shown));
        for entry in &single.entries {
            if let Some(text) = self.text(&entry.node, &entry.key) {
                let of =
                    if section.path.is_empty() { entry.key.clone() } else { format!("{}.{}", section.path, entry.key) };
                self.sources.push(Source { of, text });
            }
        }
    }

    /// The value of a key that must be there.
    fn required<'a>(&mut self, section: Section<'a>, key: &str, example: &str) -> Option<&'a Node> {
        let node = section.table.get(key);
        if node.is_none() {
            let problem = Problem::at(section.place, format!("`{key}` is missing from {}", section.shown));
            let cure = match key {
                "source" => format!(
                    "write source = {example}: where these figures are published, or \"none published; taken as …, \
                     because …\""
                ),
                _ => format!("write {key} = {example}"),
            };
            self.refuse_missing(section, key, problem.cure(cure));
        }
        node
    }

    /// Refuses a missing key, unless it is there and misspelt, which is refused already.
    fn refuse_missing(&mut self, section: Section<'_>, key: &str, problem: Problem) {
        let keys = section.table.entries.iter().map(|entry| entry.key.as_str());
        let mut unknown = keys.filter(|key| !section.known.contains(key));
        if !unknown.any(|misspelt| words::nearest(misspelt, section.known) == Some(key)) {
            self.context.refuse(problem);
        }
    }

    /// A line of text that must be there.
    fn line(&mut self, section: Section<'_>, key: &str, example: &str) -> Option<String> {
        let node = self.required(section, key, example)?;
        self.text(node, key)
    }

    /// Text that says something and holds nothing that a terminal would obey.
    fn text(&mut self, node: &Node, key: &str) -> Option<String> {
        let text = words::squeezed(read::string(&mut self.context, node, key, "text in quotes", "\"…\"")?);
        let problem = match text.as_str() {
            "" => Problem::at(&node.place, format!("`{key}` is empty")).cure("say it in a few words"),
            text if words::has_unsafe(text) => {
                Problem::at(&node.place, format!("`{key}` holds control characters")).cure("leave them out")
            }
            _ => return Some(text),
        };
        self.context.refuse(problem);
        None
    }

    fn name(&mut self, top: Section<'_>) -> Option<String> {
        let node = self.required(top, "name", "\"my-machine\"")?;
        let name = read::string(&mut self.context, node, "name", "a name in quotes", "\"my-machine\"")?;
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !name.is_empty() && name.len() <= 40 && name.chars().all(fits) {
            return Some(name.to_owned());
        }
        let what = format!("{} cannot name a machine", document::quoted(name));
        let cure = "use a-z, 0-9 and `-`, at most 40: `--machine` takes it on the command line";
        self.context.refuse(Problem::at(&node.place, what).cure(cure));
        None
    }

    fn protocol(&mut self, top: Section<'_>) -> Option<Protocol> {
        let known = Protocol::ALL.map(Protocol::name);
        let node = self.required(top, "protocol", &format!("{:?}", known[0]))?;
        let word = read::word(&mut self.context, node, "protocol", &known)?;
        Protocol::ALL.into_iter().find(|protocol| protocol.name() == word)
    }

    fn shape(&mut self, section: Section<'_>) -> Option<Shape> {
        let mut count = |key| self.integer(section, key, COUNT, "a machine has at least one of each");
        let (sockets, clusters, cores, threads) =
            (count("sockets"), count("clusters"), count("cores"), count("threads"));
        let (sockets, clusters, cores, threads) = (sockets?, clusters?, cores?, threads?);
        let cpus = sockets * clusters * cores * threads;
        let problem = Problem::at(section.place, format!("[shape] has {cpus} CPUs"));
        if sockets * clusters * cores < 2 {
            self.context.refuse(
                problem.label("one core").cure("the model is about what cores do to each other: describe at least two"),
            );
        } else if cpus > CPUS_MAX {
            self.context.refuse(problem.label("too many").cure(format!(
                "`sockets`, `clusters` (a socket), `cores` (a cluster) and `threads` (a core) multiply: at most {CPUS_MAX}"
            )));
        }
        let [sockets, clusters, cores, threads] = [sockets, clusters, cores, threads].map(|count| count as u32);
        Some(Shape { sockets, clusters, cores, threads })
    }

    fn caches(&mut self, top: Section<'_>) -> Option<Caches> {
        self.section(top, "caches", CACHES, |reader, caches| {
            let inclusive = reader.required(caches, "inclusive", "false");
            let inclusive = inclusive.and_then(|node| read::boolean(&mut reader.context, node, "inclusive"));
            let pairs = reader.required(caches, "pairs", "false");
            let pairs = pairs.and_then(|node| read::boolean(&mut reader.context, node, "pairs"));
            let memory_ns = reader.ns(caches, "memory_ns");
            let l1 = reader.section(caches, "l1", L1, |reader, level| reader.cache(level, |_, _, _| Some(0.0)));
            let l2 = reader.section(caches, "l2", LEVEL, |reader, level| reader.cache(level, Self::ns));
            let llc = reader.section(caches, "llc", LEVEL, |reader, level| reader.cache(level, Self::ns));
            reader.check_holds(caches, l1, l2);
            Some(Caches {
                l1: l1?,
                l2: l2?,
                llc: llc?,
                llc_is_inclusive: inclusive?,
                memory_ns: memory_ns?,
                fetches_pairs: pairs?,
            })
        })
    }

    fn cache(
        &mut self,
        section: Section<'_>,
        ns: impl FnOnce(&mut Self, Section<'_>, &str) -> Option<f64>,
    ) -> Option<CacheShape> {
        let kib = self.integer(section, "kib", KIB, "the size of one such cache");
        let ways = self.integer(section, "ways", WAYS, "lines a set");
        let ns = ns(self, section, "ns");
        let (bytes, ways) = (kib? * 1024, ways?);
        let set_bytes = CACHE_LINE_BYTES * ways;
        if !bytes.is_multiple_of(set_bytes) || !(bytes / set_bytes).is_power_of_two() {
            self.refuse_sets(section, bytes, ways);
        }
        Some(CacheShape { bytes, ways: ways as u32, ns: ns? })
    }

    fn refuse_sets(&mut self, section: Section<'_>, bytes: u64, ways: u64) {
        let Some(place) = section.table.get("kib").map(|node| node.place.clone()) else { return };
        let sets = bytes as f64 / (CACHE_LINE_BYTES * ways) as f64;
        let below = (sets.log2().floor().max(0.0)).exp2() as u64;
        let kib = |sets: u64| sets * ways * CACHE_LINE_BYTES / 1024;
        let problem = Problem::at(&place, format!("{} has {sets} sets, which is no power of two", section.shown))
            .label(format!("{} KiB in {ways} ways of {CACHE_LINE_BYTES}-byte lines", bytes / 1024))
            .cure(format!(
                "the model finds a line's set by its address bits: write {} or {} KiB, and say in `source` how it was rounded",
                kib(below).max(1),
                kib(below * 2).max(1)
            ));
        self.context.refuse(problem);
    }

    fn check_holds(&mut self, caches: Section<'_>, l1: Option<CacheShape>, l2: Option<CacheShape>) {
        let (Some(first), Some(second)) = (l1, l2) else { return };
        let kib = caches.table.get("l2").and_then(Node::table).and_then(|level| level.get("kib"));
        if let Some(node) = kib.filter(|_| second.bytes < first.bytes) {
            let problem = Problem::at(&node.place, "[caches.l2] is smaller than [caches.l1]".to_owned());
            self.context.refuse(problem.cure("the second level holds all of the first: check the two sizes"));
        }
    }

    /// The distances that the shape has must be there. The others, between which no pair of cores lies, may be.
    fn distances(&mut self, top: Section<'_>, shape: Option<&Shape>) -> Option<Distances> {
        let needs = shape.map_or([false; 3], Shape::distances);
        self.section(top, "distance", DISTANCE, |reader, section| {
            let mut known = [None; 3];
            for ((name, needed), known) in DISTANCE.iter().zip(needs).zip(&mut known) {
                if needed || section.table.entry(name).is_some() {
                    let sources = reader.sources.len();
                    let read = reader.section(section, name, ONE_DISTANCE, Self::distance)?;
                    if needed {
                        *known = Some(read);
                    } else {
                        // No two CPUs of such a shape are that far apart: checked, and not kept.
                        reader.sources.truncate(sources);
                    }
                }
            }
            Distances::filled(known)
        })
    }

    fn distance(&mut self, section: Section<'_>) -> Option<Distance> {
        let (fetch_ns, tenure_ns) = (self.ns(section, "fetch_ns"), self.ns(section, "tenure_ns"));
        Some(Distance { fetch_ns: fetch_ns?, tenure_ns: tenure_ns?, spread: Distance::USUAL_SPREAD })
    }

    fn costs(&mut self, section: Section<'_>) -> Option<Costs> {
        let mut ns = |key| self.ns(section, key);
        let (load_ns, store_ns, bump_ns, atomic_ns) = (ns("load_ns"), ns("store_ns"), ns("bump_ns"), ns("atomic_ns"));
        let (fence_ns, pause_ns, flush_ns) = (ns("fence_ns"), ns("pause_ns"), ns("flush_ns"));
        let (instruction_ns, clock_ns) = (ns("instruction_ns"), ns("clock_ns"));
        let (syscall_ns, futex_ns, wake_ns) = (ns("syscall_ns"), ns("futex_ns"), ns("wake_ns"));
        let store_buffer = self.integer(section, "store_buffer", ENTRIES, "entries of the store buffer");
        let window = self.integer(section, "window", ENTRIES, "entries of the reorder buffer");
        Some(Costs {
            load_ns: load_ns?,
            store_ns: store_ns?,
            bump_ns: bump_ns?,
            atomic_ns: atomic_ns?,
            fence_ns: fence_ns?,
            pause_ns: pause_ns?,
            flush_ns: flush_ns?,
            instruction_ns: instruction_ns?,
            clock_ns: clock_ns?,
            syscall_ns: syscall_ns?,
            futex_ns: futex_ns?,
            wake_ns: wake_ns?,
            store_buffer: store_buffer? as u32,
            window: window? as u32,
        })
    }

    fn integer(&mut self, section: Section<'_>, key: &str, bounds: (u64, u64), why: &str) -> Option<u64> {
        let node = self.required(section, key, "…, a whole number")?;
        read::integer(&mut self.context, node, key, bounds, why)
    }

    /// A time in nanoseconds, finite and above 0.
    fn ns(&mut self, section: Section<'_>, key: &str) -> Option<f64> {
        let node = self.required(section, key, "…, in nanoseconds")?;
        let value = match &node.value {
            Value::Integer(number) => *number as f64,
            // TOML lets digits be grouped by underscores; `inf` and `nan` are numbers too.
            Value::Float(text) => text.replace('_', "").parse().unwrap_or(f64::NAN),
            _ => {
                read::wrong_type(&mut self.context, node, key, "nanoseconds as a bare number", "12.5");
                return None;
            }
        };
        if value >= NS.0 && value <= NS.1 {
            return Some(value);
        }
        let written = words::shown(self.context.texts.slice(&node.place));
        let label = match value {
            value if !value.is_finite() => "not a finite number",
            value if value < 0.0 => "negative",
            0.0 => "nothing takes no time",
            _ => "out of bounds",
        };
        let problem =
            Problem::at(&node.place, format!("`{key}` of {} cannot be {written}", section.shown)).label(label);
        self.context.refuse(problem.cure(format!("write nanoseconds from {} to {}", NS.0, NS.1)));
        None
    }
}

/// Where a table is shown: its header, or the key of an inline table.
fn place_of(entry: &Entry) -> &Place {
    &entry.key_place
}

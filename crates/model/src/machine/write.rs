//! A machine as the file that [`Machine::parse`] reads back as the same machine.

use super::{CacheShape, Distance, Distances, Machine};
use std::fmt::Write;

impl Machine {
    /// The machine as TOML, each table with its sources. Distances that the shape has not are left out.
    pub fn to_toml(&self) -> String {
        let mut out = Writer { machine: self, text: String::new() };
        out.line("name", &quoted(&self.name));
        out.line("title", &quoted(&self.title));
        out.line("protocol", &quoted(self.protocol.name()));
        out.sources("");
        out.shape();
        out.caches();
        out.distances();
        out.costs();
        out.text
    }
}

struct Writer<'a> {
    machine: &'a Machine,
    text: String,
}

impl Writer<'_> {
    fn shape(&mut self) {
        let shape = &self.machine.shape;
        self.header("shape");
        self.line("sockets", &shape.sockets.to_string());
        self.line("clusters", &shape.clusters.to_string());
        self.line("cores", &shape.cores.to_string());
        self.line("threads", &shape.threads.to_string());
        self.sources("shape");
    }

    fn caches(&mut self) {
        let caches = &self.machine.caches;
        self.header("caches");
        self.line("inclusive", &caches.llc_is_inclusive.to_string());
        self.line("pairs", &caches.fetches_pairs.to_string());
        self.ns("memory_ns", caches.memory_ns);
        self.sources("caches");
        self.cache("caches.l1", &caches.l1, false);
        self.cache("caches.l2", &caches.l2, true);
        self.cache("caches.llc", &caches.llc, true);
    }

    fn cache(&mut self, path: &str, cache: &CacheShape, has_ns: bool) {
        self.header(path);
        self.line("kib", &(cache.bytes / 1024).to_string());
        self.line("ways", &cache.ways.to_string());
        if has_ns {
            self.ns("ns", cache.ns);
        }
        self.sources(path);
    }

    fn distances(&mut self) {
        let Distances { cluster, socket, machine } = self.machine.distances;
        let all = [("cluster", cluster), ("socket", socket), ("machine", machine)];
        for ((name, distance), has) in all.into_iter().zip(self.machine.shape.distances()) {
            if has {
                self.distance(&format!("distance.{name}"), distance);
            }
        }
    }

    fn distance(&mut self, path: &str, distance: Distance) {
        self.header(path);
        self.ns("fetch_ns", distance.fetch_ns);
        self.ns("tenure_ns", distance.tenure_ns);
        self.sources(path);
    }

    fn costs(&mut self) {
        let costs = &self.machine.costs;
        self.header("costs");
        self.ns("load_ns", costs.load_ns);
        self.ns("store_ns", costs.store_ns);
        self.ns("bump_ns", costs.bump_ns);
        self.ns("atomic_ns", costs.atomic_ns);
        self.ns("fence_ns", costs.fence_ns);
        self.ns("pause_ns", costs.pause_ns);
        self.ns("flush_ns", costs.flush_ns);
        self.ns("instruction_ns", costs.instruction_ns);
        self.ns("clock_ns", costs.clock_ns);
        self.ns("syscall_ns", costs.syscall_ns);
        self.ns("futex_ns", costs.futex_ns);
        self.ns("wake_ns", costs.wake_ns);
        self.line("store_buffer", &costs.store_buffer.to_string());
        self.line("window", &costs.window.to_string());
        self.sources("costs");
    }

    fn header(&mut self, path: &str) {
        self.push(&format!("\n[{path}]\n"));
    }

    fn line(&mut self, key: &str, value: &str) {
        self.push(&format!("{key} = {value}\n"));
    }

    /// In the fewest digits that read back as the same number.
    fn ns(&mut self, key: &str, ns: f64) {
        self.line(key, &format!("{ns:?}"));
    }

    /// A table's `source`, and those of its single figures.
    fn sources(&mut self, path: &str) {
        let machine = self.machine;
        for source in machine.sources.iter().filter(|source| source.of == path) {
            self.line("source", &quoted(&source.text));
        }
        let below = |of: &str| match path {
            "" => (!of.contains('.') && !is_table(of)).then(|| of.to_owned()),
            path => of.strip_prefix(path)?.strip_prefix('.').map(str::to_owned),
        };
        let figures = machine.sources.iter().filter_map(|source| Some((below(&source.of)?, &source.text)));
        let figures: Vec<_> = figures.filter(|(of, _)| !of.is_empty() && !of.contains('.') && !is_table(of)).collect();
        for (figure, text) in figures {
            self.line(&format!("sources.{figure}"), &quoted(text));
        }
    }

    fn push(&mut self, text: &str) {
        // Writing to a string cannot fail.
        let _ = self.text.write_str(text);
    }
}

/// Whether a key is a table's, with sources of its own.
fn is_table(key: &str) -> bool {
    matches!(key, "shape" | "caches" | "distance" | "costs" | "l1" | "l2" | "llc" | "cluster" | "socket" | "machine")
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

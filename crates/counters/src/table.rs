//! What counts what on which microarchitecture: `events.toml`, read and checked.

use crate::cpu_kind::Recognised;
use crate::names;
use host::Pmu;
use plan::event::{COUNTERS, Modes};
use plan::{CountedBy, CpuIdentity, EventForm, EventSpec};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A name that is longer breaks the tables of 80 columns.
const SHOWN_CHARS: usize = 24;

/// The lab's table. Reading it cannot fail: a test reads it too.
pub(crate) static TABLE: LazyLock<Table> =
    LazyLock::new(|| Table::parse(include_str!("../events.toml")).expect("events.toml is checked by its test"));

/// Every kind of core that is known.
pub(crate) struct Table {
    pub(crate) kinds: Vec<Kind>,
}

/// One kind of core.
#[derive(Debug)]
pub(crate) struct Kind {
    /// As its maker or its users call it: `Zen 4`.
    pub(crate) name: String,
    /// The name of its core PMU, where perf shows it.
    pub(crate) pmu: String,
    recognised: Recognised,
    rows: BTreeMap<String, Row>,
}

/// What stands behind a counter's name on one kind of core.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// What a table calls it.
    pub(crate) shown: String,
    /// What it counts, in a sentence that begins with its maker's name for it.
    pub(crate) counts: String,
    /// Where that is written down.
    pub(crate) source: String,
    /// What is asked, in user mode alone; or why nothing is, and what to look at instead.
    pub(crate) event: Result<EventSpec, String>,
}

impl Table {
    /// The kind of a CPU with these numbers, served by `pmu`; `None` where the table has none such.
    pub(crate) fn kind(&self, identity: &CpuIdentity, pmu: Option<&Pmu>) -> Option<&Kind> {
        self.kinds.iter().find(|kind| kind.recognised.is(identity, pmu))
    }

    fn parse(text: &str) -> Result<Table, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        let kinds = file.cpu.into_iter().map(|cpu| {
            let name = cpu.name.clone();
            kind(cpu, &file.sets).map_err(|what| format!("{name}: {what}"))
        });
        let kinds = kinds.collect::<Result<Vec<Kind>, String>>()?;
        match kinds.iter().enumerate().find(|(at, kind)| kinds[..*at].iter().any(|earlier| earlier.name == kind.name)) {
            Some((_, twice)) => Err(format!("{} stands there twice", twice.name)),
            None => Ok(Table { kinds }),
        }
    }
}

impl Kind {
    /// What stands behind `counter`; `None` where the table does not say, which is so of no counter of the processor's.
    pub(crate) fn row(&self, counter: &str) -> Option<&Row> {
        self.rows.get(counter)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    sets: BTreeMap<String, BTreeMap<String, WrittenRow>>,
    cpu: Vec<WrittenKind>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenKind {
    name: String,
    vendor: Option<String>,
    family: Option<u32>,
    models: Option<String>,
    implementer: Option<u32>,
    parts: Option<String>,
    pmu: String,
    list: String,
    sets: Vec<String>,
    #[serde(default)]
    rows: BTreeMap<String, WrittenRow>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRow {
    event: Option<String>,
    missing: Option<String>,
    vendor: Option<String>,
    shown: String,
    counts: Option<String>,
    source: Option<String>,
}

fn kind(cpu: WrittenKind, sets: &BTreeMap<String, BTreeMap<String, WrittenRow>>) -> Result<Kind, String> {
    let recognised = recognised(&cpu)?;
    let mut rows = BTreeMap::new();
    for name in &cpu.sets {
        rows.extend(sets.get(name).ok_or_else(|| format!("there is no set `{name}`"))?.clone());
    }
    rows.extend(cpu.rows);
    let read = |(counter, written): (String, WrittenRow)| match row(&counter, written, &cpu.list) {
        Ok(row) => Ok((counter, row)),
        Err(what) => Err(format!("{counter}: {what}")),
    };
    let rows = rows.into_iter().map(read).collect::<Result<BTreeMap<_, _>, String>>()?;
    match COUNTERS.iter().find(|(name, by)| *by == CountedBy::Processor && !rows.contains_key(*name)) {
        Some((name, _)) => Err(format!("nothing is said of {name}")),
        None => Ok(Kind { name: cpu.name, pmu: cpu.pmu, recognised, rows }),
    }
}

fn recognised(cpu: &WrittenKind) -> Result<Recognised, String> {
    match (&cpu.vendor, cpu.family, &cpu.models, cpu.implementer, &cpu.parts) {
        (Some(vendor), Some(family), Some(models), None, None) => Ok(Recognised::X86 {
            vendor: vendor.clone(),
            family,
            models: models.parse()?,
            hybrid: (cpu.pmu != "cpu").then(|| cpu.pmu.clone()),
        }),
        (None, None, None, Some(implementer), Some(parts)) => {
            Ok(Recognised::Arm { implementer, parts: parts.parse()? })
        }
        _ => Err("give vendor, family and models, or implementer and parts".to_owned()),
    }
}

fn row(counter: &str, written: WrittenRow, list: &str) -> Result<Row, String> {
    if !COUNTERS.contains(&(counter, CountedBy::Processor)) {
        return Err("no counter of the processor's is called so".to_owned());
    }
    if written.shown.is_empty() || written.shown.chars().count() > SHOWN_CHARS {
        return Err(format!("`{}` is not 1 to {SHOWN_CHARS} characters long", written.shown));
    }
    let source = written.source.unwrap_or_else(|| list.to_owned());
    if !source.starts_with("https://") {
        return Err(format!("the source `{source}` is no address"));
    }
    let (event, counts) = match (written.event, written.missing, written.vendor, written.counts) {
        (Some(event), None, Some(vendor), Some(counts)) => (Ok(spec(&event)?), format!("{vendor}: {counts}")),
        (None, Some(why), None, None) => (Err(why.clone()), format!("nothing here: {why}")),
        _ => return Err("give event, vendor and counts, or missing alone".to_owned()),
    };
    Ok(Row { shown: written.shown, counts, source, event })
}

/// An event of perf's, in user mode alone as all the lab's own are.
fn spec(text: &str) -> Result<EventSpec, String> {
    let spec: EventSpec = text.parse().map_err(|error| format!("{error}"))?;
    let known = match &spec.form {
        EventForm::Named(name) => names::generic(name).is_some(),
        EventForm::Terms { pmu, .. } => pmu == "cpu",
        EventForm::Raw(_) | EventForm::Tracepoint { .. } => false,
    };
    match known {
        true => Ok(EventSpec { modes: Modes { user: true, kernel: false }, ..spec }),
        false => Err(format!("`{text}` is neither a generic event nor one of cpu/…/")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Row, TABLE, Table};
    use crate::event::Family;
    use crate::lab_counters::family;
    use plan::CountedBy;
    use plan::event::COUNTERS;
    use std::collections::BTreeMap;

    /// The page between the two marks of that name, without the blank lines at its ends.
    fn of_the_page(name: &str) -> &'static str {
        let page = include_str!("../../../docs/counters.md");
        let (begin, end) = (format!("<!-- {name}: begin -->"), format!("<!-- {name}: end -->"));
        let (_, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("docs/counters.md has no {begin}"));
        rest.split_once(&end).unwrap_or_else(|| panic!("docs/counters.md has no {end}")).0.trim()
    }

    /// One line for each counter's row, kinds that share the row together, in the order of the table.
    fn lines(counter: &str, line: impl Fn(&str, &Row) -> String) -> Vec<String> {
        let mut shared: Vec<(Vec<&str>, &Row)> = Vec::new();
        for kind in &TABLE.kinds {
            let row = &kind.rows[counter];
            let same = |row: &Row, other: &Row| {
                (&row.shown, &row.counts, &row.event) == (&other.shown, &other.counts, &other.event)
            };
            match shared.iter_mut().find(|(_, known)| same(known, row)) {
                Some((names, _)) => names.push(&kind.name),
                None => shared.push((vec![&kind.name], row)),
            }
        }
        shared.into_iter().map(|(names, row)| line(&together(names), row)).collect()
    }

    /// Names of kinds, with a maker's for all of its kinds.
    fn together(mut names: Vec<&str>) -> String {
        let mut makers = Vec::new();
        for maker in ["Intel", "Zen", "Neoverse"] {
            let of = |name: &str| match name.split(' ').next() {
                Some("Zen") => "Zen",
                Some("Neoverse") => "Neoverse",
                _ => "Intel",
            };
            if TABLE.kinds.iter().filter(|kind| of(&kind.name) == maker).all(|kind| names.contains(&&*kind.name)) {
                names.retain(|name| of(name) != maker);
                makers.push(format!("all {maker}"));
            }
        }
        makers.into_iter().chain(names.into_iter().map(str::to_owned)).collect::<Vec<_>>().join("; ")
    }

    fn is_generic(counter: &str) -> bool {
        TABLE
            .kinds
            .iter()
            .filter_map(|kind| kind.rows[counter].event.as_ref().ok())
            .any(|spec| !spec.text.contains('/'))
    }

    /// The page's table of the counters that are, or are not, the kernel's generic events.
    fn page_table(generic: bool) -> String {
        let counters = COUNTERS.iter().filter(|(name, by)| *by == CountedBy::Processor && is_generic(name) == generic);
        let lines = counters.flat_map(|(name, _)| {
            lines(name, |kinds, row| match &row.event {
                Err(why) => format!("| `{name}` | {kinds} | none | {why} |"),
                Ok(_) if generic => format!("| `{name}` | {kinds} | {} | {} |", row.shown, row.counts),
                Ok(spec) => format!("| `{name}` | {kinds} | `{}` | {} |", spec.text, row.counts),
            })
        });
        let second = if generic { "shown as" } else { "event" };
        let head = [format!("| name | processors | {second} | what it counts |"), "|---|---|---|---|".to_owned()];
        head.into_iter().chain(lines).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_page_shows_this_table() {
        for (name, generic) in [("generic events", true), ("transfers", false)] {
            let (seen, wanted) = (of_the_page(name), page_table(generic));
            assert!(seen == wanted, "docs/counters.md, {name}: put this between the marks\n{wanted}\n");
        }
    }

    const KIND: &str =
        "[[cpu]]\nname = 'A'\nvendor = 'V'\nfamily = 1\nmodels = '0x1'\npmu = 'cpu'\nlist = 'https://a'\n";

    fn refusal(text: &str) -> String {
        Table::parse(text).err().unwrap_or_else(|| panic!("accepted: {text}"))
    }

    #[test]
    fn the_whole_table_is_read() {
        for kind in &TABLE.kinds {
            for (counter, row) in &kind.rows {
                assert!(!row.counts.is_empty(), "{}: {counter}", kind.name);
            }
        }
        let names: Vec<&str> = TABLE.kinds.iter().map(|kind| kind.name.as_str()).collect();
        assert!(names.contains(&"Zen 4") && names.contains(&"Neoverse N2"), "{names:?}");
    }

    /// As `lab_counters::family` promises: what is compared can be counted at once on the least of counters.
    #[test]
    fn no_family_has_more_than_four_events_on_any_kind() {
        for kind in &TABLE.kinds {
            let counted = kind.rows.iter().filter(|(_, row)| row.event.is_ok());
            let mut families: BTreeMap<Family, Vec<&str>> = BTreeMap::new();
            counted.for_each(|(counter, _)| families.entry(family(counter)).or_default().push(counter));
            for (family, counters) in families {
                assert!(counters.len() <= 4, "{}: {family:?} has {counters:?}", kind.name);
            }
        }
    }

    /// Where loads from another socket are told from writes, the writes are a counter too, or the reader learns what is
    /// not seen and how to see it.
    #[test]
    fn nobody_who_counts_loads_from_another_socket_forgets_the_writes() {
        let of_loads = |kind: &&super::Kind| kind.rows["transfers_remote"].counts.contains("stores are in neither");
        let kinds: Vec<_> = TABLE.kinds.iter().filter(of_loads).collect();
        assert!(kinds.len() >= 5, "the servers of Intel's");
        for kind in kinds {
            match &kind.rows["transfers_write_remote"].event {
                Ok(_) => {}
                Err(why) => assert!(why.contains("two writers on two sockets") && why.contains("--events"), "{why}"),
            }
        }
    }

    #[test]
    fn no_processor_is_two_kinds() {
        use plan::CpuIdentity;
        let vendors = ["GenuineIntel", "AuthenticAMD"];
        let x86 = vendors.into_iter().flat_map(|vendor| {
            (0..32).flat_map(move |family| {
                (0..256).map(move |model| CpuIdentity::X86 { vendor: vendor.to_owned(), family, model })
            })
        });
        let arm = (0..0x1000).map(|part| CpuIdentity::Arm { implementer: 0x41, part });
        for identity in x86.chain(arm) {
            for name in ["cpu", "cpu_core", "cpu_atom", "cpu_lowpower"] {
                let pmu = host::Pmu {
                    name: name.to_owned(),
                    kind: 4,
                    formats: Default::default(),
                    events: Default::default(),
                    cpus: None,
                    cpumask: None,
                };
                let are = TABLE.kinds.iter().filter(|kind| kind.recognised.is(&identity, Some(&pmu)));
                let are: Vec<&str> = are.map(|kind| kind.name.as_str()).collect();
                assert!(are.len() < 2, "{identity}, {name}: {are:?}");
            }
        }
    }

    #[test]
    fn a_wrong_file_is_refused_with_the_kind_and_the_counter() {
        let with = |rows: &str| refusal(&format!("{KIND}sets = []\n{rows}\n[sets]\n"));
        for (rows, wanted) in [
            ("", "A: nothing is said of cycles"),
            ("rows.cycle = { shown = 'c', missing = 'm' }", "A: cycle: no counter"),
            ("rows.task_clock = { shown = 'c', missing = 'm' }", "A: task_clock: no counter"),
            ("rows.cycles = { shown = 'cycles', event = 'cycles', counts = 'c' }", "A: cycles: give event, vendor"),
            (
                "rows.cycles = { shown = 'c', event = 'cycle', vendor = 'v', counts = 'c' }",
                "A: cycles: `cycle` is neither",
            ),
            ("rows.cycles = { shown = 'c', event = 'cpu/event=zz/', vendor = 'v', counts = 'c' }", "A: cycles: "),
            ("rows.cycles = { shown = 'c', event = 'r01d1', vendor = 'v', counts = 'c' }", "A: cycles: `r01d1`"),
            ("rows.cycles = { shown = 'a name of twenty-five chars', missing = 'm' }", "A: cycles: `a name"),
            ("rows.cycles = { shown = 'c', missing = 'm', source = 'a book' }", "A: cycles: the source"),
            ("rows.cycles = { shown = 'c', missing = 'm', scource = 'x' }", "scource"),
        ] {
            let seen = with(rows);
            assert!(seen.contains(wanted), "{rows}: {seen}");
        }
        assert!(refusal(&format!("{KIND}sets = ['b']\n[sets]\n")).contains("no set `b`"));
    }
}

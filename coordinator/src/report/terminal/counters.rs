//! What was counted beside the two columns of the variants' table: by the processor, by the kernel, and for the user.
//! All of it is measured; what a model computes has a section of its own.

use crate::report::page::Page;
use crate::report::table::{Cell, Column, Grid, Notes, Row, head};
use crate::report::terminal::readings::{Per, cell, reason};
use plan::CountedBy;
use plan::event::{COUNTERS, is_counter};
use record::{ArmState, ArmSummary, Events, Kind, Measured, RoleSummary, Run};
use std::collections::BTreeSet;

/// Shown under the heads that a student meets first; glossary names.
pub(super) const L1D: &str = "l1d_load_misses";
pub(super) const LLC: &str = "llc_load_misses";

/// Stands above the arms that are not compared.
pub(super) const REFERENCES: &str = "references, to hold the figures above against";

/// A count that is below this per operation in every arm is named in a line, not shown in a column.
const TRACE: f64 = 1e-4;

/// What the kernel counts is shown a second where it is below this per operation in every arm: a context switch is rare,
/// and no less of a disturbance for it.
const RARE: f64 = 1e-3;

/// Lab counters that a line names one by one; of more it says how many.
const MOST_NAMED: usize = 6;

/// One row: a role of an arm.
struct Subject<'a> {
    arm: &'a ArmSummary,
    role: &'a RoleSummary,
}

impl<'a> Subject<'a> {
    fn measured(&self, counter: &str) -> Option<&'a Measured> {
        self.role.counters.get(counter).map(|counter| &counter.measured)
    }
}

/// What becomes of a counter on the page.
#[derive(PartialEq)]
enum Fate {
    /// It has a column.
    Column(Per),
    /// Counted in every arm, and 0 in each.
    Zero,
    /// Counted in every arm, and next to nothing per operation.
    Trace,
    /// Counted in no arm, for this reason.
    Nowhere(String),
    /// It stands in the variants' table.
    Told,
}

/// The counters of a run and their fates.
struct Counters<'a> {
    run: &'a Run,
    several_roles: bool,
    subjects: Vec<Subject<'a>>,
    all: Vec<(&'a str, Fate)>,
}

/// A table for what the processor counted, one for what the kernel counted, then what has no column. Nothing where the
/// variants' table says it all.
pub(super) fn write(page: &mut Page, run: &Run) {
    let counters = Counters::of(run);
    let news = |(name, fate): &(&str, Fate)| !is_counter(name) || !matches!(fate, Fate::Told | Fate::Nowhere(_));
    if !counters.all.iter().any(news) {
        return;
    }
    let tables = [("processor", true), ("kernel", false)].map(|(who, by_processor)| {
        let columns = counters.columns(by_processor);
        if !columns.is_empty() {
            page.heading(&format!("Counted by the {who}, as measured"));
            counters.table(page, &columns);
        }
        columns.len()
    });
    if tables == [0, 0] {
        page.heading("Counted beside, as measured");
    }
    counters.without_columns(page);
}

impl<'a> Counters<'a> {
    fn of(run: &'a Run) -> Counters<'a> {
        let several_roles = run.arms.iter().any(|arm| arm.roles.len() > 1);
        let ran = run.arms.iter().filter(|arm| arm.state != ArmState::NotApplicable);
        let roles = ran.flat_map(|arm| arm.roles.iter().map(move |role| Subject { arm, role }));
        // A role without readings kept no repetition: the variants' table says so.
        let read = roles.filter(|of| !of.role.counters.is_empty());
        let subjects = read.filter(|of| several_roles || of.role.role == of.arm.headline_role).collect();
        let mut counters = Counters { run, several_roles, subjects, all: Vec::new() };
        counters.all = counters.names().into_iter().map(|name| (name, counters.fate(name))).collect();
        counters
    }

    /// Every counter that was read: the lab's in the order of their list, then the user's in theirs.
    fn names(&self) -> Vec<&'a str> {
        let read: BTreeSet<&str> =
            self.subjects.iter().flat_map(|of| of.role.counters.keys()).map(String::as_str).collect();
        let listed = COUNTERS.iter().map(|(name, _)| *name).chain(self.run.events.iter().map(|e| e.name.as_str()));
        let mut names: Vec<&str> = Vec::new();
        for name in listed.chain(read.iter().copied()) {
            if read.contains(name) && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    fn fate(&self, name: &str) -> Fate {
        let readings: Vec<&Measured> = self.subjects.iter().filter_map(|of| of.measured(name)).collect();
        let counted: Vec<&&Measured> = readings.iter().filter(|m| m.reading.value().is_some()).collect();
        if counted.is_empty() {
            return Fate::Nowhere(readings.iter().find_map(|m| reason(&m.reading)).unwrap_or_default());
        }
        if !self.several_roles && [L1D, LLC].contains(&name) {
            return Fate::Told;
        }
        let own = !is_counter(name);
        let everywhere = counted.len() == self.subjects.len();
        if everywhere && !own && counted.iter().all(|m| m.reading.value() == Some(0)) {
            return Fate::Zero;
        }
        let most = counted.iter().filter_map(|m| m.per_op).fold(0.0, f64::max);
        let rare = own || !Events(&self.run.events).by_processor(name);
        match nanoseconds(name) {
            None if rare && most < RARE => Fate::Column(Per::Second),
            None if own || !everywhere || most >= TRACE => Fate::Column(Per::Op),
            Some(_) if !everywhere || most >= TRACE => Fate::Column(Per::NsOp),
            _ => Fate::Trace,
        }
    }

    fn columns(&self, by_processor: bool) -> Vec<(&'a str, Per)> {
        let column = |(name, fate): &(&'a str, Fate)| match fate {
            Fate::Column(per) if Events(&self.run.events).by_processor(name) == by_processor => Some((*name, *per)),
            _ => None,
        };
        self.all.iter().filter_map(column).collect()
    }

    fn table(&self, page: &mut Page, columns: &[(&str, Per)]) {
        let mut notes = Notes::default();
        let of_kind = |variants: bool| {
            self.subjects.iter().filter(move |of| (of.arm.kind == Kind::Variant) == variants).collect::<Vec<_>>()
        };
        let mut rows: Vec<Row> = of_kind(true).iter().map(|of| self.row(of, columns, &mut notes)).collect();
        let of_variants = rows.len();
        for (index, of) in of_kind(false).iter().enumerate() {
            let section = (index == 0 && of_variants > 0).then_some(REFERENCES);
            rows.push(Row { section, ..self.row(of, columns, &mut notes) });
        }
        let names = if self.several_roles { vec!["variant", "role"] } else { vec!["variant"] };
        let kept = names.len();
        let figures = columns.iter().map(|(name, per)| {
            let shown = self.shown(name);
            Column::figures(format!("{shown}, {}", per.unit()), head(&shown, per.unit()))
        });
        let columns_of_all = names.into_iter().map(Column::words).chain(figures).collect();
        page.grid_in_bands(Grid { columns: columns_of_all, rows }, kept, &notes);
        page.legend(&self.legend(columns));
    }

    fn row(&self, of: &Subject, columns: &[(&str, Per)], notes: &mut Notes) -> Row {
        let figures = columns.iter().map(|(name, per)| cell(of.measured(name), *per, notes));
        let mut cells = vec![Cell::text(&of.arm.name)];
        cells.extend(self.several_roles.then(|| Cell::text(&of.role.role)));
        cells.extend(figures);
        let block = self.several_roles.then(|| format!("{}, {}", of.arm.name, of.role.role));
        Row { block, section: None, cells }
    }

    /// The counter in words, without its unit.
    fn shown(&self, name: &str) -> String {
        let shown = Events(&self.run.events).shown(name);
        match nanoseconds(name) {
            Some(of_what) if shown == name.replace('_', " ") => of_what.replace('_', " "),
            _ => shown,
        }
    }

    /// How to read the units, and what stands behind names that do not say it themselves.
    fn legend(&self, columns: &[(&str, Per)]) -> String {
        let mut parts = Vec::new();
        if columns.iter().any(|(_, per)| *per != Per::Second) {
            parts.push("/op: for one pass, over all passes of the windows, masked ones included.".to_owned());
        }
        if columns.iter().any(|(_, per)| *per == Per::Second) {
            parts.push("/s: a second of window, the role's workers together.".to_owned());
        }
        parts.extend(columns.iter().filter_map(|(name, _)| meaning(self.run, name)));
        parts.join(" ")
    }

    /// Lines for what has no column, one a cause.
    fn without_columns(&self, page: &mut Page) {
        let of =
            |fate: &Fate| -> Vec<&str> { self.all.iter().filter(|(_, f)| f == fate).map(|(name, _)| *name).collect() };
        for (fate, said) in
            [(Fate::Zero, "0 in each of these arms"), (Fate::Trace, "Under 0.0001 /op in each of these arms")]
        {
            let names: Vec<String> = of(&fate).into_iter().map(|name| self.shown(name)).collect();
            if !names.is_empty() {
                page.prose(&format!("{said}: {}.", names.join(", ")));
            }
        }
        let mut causes: Vec<(&str, Vec<&str>)> = Vec::new();
        let no_pmu = self.without_processor();
        for (name, fate) in &self.all {
            let Fate::Nowhere(why) = fate else { continue };
            match (&no_pmu, causes.iter_mut().find(|(known, _)| known == why)) {
                (Some(_), _) if of_processor(name) => {}
                (_, Some((_, names))) => names.push(name),
                (_, None) => causes.push((why, vec![name])),
            }
        }
        let all_of_it =
            no_pmu.map(|(why, events)| format!("Not counted: all {events} events of the processor ({why})."));
        all_of_it.into_iter().for_each(|line| page.prose(&line));
        for (why, names) in causes {
            page.prose(&format!("Not counted: {} ({why}).", self.named(&names)));
        }
    }

    /// Where none of the lab's events of the processor was counted: how many they are, and what keeps most of them away.
    fn without_processor(&self) -> Option<(&str, usize)> {
        let all: Vec<&Fate> = self.all.iter().filter(|(name, _)| of_processor(name)).map(|(_, fate)| fate).collect();
        let reasons: Option<Vec<&str>> = all
            .iter()
            .map(|fate| match fate {
                Fate::Nowhere(why) => Some(why.as_str()),
                _ => None,
            })
            .collect();
        let reasons = reasons.filter(|reasons| reasons.len() > MOST_NAMED)?;
        let times = |why: &&&str| reasons.iter().filter(|other| other == why).count();
        Some((reasons.iter().max_by_key(times)?, all.len()))
    }

    /// The names of one cause; of many of the lab's the first and how many more, but each of the user's.
    fn named(&self, names: &[&str]) -> String {
        let (lab, own): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| is_counter(name));
        let named = if lab.len() > MOST_NAMED { MOST_NAMED - 1 } else { lab.len() };
        let mut parts: Vec<String> = lab[..named].iter().map(|name| self.shown(name)).collect();
        parts.extend((named < lab.len()).then(|| format!("{} more", lab.len() - named)));
        parts.extend(own.into_iter().map(str::to_owned));
        parts.join(", ")
    }
}

/// Whether it is one of the lab's that the processor counts.
fn of_processor(name: &str) -> bool {
    COUNTERS.contains(&(name, CountedBy::Processor))
}

/// What is counted in nanoseconds, by the counter's name without its unit.
fn nanoseconds(name: &str) -> Option<&str> {
    match name {
        "task_clock" => Some(name),
        "stolen_ns" | "throttled_ns" => name.strip_suffix("_ns"),
        _ => None,
    }
}

/// What a counter counts here, where its name does not say it: `L1D requests to L2: …`.
pub(super) fn meaning(run: &Run, name: &str) -> Option<String> {
    let events = Events(&run.events);
    if is_counter(name) && !events.differs(name) {
        return None;
    }
    let mut meanings: Vec<(&str, &str)> = Vec::new();
    for event in events.of(name) {
        if !meanings.iter().any(|(_, counts)| *counts == event.counts) {
            meanings.push((&event.cpus, &event.counts));
        }
    }
    let said = match &meanings[..] {
        [] => return None,
        [(_, counts)] => (*counts).to_owned(),
        several => {
            let each = several.iter().map(|(cpus, counts)| format!("{counts} (CPUs {cpus})"));
            each.collect::<Vec<_>>().join("; ")
        }
    };
    Some(format!("{}: {}.", events.shown(name), said.trim_end_matches('.')))
}

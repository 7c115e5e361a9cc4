//! Variants, the sweep and the command line's values: what makes one document several arms.

use crate::context::{Context, Place, flag};
use crate::document::{Node, Table, Value, read_flag};
use crate::outline::Outline;
use crate::paths::{self, Assignment, Reach, Setting};
use crate::refusal::Problem;
use crate::{read, schema, words};

/// The variant of a scenario that declares none.
const ONLY_VARIANT: &str = "base";

/// One variant.
#[derive(Clone, Debug)]
pub(crate) struct Variant {
    pub(crate) name: String,
    /// Its own `placement`.
    pub(crate) placement: Option<Node>,
    /// `[variant.set]`.
    pub(crate) set: Vec<Assignment>,
}

/// One swept path and its values.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) values: Vec<Assignment>,
}

/// Everything that makes arms.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expansion {
    pub(crate) variants: Vec<Variant>,
    pub(crate) sweep: Vec<Axis>,
    /// Values of the command line: they hold in every arm, after everything else.
    pub(crate) flags: Vec<Assignment>,
}

impl Expansion {
    /// Puts in values that hold in every arm. A swept path that one of them sets has that one value.
    pub(crate) fn pin(&mut self, flags: Vec<Assignment>) {
        for flag in &flags {
            for axis in &mut self.sweep {
                let Some(first) = axis.values.first().filter(|first| first.setting == flag.setting) else {
                    continue;
                };
                axis.values = vec![Assignment { written: first.written.clone(), ..flag.clone() }];
            }
        }
        self.flags = flags;
    }

    /// Every full path that is set somewhere, with the place of each value.
    pub(crate) fn settings(&self) -> Vec<(String, Place)> {
        let sets = self.variants.iter().flat_map(|variant| &variant.set);
        let swept = self.sweep.iter().flat_map(|axis| &axis.values);
        let all = self.flags.iter().chain(sets).chain(swept);
        all.map(|assignment| (assignment.setting.path(), assignment.node.place.clone())).collect()
    }

    /// How many arms there will be; `None` past what a number can hold.
    pub(crate) fn arm_count(&self) -> Option<usize> {
        self.sweep.iter().try_fold(self.variants.len(), |count, axis| count.checked_mul(axis.values.len()))
    }
}

/// Reads `[[variant]]` and `[sweep]`.
pub(crate) fn read(context: &mut Context, root: &Table, outline: &Outline) -> Expansion {
    let names = outline.variants.iter().cloned();
    let tables = root.listed("variant");
    let mut variants: Vec<Variant> =
        names.zip(tables).map(|(name, (_, table))| variant(context, outline, name, table)).collect();
    if variants.is_empty() {
        variants.push(Variant { name: ONLY_VARIANT.to_owned(), placement: None, set: Vec::new() });
    }
    let expansion = Expansion { sweep: sweep(context, root, outline), variants, flags: Vec::new() };
    swept_placement(context, &expansion);
    if expansion.arm_count().is_none_or(|count| count > schema::ARMS_MAX) {
        let place = root.entry("sweep").map_or_else(Place::default, |entry| entry.key_place.clone());
        let count = expansion.arm_count().map_or("too many".to_owned(), |count| count.to_string());
        context.refuse(
            Problem::at(&place, format!("the sweep makes {count} arms"))
                .label(format!("more than {}", schema::ARMS_MAX))
                .cure(
                    "its lists multiply, and with the variants: shorten them, or split the scenario in several files",
                ),
        );
        return Expansion { sweep: Vec::new(), ..expansion };
    }
    expansion
}

fn variant(context: &mut Context, outline: &Outline, name: String, table: &Table) -> Variant {
    let placement = table.get("placement").cloned();
    let Some(node) = table.get("set") else {
        return Variant { name, placement, set: Vec::new() };
    };
    let Some(settings) = node.table() else {
        read::wrong_type(context, node, "set", "a table", "{ \"role.NAME.workers\" = 2 }, or [variant.set] below it");
        return Variant { name, placement, set: Vec::new() };
    };
    let mut set: Vec<Assignment> = Vec::new();
    for (segments, key_place, node) in paths::flatten(settings) {
        let Some(setting) = paths::resolve(context, outline, &segments, &key_place, Reach::Arm) else {
            continue;
        };
        if setting == Setting::Placement {
            context.refuse(
                Problem::at(&key_place, "a variant's placement is a key of its own")
                    .label("set by another way")
                    .cure("write placement = … under [[variant]], above [variant.set]"),
            );
            continue;
        }
        let assignment = Assignment { written: segments.join("."), key_place, setting, node };
        refuse_twice(context, set.iter(), &assignment);
        set.push(assignment);
    }
    Variant { name, placement, set }
}

/// One path, spelled in two ways, would be set twice.
fn refuse_twice<'a>(context: &mut Context, mut known: impl Iterator<Item = &'a Assignment>, new: &Assignment) {
    if let Some(first) = known.find(|known| known.setting == new.setting) {
        context.refuse(
            Problem::at(&new.key_place, format!("`{}` is set twice", words::shown(&new.setting.path())))
                .label("the second")
                .also(&first.key_place, "the first")
                .cure("keep one of the two"),
        );
    }
}

fn sweep(context: &mut Context, root: &Table, outline: &Outline) -> Vec<Axis> {
    let Some(table) = root.get("sweep").and_then(Node::table) else {
        return Vec::new();
    };
    let mut axes: Vec<Axis> = Vec::new();
    for (segments, key_place, node) in paths::flatten(table) {
        let Some(setting) = paths::resolve(context, outline, &segments, &key_place, Reach::Arm) else {
            continue;
        };
        let written = segments.join(".");
        let Value::Array(nodes) = node.value else {
            read::wrong_type(context, &node, &written, "a list of values", "[1, 2]");
            continue;
        };
        if nodes.is_empty() {
            let what = format!("the sweep of `{}` is empty", words::shown(&written));
            context.refuse(Problem::at(&node.place, what).label("no value").cure("list at least one value"));
        }
        let new = |node| Assignment {
            written: written.clone(),
            key_place: key_place.clone(),
            setting: setting.clone(),
            node,
        };
        let values: Vec<Assignment> = nodes.into_iter().take(schema::ARMS_MAX + 1).map(new).collect();
        refuse_repeats(context, &values);
        if let Some(first) = values.first() {
            refuse_twice(context, axes.iter().flat_map(|axis| axis.values.first()), first);
            axes.push(Axis { values });
        }
    }
    axes
}

/// Two equal values would make two arms of one name.
fn refuse_repeats(context: &mut Context, values: &[Assignment]) {
    let texts: Vec<String> = values.iter().map(|value| value.node.compact()).collect();
    for (index, value) in values.iter().enumerate() {
        if let Some(first) = texts[..index].iter().position(|text| *text == texts[index]) {
            context.refuse(
                Problem::at(&value.node.place, "this value stands in the sweep's list twice")
                    .label("the second")
                    .also(&values[first].node.place, "the first")
                    .cure("keep one: both would make the same arm"),
            );
        }
    }
}

/// A swept placement would silently replace a variant's own.
fn swept_placement(context: &mut Context, expansion: &Expansion) {
    let swept = expansion.sweep.iter().filter_map(|axis| axis.values.first());
    let swept: Vec<&Assignment> = swept.filter(|value| value.setting == Setting::Placement).collect();
    let own = expansion.variants.iter().find_map(|variant| variant.placement.as_ref());
    if let (Some(swept), Some(own)) = (swept.first(), own) {
        context.refuse(
            Problem::at(&swept.key_place, "`placement` is swept, and a variant has its own")
                .label("the sweep")
                .also(&own.place, "a variant's own")
                .cure("leave one out: the arms of a sweep differ in what it lists"),
        );
    }
}

/// Reads the command line's values.
pub(crate) fn flags(
    context: &mut Context,
    overrides: &[(String, String)],
    root: &Table,
    outline: &Outline,
) -> Vec<Assignment> {
    let mut flags: Vec<Assignment> = Vec::new();
    for (index, (path, value)) in overrides.iter().enumerate() {
        let shift = flag(path).len();
        let name = Place { text: index + 1, start: 0, end: shift.saturating_sub(1) };
        let Some(node) = read_flag(context, index, shift, value) else {
            continue;
        };
        let segments: Vec<String> = path.split('.').map(str::to_owned).collect();
        let Some(setting) = paths::resolve(context, outline, &segments, &name, Reach::Run) else {
            continue;
        };
        let own = root.listed("variant").any(|(_, table)| table.get("placement").is_some());
        if setting == Setting::Placement && own {
            let what = "the variants of this scenario have placements of their own";
            context.refuse(Problem::at(&name, what).label("would make them equal").cure("leave the flag out"));
            continue;
        }
        // As usual on command lines, the last of several counts.
        flags.retain(|earlier| earlier.setting != setting);
        flags.push(Assignment { written: path.clone(), key_place: name, setting, node });
    }
    flags
}

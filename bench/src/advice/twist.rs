//! A case's text turned into another one: the same under other names and in another order, or with its fields' parts given
//! to each other. Text in, text out, so that `advise` sees what a user would have written.

use serde::Serialize;
use std::collections::BTreeMap;

/// What is done to a case.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Twist {
    /// Nothing.
    AsIs,
    /// Fields have other names, and their sections stand in another order.
    Shuffled,
    /// Fields of one type play each other's parts in the loops, while their places stay.
    Permuted,
}

/// Words that begin a step; and others that mean something where a field's name could stand.
const VERBS: [&str; 16] = [
    "load", "store", "bump", "add", "swap", "cas", "post", "wait", "flush", "lock", "unlock", "rlock", "runlock",
    "every", "work", "pause",
];
/// Words of the schema that a field may be named as well: such a field keeps its name.
const WORDS: [&str; 27] = [
    "field",
    "type",
    "each",
    "count",
    "at",
    "worker",
    "variant",
    "name",
    "placement",
    "offsets",
    "set",
    "role",
    "loop",
    "workers",
    "cpus",
    "measure",
    "window",
    "warm_up",
    "repetitions",
    "title",
    "question",
    "lock",
    "kind",
    "declared",
    "packed",
    "expect",
    "sleep",
];

impl Twist {
    /// As the table calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Twist::AsIs => "as it is",
            Twist::Shuffled => "shuffled",
            Twist::Permuted => "permuted",
        }
    }

    /// The text with that done to it.
    pub(crate) fn of(self, text: &str) -> String {
        match self {
            Twist::AsIs => text.to_owned(),
            Twist::Shuffled => reversed(&renamed(text)),
            Twist::Permuted => permuted(text),
        }
    }
}

/// The names of its variants, in order.
pub(super) fn variants(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut in_variant = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            in_variant = line == "[[variant]]";
        } else if let Some(rest) = line.strip_prefix("name").filter(|_| in_variant) {
            names
                .extend(rest.trim_start_matches([' ', '=']).trim().strip_prefix('"').and_then(|s| s.split('"').next()));
        }
    }
    names
}

/// Without its `[[expect]]` sections, whose claims name variants that are not run.
pub(super) fn without_claims(text: &str) -> String {
    sections(text)
        .into_iter()
        .filter(|section| !section.contains("\n[[expect]]\n"))
        .map(|s| s[1..].to_owned())
        .collect()
}

/// The text in pieces, each beginning with a newline before its section's head, comments above a head left behind it.
fn sections(text: &str) -> Vec<String> {
    let mut sections = vec!["\n".to_owned()];
    for line in text.lines() {
        // A list that goes over several lines holds no line that begins so.
        if line.starts_with('[') {
            sections.push("\n".to_owned());
        }
        let last = sections.last_mut().expect("there is one");
        last.push_str(line);
        last.push('\n');
    }
    sections
}

/// The fields and what follows in their sections, in order.
fn fields(text: &str) -> Vec<(String, String)> {
    let of = |section: &String| {
        let rest = section.strip_prefix("\n[field.")?;
        let (name, body) = rest.split_once(']')?;
        Some((name.to_owned(), body.to_owned()))
    };
    sections(text).iter().filter_map(of).collect()
}

/// Each name in `names` replaced by its other, in all text that is no comment and where `wanted` says so of the quoted
/// string that it stands in; `None` is outside of strings.
fn replaced(text: &str, names: &BTreeMap<String, String>, wanted: impl Fn(Option<&str>) -> bool) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        if ["title", "question", "#"].iter().any(|prose| line.starts_with(prose)) {
            out.push_str(line);
            continue;
        }
        let mut inside = false;
        for (nth, piece) in line.split('"').enumerate() {
            if nth > 0 {
                out.push('"');
                inside = !inside;
            }
            if !inside && piece.contains('#') {
                let (code, comment) = piece.split_at(piece.find('#').unwrap_or(piece.len()));
                out.push_str(&if wanted(None) { words(code, names) } else { code.to_owned() });
                out.push_str(comment);
                // What follows in quotes is of the comment.
                let rest = line.split('"').skip(nth + 1).map(|piece| format!("\"{piece}"));
                out.extend(rest);
                break;
            }
            let touch = wanted(inside.then_some(piece));
            out.push_str(&if touch { words(piece, names) } else { piece.to_owned() });
        }
    }
    out
}

fn words(text: &str, names: &BTreeMap<String, String>) -> String {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut out = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find(is_letter) {
        out.push_str(&rest[..begin]);
        let word = rest[begin..].split(|c| !is_letter(c)).next().unwrap_or_default();
        out.push_str(names.get(word).map_or(word, String::as_str));
        rest = &rest[begin + word.len()..];
    }
    out + rest
}

/// Fields under names whose order is no order of theirs.
fn renamed(text: &str) -> String {
    let may = |name: &String| !VERBS.contains(&name.as_str()) && !WORDS.contains(&name.as_str());
    let names = fields(text).into_iter().map(|(name, _)| name).filter(may).enumerate();
    let names = names.map(|(nth, name)| (name, format!("f{}", (nth * 7 + 3) % 101))).collect();
    // Titles and questions are text; everything else in quotes is a step, a path, or a word of the schema.
    replaced(text, &names, |quoted| quoted.is_none_or(|text| is_step(text) || text.starts_with("field.")))
}

/// The sections of fields in the opposite order, each in another's place.
fn reversed(text: &str) -> String {
    let sections = sections(text);
    let is_field = |section: &&String| section.starts_with("\n[field.");
    let mut backwards = sections.iter().filter(is_field).rev();
    let take = |section: &String| match is_field(&section) {
        true => backwards.next().unwrap_or(section)[1..].to_owned(),
        false => section[1..].to_owned(),
    };
    sections.iter().map(take).collect()
}

fn is_step(text: &str) -> bool {
    VERBS.contains(&text.split(' ').next().unwrap_or_default())
}

/// Fields of one type and number of elements take each other's parts in all loops, in a ring; of fields that some loop names.
fn permuted(text: &str) -> String {
    let shape = |name: &str, body: &str| -> Vec<String> {
        let keys = ["type", "each", "count"];
        // Who lacks a place in some variant takes no part of one that has it there.
        let places = sections(text).into_iter().filter(|section| section.starts_with("\n[variant.placement.offsets]"));
        let placed = places.map(|section| section.lines().any(|line| line.split([' ', '=']).next() == Some(name)));
        let placed = placed.map(|placed| placed.to_string());
        // An array in some variant alone takes no part that a value has there.
        let set =
            keys.iter().filter(|key| text.contains(&format!("\"field.{name}.{key}\""))).map(|key| (*key).to_owned());
        let lines = body.lines().map(|line| line.split('#').next().unwrap_or_default().replace(' ', ""));
        lines
            .filter(|line| keys.iter().any(|key| line.starts_with(&format!("{key}="))))
            .chain(set)
            .chain(placed)
            .collect()
    };
    let mut alike: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    for (name, body) in fields(text).into_iter().filter(|(name, _)| is_used_before(text, name)) {
        alike.entry(shape(&name, &body)).or_default().push(name);
    }
    let mut names = BTreeMap::new();
    for group in alike.values() {
        for (nth, name) in group.iter().enumerate() {
            names.insert(name.clone(), group[(nth + 1) % group.len()].clone());
        }
    }
    replaced(text, &names, |quoted| quoted.is_some_and(is_step))
}

/// Whether a role's own loop names it, which all variants have that set no other: a field of one variant alone has no place in
/// the others.
fn is_used_before(text: &str, name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let of_roles = sections(text).into_iter().filter(|section| section.starts_with("\n[[role]]"));
    of_roles.flat_map(|s| s.split(|c| !is_letter(c)).map(str::to_owned).collect::<Vec<_>>()).any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASE: &str = r#"# add a to b
title = "load a into b"
placement = "declared"

[field.a]
type = "u64" # a
at = 0

[field.b]
type = "u64"
at = 8

[field.lock]
type = "u32"
at = 16

[[variant]]
name = "before"

[[variant]]
name = "after"
[variant.set]
"field.b.at" = 64

[[role]]
name = "writer"
loop = ["bump a", "every 4 load b", "add lock"]

[[expect]]
claim = "ns_per_op(before) > ns_per_op(after)"
"#;

    fn arm(text: &str) -> plan::Plan {
        scenario::parse("case.toml", text).unwrap_or_else(|refusal| panic!("{refusal}\n{text}")).plan
    }

    #[test]
    fn a_shuffled_case_is_the_same_under_other_names() {
        let text = Twist::Shuffled.of(CASE);
        let (plan, twisted) = (arm(CASE), arm(&text));
        let places = |plan: &plan::Plan| {
            let mut at: Vec<_> = plan.arms[1].case.fields.iter().map(|f| (f.at, f.width)).collect();
            at.sort_by_key(|(at, _)| *at);
            at
        };
        assert_eq!(places(&plan), places(&twisted));
        let steps =
            |plan: &plan::Plan| plan.arms[0].case.roles[0].steps.iter().map(|s| s.text.clone()).collect::<Vec<_>>();
        assert_eq!(steps(&twisted), ["bump f3", "every 4 load f10", "add lock"]);
        let order: Vec<&str> = twisted.arms[0].case.fields.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(order, ["lock", "f10", "f3"]);
        assert!(text.starts_with("# add a to b\ntitle = \"load a into b\""), "{text}");
    }

    #[test]
    fn a_permuted_case_gives_fields_other_parts_and_leaves_their_places() {
        let twisted = arm(&Twist::Permuted.of(CASE));
        let steps: Vec<&str> = twisted.arms[0].case.roles[0].steps.iter().map(|s| s.text.as_str()).collect();
        assert_eq!(steps, ["bump b", "every 4 load a", "add lock"]);
        assert_eq!(twisted.arms[0].case.fields, arm(CASE).arms[0].case.fields);
    }

    #[test]
    fn every_published_case_stays_sound_whatever_is_done_to_it() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/cases");
        let mut seen = 0;
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let pairs = super::super::pairs(&text);
            assert!(!pairs.is_empty(), "{}: a variant `before` and one `after`", path.display());
            for twist in [Twist::AsIs, Twist::Shuffled, Twist::Permuted] {
                let plan = arm(&without_claims(&twist.of(&text)));
                let cpu = |id| plan::Cpu { id: plan::CpuId(id), core: id, llc: 0, node: 0, socket: 0, usable: true };
                let bound = plan::bind(&plan, &plan::Topology { cpus: (0..4).map(cpu).collect() }, 0);
                assert!(bound.is_ok(), "{}, {twist:?}: {bound:?}", path.display());
                let changed = plan.arms[0].case != arm(&text).arms[0].case;
                assert!(twist != Twist::Shuffled || changed, "{}", path.display());
            }
            seen += 1;
        }
        assert!(seen > 10, "{seen}");
    }

    #[test]
    fn claims_are_left_out_and_variants_found() {
        let text = without_claims(CASE);
        assert!(!text.contains("expect") && arm(&text).expects.is_empty());
        assert_eq!(variants(CASE), ["before", "after"]);
        assert_eq!(arm(&text).arms, arm(CASE).arms);
    }
}

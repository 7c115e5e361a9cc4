//! What `scenarios/README.md` says of each key, so that an editor shows the same words as the reference.

use super::SECTIONS;
use serde_json::Value;

const README: &str = include_str!("../../../../scenarios/README.md");

/// The reference's row on one key.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Row {
    /// What the key means, with its bounds and its default.
    pub(super) description: String,
    /// The default, where it is one value.
    pub(super) default: Option<Value>,
}

/// The lines under the heading of a section, as [`SECTIONS`] name it, up to the next heading of any level.
fn under(section: &str) -> impl Iterator<Item = &'static str> {
    let heading = match section {
        name if name == SECTIONS[0].0 => "## At the top of the file".to_owned(),
        name => format!("## {name}"),
    };
    let lines = README.lines().skip_while(move |line| *line != heading).skip(1);
    lines.take_while(|line| !line.starts_with('#'))
}

/// The first paragraph on a section, where prose comes before its tables.
pub(super) fn prose(section: &str) -> Option<String> {
    let lines = under(section).skip_while(|line| line.is_empty()).take_while(|line| !line.is_empty());
    let text = lines.collect::<Vec<_>>().join(" ");
    (!text.is_empty() && !text.starts_with('|')).then_some(text)
}

/// The row on `key` in the table of keys of a section.
pub(super) fn row(section: &str, key: &str) -> Option<Row> {
    let mut tables = under(section).skip_while(|line| !line.starts_with("| key |")).take_while(|l| l.starts_with('|'));
    let heads = cells(tables.next()?);
    let row = tables.map(cells).find(|row| row.first().is_some_and(|first| *first == format!("`{key}`")))?;
    let cell = |head| heads.iter().position(|name| *name == head).and_then(|at| row.get(at)).copied().unwrap_or("");
    let mut description = capitalised(cell("meaning"));
    for (word, text) in [("Bounds", cell("bounds")), ("Default", cell("default"))] {
        if !text.is_empty() && text != "required" {
            description.push_str(&format!(". {word}: {text}"));
        }
    }
    let bare = cell("default").strip_prefix('`').and_then(|text| text.strip_suffix('`'));
    Some(Row { description, default: bare.and_then(|text| serde_json::from_str(text).ok()) })
}

fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_s_words_are_found() {
        let window = row("[measure]", "window").unwrap();
        assert!(window.description.starts_with("How long one repetition is measured"), "{window:?}");
        assert!(window.description.ends_with(". Bounds: 1ms to 1h. Default: `\"100ms\"`"), "{window:?}");
        assert_eq!(window.default, Some("100ms".into()));
        assert_eq!(row("[[role]]", "name").unwrap().default, None);
        assert_eq!((row("[measure]", "windo"), row("[meter]", "window")), (None, None));
        assert!(prose("[lock.NAME]").unwrap().starts_with("A lock that processes share"));
        assert_eq!(prose("[measure]"), None, "its table comes first");
    }

    #[test]
    fn every_key_has_a_row_in_the_reference() {
        for (section, keys) in SECTIONS {
            // Those at the top of the file that are sections have tables of their own.
            let listed = README.lines().find(|line| line.starts_with("The sections are")).unwrap();
            let is_section = |key: &str| section == &SECTIONS[0].0 && listed.contains(&format!("`{key}`"));
            for key in keys.iter().filter(|key| !is_section(key)) {
                assert!(row(section, key).is_some_and(|row| !row.description.is_empty()), "{section}: {key}");
            }
        }
    }
}

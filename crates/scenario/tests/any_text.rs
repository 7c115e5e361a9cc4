//! No text makes the parser panic: random text, random TOML words, and shipped scenarios with pieces cut, doubled and
//! swapped.

use proptest::prelude::*;
use proptest::sample::Index;
use scenario::{parse, parse_with, schema};
use std::path::Path;

/// Parses and, where refused, renders both ways.
fn try_all(text: &str) {
    match parse("any.toml", text) {
        Ok(loaded) => {
            let path = "role.counter.cpus".to_owned();
            let error = plan::BindError { path, message: String::new(), cure: String::new() };
            loaded.source.refuse(&error).render(true);
        }
        Err(refusal) => {
            assert!(refusal.count() > 0, "refused without a problem");
            assert!(!refusal.render(false).is_empty());
            refusal.render(true);
        }
    }
}

fn shipped() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let entries = std::fs::read_dir(folder).expect("the folder of scenarios");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read_to_string(path).expect("a scenario")).collect()
}

/// Words that scenarios are made of, so that random documents come past the first check.
fn word() -> impl Strategy<Value = String> {
    let mut words: Vec<String> =
        schema::SECTIONS.iter().flat_map(|(_, keys)| keys.iter()).map(|k| k.to_string()).collect();
    words.extend(schema::VERBS.iter().map(|verb| verb.name.to_owned()));
    words.extend(schema::BARE_PATHS.iter().map(|path| path.to_string()));
    let more = "[ ] [[ ]] { } = , . \" ' \n # $ $x 0 1 64 -1 1e9 99999999999999999999 true \
                \"u64\" \"worker\" \"100ms\" \
                \"packed\" \"role.r.loop\" \"measure.window\" ns_per_op( ) >= * @ : a r f µ \u{1b} \u{202e} \r";
    words.extend(more.split(' ').map(str::to_owned));
    proptest::sample::select(words)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_text(text in ".{0,200}") {
        try_all(&text);
    }

    #[test]
    fn random_words(words in proptest::collection::vec((word(), any::<bool>()), 0..80)) {
        let text: String = words.iter().map(|(word, gap)| format!("{word}{}", if *gap { " " } else { "" })).collect();
        try_all(&text);
    }

    #[test]
    fn a_shipped_scenario_with_damage(
        file in any::<Index>(),
        damage in proptest::collection::vec((any::<Index>(), 0usize..30, word()), 1..6),
    ) {
        let mut text: Vec<char> = file.get(&shipped()).chars().collect();
        for (at, length, word) in damage {
            let at = at.index(text.len());
            let end = (at + length).min(text.len());
            text.splice(at..end, word.chars());
        }
        try_all(&text.into_iter().collect::<String>());
    }

    /// Damage within a value gets further than damage anywhere: the document stays TOML.
    #[test]
    fn a_shipped_scenario_with_other_values(file in any::<Index>(), at in any::<Index>(), value in any::<Index>()) {
        let values = ["0", "-1", "1.5", "true", "[]", "{}", "''", "'$x'", "['add']", "[[0], [1]]",
            "{ pad = 3 }", "'1h'",
            "99999999999999999999999999999999999999999", "{ offsets = { hits = [0, 0] } }", "2026-11-29", "['every']",
            "{ a.b.c = 1 }", "'ns_per_op('", "\"\\u001b\\t\"", "'''\nx\n'''"];
        let files = shipped();
        let text = file.get(&files);
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let assignments: Vec<usize> = (0..lines.len())
            .filter(|line| !lines[*line].starts_with('#') && lines[*line].contains('='))
            .collect();
        let line = *at.get(&assignments);
        let key = lines[line].split('=').next().unwrap_or_default().to_owned();
        lines[line] = format!("{key}= {}", value.get(&values));
        try_all(&lines.join("\n"));
    }

    #[test]
    fn a_shipped_scenario_under_any_flag(file in any::<Index>(), path in "[a-z.]{0,20}", value in ".{0,20}") {
        let files = shipped();
        let text: &String = file.get(&files);
        for path in [path.as_str(), "workers", "cpus", "placement", "measure.window"] {
            let flags = [(path.to_owned(), value.clone())];
            if let Err(refusal) = parse_with("any.toml", text, &flags) {
                refusal.render(true);
            }
        }
    }
}

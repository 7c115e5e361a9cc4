//! No text makes the parser panic: random text, random TOML words, and any flags. Scenarios of the repository that are bent
//! out of shape are in `crates/hostile`.

use hostile::doors;
use hostile::sound::SCENARIOS;
use proptest::prelude::*;
use proptest::sample::Index;
use scenario::{parse_with, schema};

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
        doors::scenario(text.as_bytes());
    }

    #[test]
    fn random_words(words in proptest::collection::vec((word(), any::<bool>()), 0..80)) {
        let text: String = words.iter().map(|(word, gap)| format!("{word}{}", if *gap { " " } else { "" })).collect();
        doors::scenario(text.as_bytes());
    }

    #[test]
    fn a_shipped_scenario_under_any_flag(file in any::<Index>(), path in "[a-z.]{0,20}", value in ".{0,20}") {
        let text = std::str::from_utf8(&file.get(&SCENARIOS).bytes).expect("a text");
        for path in [path.as_str(), "workers", "cpus", "placement", "measure.window"] {
            let flags = [(path.to_owned(), value.clone())];
            if let Err(refusal) = parse_with("any.toml", text, &flags) {
                hostile::hold::terminal(&refusal.render(false));
                refusal.render(true);
            }
        }
    }
}

//! Whatever a saved run holds, looking back at it ends, with nothing on the terminal to obey: bent records through
//! everything that reads them here. Pages are looked at in `crates/hostile`.

use crate::export::points::points;
use crate::export::{hlog, line_protocol, tidy};
use crate::report::logs::Logs;
use crate::report::style::{ColourChoice, Style};
use crate::report::{compare, files, names, terminal, testing};
use crate::saved::{Saved, SavedError};
use analysis::compare::{Condition, NamedRun, judge};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::read::ZlibEncoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use hostile::bend::Move;
use hostile::sound::Sound;
use hostile::{Reached, bend, bent, hold, through};
use record::Run;
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};

fn runs() -> Vec<Run> {
    let made = [
        testing::false_sharing(),
        testing::mutex(),
        testing::open_loop(),
        testing::stalled(),
        testing::every_reading(),
        testing::poor(),
        testing::modelled(),
        testing::two_roles(),
    ];
    let real = serde_json::from_slice(&hostile::sound::RUN[0].bytes).unwrap();
    made.into_iter().chain([real]).collect()
}

/// Two widths, of which one is coloured: its own escape sequences are looked at elsewhere.
fn shown(run: &Run) {
    for width in [40, 80] {
        hold::terminal(&terminal::render(run, Some(Path::new("results/x")), &Style::plain(width)));
    }
    terminal::render(run, None, &Style::decide(ColourChoice::Always, Some(100), |_| None, false));
}

fn compared(run: &Run, sound: &Run) {
    let named = |path, run| NamedRun { path, run };
    for pair in [vec![named("a/run.json", run), named("b/run.json", sound)], vec![named("a/run.json", run)]] {
        let Ok(mut comparison) = analysis::compare::compare(&pair, None) else { continue };
        let condition = Condition::parse("packed slower 5%").unwrap();
        if let Err(error) = judge(&mut comparison, &[condition]) {
            // The name of an arm stands in it: `exit` escapes it.
            assert!(!error.to_string().is_empty());
        }
        hold::terminal(&compare::render(&comparison, &Style::plain(80)));
        hold::terminal(&compare::markdown::render(&comparison));
    }
}

fn exported(saved: &Saved) {
    match points(saved) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(exported) => {
            let lines = line_protocol::lines(&exported.points);
            assert!(lines.iter().all(|line| line.ends_with('\n')));
            tidy::write(&exported.points, std::io::sink()).unwrap();
        }
    }
}

/// What the commands that look back do with the bytes of a `run.json`.
fn look_back(path: &Path, bytes: &[u8], sound: &Run) -> Reached {
    std::fs::write(path, bytes).unwrap();
    match Saved::read(path) {
        Err(error) => {
            hold::terminal(&error.to_string());
            assert!(!matches!(error, SavedError::Unreadable { .. }), "{error}");
            Reached::Refused
        }
        Ok(saved) => {
            shown(&saved.run);
            compared(&saved.run, sound);
            exported(&saved);
            Reached::Inside
        }
    }
}

/// A place in memory, where there is one, for files that are written a million times.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

#[test]
fn any_run_is_looked_back_at_without_harm() {
    let (runs, folder) = (runs(), folder());
    let values: Vec<Value> = runs.iter().map(|run| serde_json::to_value(run).unwrap()).collect();
    let sound = |(number, value): (usize, &Value)| Sound {
        name: number.to_string(),
        bytes: serde_json::to_vec(value).unwrap(),
        read: Vec::new(),
    };
    let sound: Vec<Sound> = values.iter().enumerate().map(sound).collect();
    let inputs = bent(&sound, |of, moves| bend::json(&values[of.name.parse::<usize>().unwrap()], moves));
    through("runs looked back at", inputs, |bytes| look_back(&folder.path().join("bent.json"), bytes, &runs[0]));
}

/// A run that was written with its log of latencies.
fn logged(folder: &Path) -> (Saved, PathBuf) {
    let mut run = testing::mutex();
    for (nth, seen) in run.observations.iter_mut().enumerate() {
        testing::give_times(seen, nth as u64);
    }
    let folder = files::write(&run, Logs::default(), folder, "s").unwrap();
    (Saved::read(&folder).unwrap(), folder.join(names::LATENCIES))
}

#[test]
fn any_log_of_latencies_is_passed_on_or_refused_without_harm() {
    let folder = folder();
    let (saved, path) = logged(folder.path());
    let bytes = std::fs::read(&path).unwrap();
    let sound = [Sound { name: names::LATENCIES.into(), read: Vec::new(), bytes }];
    through("logs of latencies", bent(&sound, bent_log), |bytes| {
        std::fs::write(&path, bytes).unwrap();
        match hlog::checked(&saved) {
            Ok(passed) => {
                assert_eq!(passed, bytes);
                Reached::Inside
            }
            Err(error) => {
                let said = error.to_string();
                hold::terminal(&said);
                // Read, and held against the record: far behind the reader.
                let read = said.contains("which run.json has") || said.contains("and run.json says");
                if read { Reached::Inside } else { Reached::Refused }
            }
        }
    });
}

/// One of its histograms unpacked, bent as bytes, and packed again, as it would be to get past the packing's sums; one in
/// four bent as text.
fn bent_log(sound: &Sound, moves: &[Move]) -> Vec<u8> {
    let text = String::from_utf8(sound.bytes.clone()).unwrap();
    let Some(((what, at, ..), rest)) = moves.split_first() else { return sound.bytes.clone() };
    if what.is_multiple_of(4) {
        return bend::bytes(sound, moves);
    }
    let histograms: Vec<&str> =
        text.lines().filter(|line| line.starts_with("Tag=")).filter_map(|line| line.rsplit(',').next()).collect();
    let old = *at.get(&histograms);
    let bytes = BASE64_STANDARD.decode(old).unwrap();
    let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
    let mut plain = Vec::new();
    V2Serializer::new().serialize(&histogram, &mut plain).unwrap();
    let bent = bend::bytes(&Sound { name: String::new(), read: vec![0..20, 20..40], bytes: plain }, rest);
    text.replace(old, &packed(&bent)).into_bytes()
}

/// A histogram as it stands in a log.
fn packed(plain: &[u8]) -> String {
    let mut zipped = Vec::new();
    ZlibEncoder::new(plain, Compression::fast()).read_to_end(&mut zipped).unwrap();
    let head = [0x1c84_9314_u32.to_be_bytes(), (zipped.len() as u32).to_be_bytes()];
    BASE64_STANDARD.encode([head.concat(), zipped].concat())
}

#[test]
fn a_histogram_that_says_it_is_enormous_is_refused_at_once() {
    let folder = folder();
    let (saved, path) = logged(folder.path());
    let text = std::fs::read_to_string(&path).unwrap();
    let old = text.lines().find(|line| line.starts_with("Tag=")).and_then(|line| line.rsplit(',').next()).unwrap();
    let numbers = |told: u32, digits: u32| [0x1c84_9313, told, 0, digits].map(u32::to_be_bytes).concat();
    let rest = [1_u64.to_be_bytes(), u64::MAX.to_be_bytes(), 1_f64.to_be_bytes()].concat();
    let (long, fine, early) = (vec![0; 1 << 28], numbers(4, 5), numbers(u32::MAX, 3));
    for (plain, why) in [
        ([numbers(1 << 28, 3), rest.clone(), long].concat(), "longer than any"),
        ([fine, rest.clone(), vec![0; 4]].concat(), "not of 3 digits"),
        ([early, rest, vec![0; 4]].concat(), "ends early"),
    ] {
        std::fs::write(&path, text.replace(old, &packed(&plain))).unwrap();
        let error = hlog::checked(&saved).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

//! `run --predict`: read before anything runs, asked for where the number is missing, kept, and shown beside what was seen.

mod common;

use common::{Bench, QUICK, alone, coordinator, stderr, stdout};
use record::Run;
use std::io::Write;
use std::process::{Output, Stdio};

/// A run of the quick scenario with these predictions and this on standard input.
fn predicted(bench: &Bench, predictions: &[&str], input: &str) -> Output {
    let mut command = bench.run();
    command.args(["--quiet", "--repetitions", "3"]);
    for prediction in predictions {
        command.args(["--predict", prediction]);
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // One that is refused does not read.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn predictions_are_kept_and_shown_beside_what_was_seen() {
    let _alone = alone();
    let bench = Bench::new(QUICK);
    let output = predicted(
        &bench,
        &["bytes(padded) = 512", "bytes( packed )", "ns_per_op(packed)/ns_per_op(padded)"],
        "16\n9\n",
    );
    // Whether noise hid the answer (3) is the machine's business.
    assert!([0, 3].contains(&output.status.code().unwrap()), "{}", stderr(&output));
    let asked = stderr(&output);
    assert!(
        asked.contains("What do you predict? bytes( packed ) = What do you predict? ns_per_op(packed)/"),
        "{asked}"
    );
    let run: Run = serde_json::from_slice(&std::fs::read(bench.only_result().join("run.json")).unwrap()).unwrap();
    let [padded, packed, ratio] = &run.predictions[..] else { panic!("{:?}", run.predictions) };
    // Two workers: 8 bytes each, back to back, and 128 bytes each.
    assert_eq!((padded.seen.unwrap().median, padded.off_by, padded.inside), (256.0, Some(2.0), Some(false)));
    assert_eq!((packed.predicted, packed.off_by, packed.inside), (16.0, Some(1.0), Some(true)));
    assert_eq!(ratio.predicted, 9.0);
    assert_eq!((ratio.seen.is_some(), ratio.why.is_empty()), (ratio.off_by.is_some(), ratio.seen.is_some()));
    let page = stdout(&output).replace('\u{a0}', " ");
    let section: Vec<&str> = page.lines().skip_while(|line| *line != "Your predictions").take(5).collect();
    assert_eq!(
        section[1..3],
        ["predicted 512: bytes(padded)", "  seen 256: predicted 2 × too high, outside the interval"]
    );
    assert_eq!(section[4], "  seen 16.0: the prediction lies in the interval");
    let html = std::fs::read_to_string(bench.only_result().join("report.html")).unwrap();
    assert!(html.contains("What was predicted") && html.contains("predicted 2\u{a0}× too high"), "{html}");
}

#[test]
fn a_bad_prediction_is_refused_before_anything_runs() {
    let bench = Bench::new(QUICK);
    for (prediction, input, why) in [
        ("ns_per_op(packd) = 5", "", "did you mean `packed`?"),
        ("ns_per_op(packed) = many", "", "not a number"),
        ("ns_per_op(packed) > 5", "", "a prediction reads: metric(arm) / metric(arm) = 5"),
        ("ns_per_op(packed)", "", "no number was given: write --predict 'ns_per_op(packed) = 5'"),
        ("ns_per_op(packed)", "x\ny\nz\n1\n", "no number was given"),
    ] {
        let output = predicted(&bench, &[prediction], input);
        assert_eq!(output.status.code(), Some(2), "{prediction}: {}", stderr(&output));
        assert!(stderr(&output).contains(why), "{prediction}: {}", stderr(&output));
        assert!(!bench.results().exists(), "{prediction}: something ran");
    }
}

#[test]
fn a_dry_run_predicts_nothing() {
    let bench = Bench::new(QUICK);
    let mut command = coordinator();
    command.arg("run").arg(bench.scenario()).args(["--dry-run", "--predict", "bytes(packed) = 1"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--predict"), "{}", stderr(&output));
}

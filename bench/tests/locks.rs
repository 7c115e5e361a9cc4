//! `bench -- locks` as a user runs it, on two kinds and a few slices. What it finds is the machine's; that it goes
//! through, with updates counted exactly on both sides, and that its status says what its rows say, is the program's.

use serde_json::Value;
use std::process::Command;

#[test]
fn rows_and_exit_status_agree() {
    let locks = ["locks", "--only", "pthread,seqlock", "--pairs", "8", "--budget", "0", "--json"];
    let output = Command::new(env!("CARGO_BIN_EXE_bench")).args(locks).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let status = output.status.code();
    if status == Some(4) {
        return testing::skip(&said);
    }
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{status:?}: {said}"));
    assert_eq!((report["benchmark"].as_str(), report["bar"].as_f64()), (Some("locks"), Some(1.1)));
    let rows = report["rows"].as_array().unwrap();
    let named: Vec<String> = rows.iter().map(|row| format!("{} {}", text(row, "setting"), text(row, "name"))).collect();
    let expected = ["free pthread", "free seqlock", "free-readers seqlock", "contended pthread", "tries-first pthread"];
    assert_eq!(named, expected);
    for row in rows {
        let setting = text(row, "setting");
        assert_eq!(row["judged"].as_bool(), Some(setting != "tries-first"));
        let share = row["contended_share"].as_f64();
        match setting {
            "tries-first" => assert_eq!(share, None, "the lab takes no part"),
            "contended" => assert!(share.is_some_and(|share| (0.0..=1.0).contains(&share)), "{row}"),
            _ => assert_eq!(share, Some(0.0), "{row}"),
        }
    }
    let verdicts: Vec<&str> = rows.iter().filter(|row| row["judged"] == true).map(|row| text(row, "verdict")).collect();
    let expected = match () {
        () if verdicts.contains(&"over") => 1,
        () if verdicts.contains(&"unresolved") => 3,
        () => 0,
    };
    assert_eq!(status, Some(expected), "{verdicts:?}");
}

fn text<'v>(row: &'v Value, key: &str) -> &'v str {
    row[key].as_str().unwrap_or_else(|| panic!("no `{key}` in {row}"))
}

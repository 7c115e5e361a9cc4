//! `bench -- all` as a user runs it. What it finds is the machine's; that the table has its format, that a peer that is not
//! installed is said with how to get it, that rows of other parts stay, and that the status says what the rows say, is the
//! program's.

use serde_json::Value;
use std::process::{Command, Output};

/// With a PATH on which nothing is installed.
fn all(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bench")).arg("all").args(arguments).env("PATH", "").output().unwrap()
}

fn text(of: &[u8]) -> String {
    String::from_utf8_lossy(of).into_owned()
}

/// Cells of a line of the table.
fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

#[test]
fn a_missing_peer_is_a_row_that_says_how_to_get_it() {
    let output = all(&["--only", "sharing,latency"]);
    let table = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "what is missing is no failure: {}", text(&output.stderr));
    let lines: Vec<&str> = table.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(cells(lines[0]), ["part", "what", "against", "figure (95 %)", "control", "bar", ""]);
    assert_eq!(lines.len(), 4, "{table}");
    for (line, part, how) in [
        (lines[2], "latency", "not installed: `cargo install core-to-core-latency`"),
        (lines[3], "sharing", "not installed: `apt-get install stress-ng`"),
    ] {
        let cells = cells(line);
        assert!(cells[0].starts_with(&format!("[{part}](../bench/README.md#")), "{line}");
        assert_eq!(cells[2..], ["", "–", "–", "–", &format!("missing: {how}")], "no figure without a measurement");
    }
}

#[test]
fn rows_of_parts_that_are_not_measured_stay_where_they_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.md");
    let kept = "| [model](../bench/README.md#how-fast-the-model-is) | padded |  | 90.5 M/s | – | ≥ 20 M/s | within |";
    let page = |rows: &str| {
        format!("# Above\n<!-- all: written by `bench -- all --write` -->\n{rows}\n<!-- end of all -->\nBelow\n")
    };
    std::fs::write(&file, page(&format!("{kept}\n- model: 2026-01-01, 0.5 min"))).unwrap();
    let output = all(&["--only", "latency", "--write", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.starts_with("# Above\n") && written.ends_with("<!-- end of all -->\nBelow\n"), "{written}");
    let rows: Vec<&str> = written.lines().filter(|line| line.starts_with("| [")).collect();
    assert!(rows.len() == 2 && rows[0].contains("[latency]") && rows[1] == kept, "{written}");
    assert!(written.contains("- latency: ") && written.contains("- model: 2026-01-01"), "{written}");

    std::fs::write(&file, "no marks").unwrap();
    let output = all(&["--only", "latency", "--write", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("has no `<!-- all: written by"), "{}", text(&output.stderr));
}

#[test]
fn each_part_is_a_process_of_its_own_and_its_rows_are_judged_by_their_bars() {
    let output = all(&["--quick", "--only", "loops,latency", "--json"]);
    let said = text(&output.stderr);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    let parts = report["parts"].as_array().unwrap();
    assert_eq!(parts.iter().map(|part| part["part"].as_str().unwrap()).collect::<Vec<_>>(), ["loops", "latency"]);
    assert!(parts[0]["seconds"].as_f64() > Some(0.0) && said.contains("== loops"), "{said}");
    let rows = parts[0]["rows"].as_array().unwrap();
    if let Some(why) = rows[0]["state"]["missing"].as_str() {
        assert!(why.contains("may use 1 CPU"), "{why}");
        return testing::skip(why);
    }
    let named = |row: &Value| row["what"].as_str().unwrap().to_owned();
    assert_eq!(rows.iter().map(named).filter(|what| what.starts_with("padded `")).count(), 5, "{rows:?}");
    let (mut over, mut unresolved) = (false, false);
    for row in rows {
        assert_eq!(row["bar"]["at_most"].as_f64(), named(row).starts_with("padded").then_some(1.05), "{row}");
        over |= row["state"] == "over";
        unresolved |= row["state"] == "unresolved" && !row["bar"].is_null();
    }
    let expected = if over {
        1
    } else if unresolved {
        3
    } else {
        0
    };
    assert_eq!(output.status.code(), Some(expected), "{rows:?}");
}

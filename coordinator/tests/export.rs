//! `export`: what other programs get of a run, and that a real InfluxDB gives back what was written to it.

mod common;
#[path = "common/influx.rs"]
mod influx;

use common::{coordinator, stderr, stdout};
use influx::{Influx, Points};
use record::Run;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{LazyLock, mpsc};
use testing::skip;

/// Two workers at a lock, each pass timed. They may share a CPU: nothing is asserted on their speed.
const LOCKED: &str = r#"
title = "Locked"
question = "Who waits?"
oversubscribe = true
[measure]
window = "10ms"
warm_up = "1ms"
repetitions = 3
[field.hits]
type = "u64"
[lock.m]
kind = "pthread"
[[role]]
name = "counter"
workers = 2
latency = true
loop = ["lock m", "bump hits", "unlock m"]
"#;

/// A folder with a run as the program left it. The run is made once.
fn made() -> tempfile::TempDir {
    static FILES: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(|| {
        let bench = common::Bench::new(LOCKED);
        let output = bench.run().arg("--quiet").output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
        ["run.json", "latency.hlog"]
            .map(|name| (name.to_owned(), std::fs::read(bench.only_result().join(name)).unwrap()))
            .into()
    });
    let folder = tempfile::tempdir().unwrap();
    FILES.iter().for_each(|(name, bytes)| std::fs::write(folder.path().join(name), bytes).unwrap());
    folder
}

/// `coordinator export`, with no proxy between it and a test's own server.
fn export(run: &Path) -> Command {
    let mut command = coordinator();
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "INFLUX_TOKEN"] {
        command.env_remove(name);
    }
    command.arg("export").arg(run);
    command
}

fn exported(run: &Path, format: &str) -> Output {
    let output = export(run).args(["--format", format]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    output
}

/// A name with everything in it that the line protocol has a meaning for.
const ODD: &str = "a b,c=d \"e\" 'f'\nline two\\";

/// How such a name reads in a tag, which cannot hold a newline or a backslash.
const ODD_AS_TAG: &str = "a b,c=d \"e\" 'f'\u{240a}line two\u{ff3c}";

/// A folder with a run whose names are odd, and in which every part of a record has something: what a quick run on a
/// busy machine may lack is put in by hand.
fn odd() -> (tempfile::TempDir, Run) {
    let folder = made();
    let path = folder.path().join("run.json");
    let mut run: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let interval = json!({"median": 5.0, "low": 4.25, "high": 6.0});
    let times = json!({"count": 10, "min": 1, "mean": 2.5, "p50": 2, "p90": 3, "p99": 9, "p999": 90, "max": 9_000_000});
    let first = run["arms"][0]["name"].clone();
    run["scenario"]["path"] = json!("odd folder/odd, name=x.toml");
    run["scenario"]["question"] = json!(format!("{ODD}?"));
    run["host"]["hostname"] = json!("a host, of=mine");
    for arm in run["arms"].as_array_mut().unwrap() {
        for key in ["ns_per_op", "ratio_to_best", "ops_per_second"] {
            arm[key] = interval.clone();
        }
        arm["why"] = json!("because, \"so\"");
        for role in arm["roles"].as_array_mut().unwrap() {
            for key in ["latency_ns", "service_ns", "batch_ns", "batch_corrected_ns", "batch_before_ns"] {
                role[key] = times.clone();
            }
            role["counters"]["odd, counter=x"] = json!({
                "measured": {"state": "counted", "value": 9_007_199_254_740_993_u64, "ratio": null, "why": null,
                             "cure": null, "per_op": 0.1, "per_second": 1e300},
                "modelled": {"value": 1.0, "per_op": 0.25},
            });
        }
        for lock in arm["locks"].as_array_mut().unwrap() {
            (lock["wait_ns"], lock["hold_ns"]) = (times.clone(), times.clone());
            (lock["handoffs_per_op"], lock["contended_share"]) = (json!(0.5), json!(0.75));
        }
    }
    let arm = &mut run["arms"][0];
    arm["name"] = json!(ODD);
    arm["sweep"]["think time, x=y"] = json!("0 ns, or=none");
    let bucket = |start_ns: f64, p99_ns: f64| json!({"start_ns": start_ns, "count": 12, "min_ns": 300.5, "p50_ns": 310.0, "p99_ns": p99_ns, "max_ns": 9500.0});
    let span = |step: &str, start_ns: f64| json!({"step": step, "start_ns": start_ns, "end_ns": start_ns + 9000.25});
    let worker = |worker: u32, buckets: &[Value], calls: &[Value], stalls: &[Value]| {
        json!({"worker": worker, "role": "counter", "buckets": buckets, "calls": calls, "calls_left_out": 0,
               "stalls": stalls, "stalls_left_out": 4})
    };
    arm["timeline"] = json!({"block": 0, "bucket_ns": 1e6, "workers": [
        worker(0, &[bucket(0.0, 431.5), bucket(1e6, 9431.5)], &[], &[span("touch shared", 1_000_900.5)]),
        worker(1, &[], &[span("punch shared 16KiB, all=x", 1_000_200.25)], &[]),
    ]});
    run["expect"] = json!([{"claim": "ns_per_op(packed) >= 3 * ns_per_op(padded-64)", "state": "holds",
                            "seen": interval, "why": "it is"}]);
    let gain = json!({"arm": "control", "ratio": interval});
    run["diagnosis"] = json!([{"kind": "lock_contention", "severity": "high", "text": ODD, "arms": [ODD], "fields": [],
                               "roles": ["counter"], "evidence": [], "cure": "wait\nless", "expected_gain": gain}]);
    for seen in run["observations"].as_array_mut().unwrap() {
        if seen["arm"] == first {
            seen["arm"] = json!(ODD);
        }
        seen["ns_per_op"] = json!(5.5);
        (seen["spoiled"], seen["regime"]) = (json!(["lost_time", "no_regime"]), json!(0));
    }
    std::fs::write(&path, serde_json::to_vec(&run).unwrap()).unwrap();
    (folder, serde_json::from_value(run).unwrap())
}

/// The points that the tidy table has, its texts as texts. Its writer shares nothing with that of the lines.
fn of_table(csv: &[u8]) -> BTreeMap<(influx::SeriesName, i64), BTreeMap<String, String>> {
    let mut points: BTreeMap<_, BTreeMap<String, String>> = BTreeMap::new();
    let mut reader = csv::Reader::from_reader(csv);
    for row in reader.deserialize::<BTreeMap<String, String>>() {
        let mut row = row.unwrap();
        let mut take = |column: &str| row.remove(column).unwrap();
        let (measurement, time, field, value) = (take("measurement"), take("time_ns"), take("field"), take("value"));
        let as_tag = |text: String| text.replace('\n', "\u{240a}").replace('\\', "\u{ff3c}");
        let tags = row.into_iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| (name, as_tag(value)));
        let fields = points.entry(((measurement, tags.collect()), time.parse().unwrap())).or_default();
        assert!(fields.insert(field, value).is_none(), "a field twice");
    }
    points
}

/// The server's points equal the table's: the same series, instants and fields, counts to the last digit.
fn assert_same(server: &Points, table: &BTreeMap<(influx::SeriesName, i64), BTreeMap<String, String>>) {
    assert_eq!(server.keys().collect::<Vec<_>>(), table.keys().collect::<Vec<_>>());
    for (name, fields) in table {
        let found = &server[name];
        assert_eq!(found.keys().collect::<Vec<_>>(), fields.keys().collect::<Vec<_>>(), "{name:?}");
        for (field, text) in fields {
            let same = match &found[field] {
                Value::String(found) => found == text,
                Value::Bool(found) => found.to_string() == *text,
                Value::Number(found) if found.is_f64() => found.as_f64() == text.parse().ok(),
                // A float that is whole comes back without a point.
                Value::Number(found) => {
                    found.to_string() == *text || found.as_f64().is_some() && found.as_f64() == text.parse().ok()
                }
                _ => false,
            };
            assert!(same, "`{field}` of {name:?} is {} where {text} was written", found[field]);
        }
    }
}

#[test]
fn points_written_are_the_points_queried_back() {
    let Some(server) = Influx::start() else { return skip("influxd is not installed (Debian's package influxdb)") };
    let (folder, run) = odd();
    let table = of_table(&exported(folder.path(), "csv").stdout);
    server.query("", "CREATE DATABASE pushed");
    for _again in 0..2 {
        let output = export(folder.path()).arg("--push").arg(server.url("pushed")).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let said = format!("{} points written to {}\n", table.len(), server.url("pushed"));
        assert_eq!(stdout(&output), said);
        assert_same(&server.points("pushed"), &table);
    }
    server.query("", "CREATE DATABASE piped");
    server.write("piped", &exported(folder.path(), "influx").stdout);
    assert_same(&server.points("piped"), &table);

    let points = server.points("pushed");
    let has = |tags: &BTreeMap<String, String>, name: &str, value: &str| tags.get(name).is_some_and(|v| v == value);
    let of = |measurement: &str, tags: &[(&str, &str)]| -> Vec<&BTreeMap<String, Value>> {
        let fits = |((name, own), _): &&(influx::SeriesName, i64)| {
            name == measurement && tags.iter().all(|(key, value)| has(own, key, value))
        };
        points.iter().filter(|(key, _)| fits(key)).map(|(_, fields)| fields).collect()
    };
    let arm = of("lab_arm", &[("arm", ODD_AS_TAG), ("host", "a host, of=mine"), ("scenario", "odd, name=x")]);
    assert_eq!((arm.len(), &arm[0]["ns_per_op_low"]), (1, &json!(4.25)));
    assert_eq!(of("lab_arm", &[("sweep_think time, x=y", "0 ns, or=none")]).len(), 1);
    assert_eq!(of("lab_diagnosis", &[])[0]["text"], ODD, "a text is kept to the letter");
    assert_eq!(of("lab_expect", &[("claim", &run.expect[0].claim)]).len(), 1);
    let counted = of("lab_counter", &[("counter", "odd, counter=x"), ("arm", ODD_AS_TAG)]);
    assert_eq!(counted[0]["measured_value"], 9_007_199_254_740_993_u64, "no float has that value");
    assert_eq!(of("lab_repetition", &[]).len(), run.observations.len());
    for seen in &run.observations {
        let (worker, block) = (seen.worker.to_string(), seen.block.to_string());
        let arm = if seen.arm == ODD { ODD_AS_TAG } else { &seen.arm };
        let found = of("lab_repetition", &[("arm", arm), ("worker", &worker), ("block", &block)]);
        assert_eq!((found.len(), &found[0]["passes"]), (1, &json!(seen.passes)));
        assert_eq!(found[0]["kept_ns"].as_f64(), Some(seen.kept_ns));
    }
}

#[test]
fn every_query_of_the_dashboard_is_answered_and_every_column_in_it_is_known() {
    let Some(server) = Influx::start() else { return skip("influxd is not installed (Debian's package influxdb)") };
    let (folder, run) = odd();
    server.query("", "CREATE DATABASE lab");
    server.write("lab", &exported(folder.path(), "influx").stdout);
    let dashboard: Value = serde_json::from_str(include_str!("../../docs/grafana/dashboard.json")).unwrap();
    // As Grafana fills them in: a choice of all arms is any text.
    let run_tag = format!("{}-{}", run.started_utc, run.seed);
    let filled = |query: &str| {
        let query = query.replace("$run", &run_tag).replace("$scenario", "odd, name=x").replace("$arm", ".*");
        query.replace("$block", "0").replace("$timeFilter", "time > 0")
    };
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    let mut asked = 0;
    for query in variables.filter(|v| v["type"] == "query").map(|v| filled(v["query"].as_str().unwrap())) {
        let answer = server.query("lab", &query);
        assert!(answer["series"][0]["values"].as_array().is_some_and(|values| !values.is_empty()), "{query}");
        asked += 1;
    }
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let query = filled(target["query"].as_str().unwrap());
            let answer = server.query("lab", &query);
            let series = answer["series"].as_array().unwrap_or_else(|| panic!("no answer to {query}"));
            let unknown = BTreeSet::from_iter(series.iter().flat_map(empty_columns));
            assert!(unknown.is_subset(&not_in_this_run()), "{query}: nothing in {unknown:?}");
            asked += 1;
        }
    }
    assert!(asked > 15, "{asked}");
}

/// Columns of an answer that hold nothing: the server knows no such field, and does not say so.
fn empty_columns(series: &Value) -> Vec<String> {
    let columns = series["columns"].as_array().unwrap().iter().enumerate();
    let rows = series["values"].as_array().unwrap();
    let empty = columns.filter(|(nth, _)| rows.iter().all(|row| row[*nth].is_null()));
    empty.map(|(_, name)| name.as_str().unwrap().to_owned()).collect()
}

/// Why a counter did not count, on a machine that counts all.
fn not_in_this_run() -> BTreeSet<String> {
    BTreeSet::from(["measured_why".to_owned()])
}

#[test]
fn what_is_passed_on_is_what_the_run_left() {
    let made = made();
    let folder = made.path();
    for (format, file) in [("json", "run.json"), ("hlog", "latency.hlog")] {
        assert_eq!(exported(folder, format).stdout, std::fs::read(folder.join(file)).unwrap(), "{format}");
    }
    let by_file = exported(&folder.join("run.json"), "csv").stdout;
    assert_eq!(exported(folder, "csv").stdout, by_file);
    assert!(of_table(&by_file).len() > 20);
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let made = made();
    for format in ["csv", "influx", "json", "hlog"] {
        let mut command = export(made.path());
        // A pipe that nobody reads from any more.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command.args(["--format", format]).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let output = output.wait_with_output().unwrap();
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{format}");
    }
}

#[test]
fn a_run_that_is_not_there_or_not_whole_is_wrong_input() {
    let root = tempfile::tempdir().unwrap();
    let run = std::fs::read_to_string(made().path().join("run.json")).unwrap();
    let written = |name: &str, text: &str| -> PathBuf {
        let path = root.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let newer = run.replacen("\"schema_version\": 1", "\"schema_version\": 7", 1);
    for (path, format, part) in [
        (root.path().join("none"), "influx", "cannot read the run"),
        (root.path().to_owned(), "csv", "holds no run.json"),
        (written("half.json", &run[..run.len() / 2]), "json", "ends in the middle"),
        (written("newer.json", &newer), "influx", "schema version 7, and this program reads 1"),
        (written("other.json", "{\"schema_version\": 1}"), "csv", "is no run's record"),
        (written("alone.json", &run), "hlog", "copy it too"),
    ] {
        let output = export(&path).args(["--format", format]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(part), "{part}: {}", stderr(&output));
        assert!(stdout(&output).is_empty(), "nothing is passed on");
    }
}

#[test]
fn wrong_usage_is_told_before_anything_is_read() {
    for (arguments, part) in [
        (&["--push", "https://h/write?db=x"][..], "curl --data-binary"),
        (&["--push", "http://h/"], "http://HOST:8086/write?db=DATABASE"),
        (&["--push", "http://h/write?db=x", "--format", "csv"], "leave --format out"),
        (&["--format", "xml"], "influx, csv, hlog, json"),
        (&[], "--format"),
    ] {
        let output = export(Path::new("no-such-run")).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(part), "{part}: {}", stderr(&output));
        assert!(!stderr(&output).contains("cannot read"), "{}", stderr(&output));
    }
}

/// A server that takes one request, answers as told, and gives what it was asked.
fn answering(answer: String) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (seen, asked) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut request, mut length) = (String::new(), 0);
        while !request.ends_with("\r\n\r\n") {
            let begin = request.len();
            assert_ne!(reader.read_line(&mut request).unwrap(), 0, "{request}");
            if let Some(value) = request[begin..].to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        request.push_str(std::str::from_utf8(&body).unwrap());
        stream.write_all(answer.as_bytes()).unwrap();
        seen.send(request).unwrap();
    });
    (address, asked)
}

#[test]
fn version_2_is_written_to_as_it_asks_for() {
    let (address, asked) = answering("HTTP/1.1 204 No Content\r\n\r\n".to_owned());
    let made = made();
    let folder = made.path();
    let url = format!("http://{address}/api/v2/write?org=o&bucket=b");
    let output = export(folder).env("INFLUX_TOKEN", "a-secret").arg("--push").arg(&url).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let request = asked.recv().unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /api/v2/write?org=o&bucket=b&precision=ns HTTP/1.1\r\n"), "{head}");
    assert!(head.to_ascii_lowercase().contains("\r\nauthorization: token a-secret"), "{head}");
    assert_eq!(body.as_bytes(), exported(folder, "influx").stdout);
    assert!(!stdout(&output).contains("a-secret"));
}

#[test]
fn a_servers_refusal_is_shown_with_its_cure() {
    let made = made();
    let folder = made.path();
    let lines: String = (0..10_000).map(|nth| format!("unable to parse 'line {nth}'\\n")).collect();
    let refused = format!("{{\"error\":\"{lines}\"}}");
    let engine = "{\"error\":\"engine\\nclosed\"}";
    for (status, body, parts) in [
        (
            "HTTP/1.1 401 Unauthorized",
            "{\"error\":\"unable to parse credentials\"}\n",
            &["401 Unauthorized: unable to parse credentials", "http://USER:PASSWORD@"][..],
        ),
        // As version 1 answers where it refuses many lines.
        (
            "HTTP/1.1 400 Bad Request",
            &refused,
            &["400 Bad Request: {\"error\":\"unable to parse 'line 0", "server's log"],
        ),
        ("HTTP/1.1 500 Internal Server Error", engine, &["500 Internal Server Error: engine\\nclosed", "try again"]),
        ("HTTP/1.1 302 Found\r\nLocation: http://else/write", "", &["http://else/write"]),
        ("SSH-2.0-OpenSSH_9.2", "", &["is this an InfluxDB server"]),
    ] {
        let (address, _asked) = answering(format!("{status}\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
        let output = export(folder).args(["--push", &format!("http://{address}/write?db=x")]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(parts.iter().all(|part| stderr(&output).contains(part)), "{parts:?}: {}", stderr(&output));
        assert!(stdout(&output).is_empty());
    }
}

#[test]
fn a_server_that_is_not_there_and_a_database_that_is_not_are_named() {
    let made = made();
    let folder = made.path();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = export(folder).args(["--push", &format!("http://{closed}/write?db=x")]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("is the server started, and is this its port?"), "{}", stderr(&output));
    let Some(server) = Influx::start() else { return skip("influxd is not installed (Debian's package influxdb)") };
    let output = export(folder).arg("--push").arg(server.url("nowhere")).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let cure =
        format!("create it: curl http://{}/query --data-urlencode 'q=CREATE DATABASE \"nowhere\"'", server.address);
    assert!(stderr(&output).contains("404 Not Found: database not found: \"nowhere\""), "{}", stderr(&output));
    assert!(stderr(&output).contains(&cure), "{}", stderr(&output));
}

//! An InfluxDB of a test's own: its data in a folder that goes with it, its port one that was free.

use serde_json::Value;
use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use testing::Lines;

/// A running server. It ends with this value.
pub(crate) struct Influx {
    server: Child,
    pub(crate) address: String,
    client: ureq::Agent,
    /// It ends at the first line that nobody takes.
    _log: Lines,
    _folder: tempfile::TempDir,
}

/// A series of the server's points: its measurement, and its tags without the empty ones.
pub(crate) type SeriesName = (String, BTreeMap<String, String>);

/// What a server holds: by series and nanosecond, the fields that a point has.
pub(crate) type Points = BTreeMap<(SeriesName, i64), BTreeMap<String, Value>>;

impl Influx {
    /// Starts the server and waits until it listens; `None` where it is not installed.
    pub(crate) fn start() -> Option<Influx> {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().display();
        let config = format!(
            "reporting-disabled = true\nbind-address = \"127.0.0.1:0\"\n[meta]\ndir = \"{at}/meta\"\n[data]\ndir = \
             \"{at}/data\"\nwal-dir = \"{at}/wal\"\n[monitor]\nstore-enabled = false\n[http]\nbind-address = \
             \"127.0.0.1:0\"\nlog-enabled = false\n"
        );
        let path = folder.path().join("influxdb.conf");
        std::fs::write(&path, config).unwrap();
        let mut command = Command::new("influxd");
        command.args(["run", "-config"]).arg(&path).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut server = command.spawn().ok()?;
        let log = Lines::of(server.stderr.take().unwrap());
        let mut said = String::new();
        let address = loop {
            let line = log.hear().unwrap_or_else(|| panic!("influxd ended: {said}"));
            if line.contains("Listening on HTTP") {
                break line.split("addr=").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
            }
            said = said + &line + "\n";
        };
        let client = ureq::Agent::config_builder().proxy(None).http_status_as_error(false).build().into();
        Some(Influx { server, address, client, _log: log, _folder: folder })
    }

    /// The address to write to.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("http://{}/write?db={database}", self.address)
    }

    /// The answer to one query.
    pub(crate) fn query(&self, database: &str, query: &str) -> Value {
        let url = format!("http://{}/query", self.address);
        let form = [("db", database), ("epoch", "ns"), ("q", query)];
        let mut answer = self.client.post(&url).send_form(form).unwrap();
        let answer: Value = serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap();
        let result = &answer["results"][0];
        assert!(answer["error"].is_null() && result["error"].is_null(), "{query}: {answer}");
        result.clone()
    }

    /// Writes lines as a client other than the lab's would.
    pub(crate) fn write(&self, database: &str, lines: &[u8]) {
        let mut answer = self.client.post(&self.url(database)).send(lines).unwrap();
        assert_eq!(answer.status(), 204, "{:?}", answer.body_mut().read_to_string());
    }

    /// Every point of a database. Measurements are asked for one by one: together, a field's integers would come back
    /// as floats if it is a float in another.
    pub(crate) fn points(&self, database: &str) -> Points {
        let mut points = Points::new();
        let names = self.query(database, "SHOW MEASUREMENTS");
        for name in names["series"][0]["values"].as_array().unwrap() {
            let answer = self.query(database, &format!("SELECT * FROM \"{}\" GROUP BY *", name[0].as_str().unwrap()));
            for series in answer["series"].as_array().unwrap() {
                add(&mut points, series);
            }
        }
        points
    }
}

fn add(points: &mut Points, series: &Value) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let tags = series["tags"].as_object().unwrap().iter().map(|(name, value)| (name.clone(), text(value)));
    let name = (text(&series["name"]), tags.filter(|(_, value)| !value.is_empty()).collect());
    let columns: Vec<String> = series["columns"].as_array().unwrap().iter().map(text).collect();
    for row in series["values"].as_array().unwrap() {
        let cells = columns.iter().cloned().zip(row.as_array().unwrap().iter().cloned());
        let mut fields: BTreeMap<String, Value> = cells.filter(|(_, value)| !value.is_null()).collect();
        let time = fields.remove("time").unwrap().as_i64().unwrap();
        assert!(points.insert((name.clone(), time), fields).is_none(), "twice: {name:?} at {time}");
    }
}

impl Drop for Influx {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

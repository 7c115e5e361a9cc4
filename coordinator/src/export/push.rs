//! Writing lines to a server that takes InfluxDB's line protocol by HTTP.
//!
//! # References
//! InfluxDB 1.x documentation, "API reference: /write"; 2.x, "Write data with the API: /api/v2/write".

use crate::report::text::escaped;
use serde_json::Value;
use std::fmt;
use std::io::{self, Read};
use std::time::Duration;
use ureq::http::Uri;
use ureq::http::header::{AUTHORIZATION, LOCATION};

/// Points in one request: the number that InfluxDB's documentation recommends. Larger ones meet its limit on a body
/// (`max-body-size`, 25 MB); a point of a run has up to a few kilobytes.
const BATCH: usize = 5_000;

/// Time for a connection, and for the whole of one request.
const CONNECT: Duration = Duration::from_secs(10);
const REQUEST: Duration = Duration::from_secs(60);

/// Longest part of an answer that is read, bytes: its begin says what is wrong.
const LONGEST_ANSWER: u64 = 64 * 1024;

/// Longest part of it that is shown, characters.
const SHOWN_ANSWER: usize = 600;

/// A server's address to write to, checked.
#[derive(Debug)]
pub(crate) struct Target {
    url: String,
    uri: Uri,
    api: Api,
    token: Option<String>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Api {
    /// `/write?db=`
    One,
    /// `/api/v2/write?org=&bucket=`
    Two,
}

impl Api {
    /// The parameter that says where on the server the points go.
    fn place(self) -> &'static str {
        match self {
            Api::One => "db",
            Api::Two => "bucket",
        }
    }
}

/// An address that nothing can be written to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TargetError {
    /// No URL.
    #[error("`{url}` is no URL: {why}; {FORMS}")]
    NotUrl { url: String, why: String },
    /// This program has no TLS.
    #[error(
        "`{0}` asks for TLS, which this program does not have; write the points to a client that does: coordinator \
         export RUN --format influx | curl --data-binary @- 'URL'"
    )]
    Tls(String),
    /// Another path.
    #[error("the path of `{0}` is not one to write points to; {FORMS}")]
    Path(String),
    /// A parameter that must be there.
    #[error("`{url}` does not say {parameter}=, which the points go to; {FORMS}")]
    Place { url: String, parameter: &'static str },
    /// Another unit.
    #[error("`{0}` gives a `precision`; leave it out: the points' times are in nanoseconds, and are written so")]
    Precision(String),
}

const FORMS: &str = "write http://HOST:8086/write?db=DATABASE for a server of version 1, and \
                     http://HOST:8086/api/v2/write?org=ORG&bucket=BUCKET from version 2 on";

impl Target {
    /// Checks an address. `token` is sent as InfluxDB 2 asks for.
    ///
    /// # Errors
    /// [`TargetError`]: what is wrong with it, and how it should read.
    pub(crate) fn new(url: &str, token: Option<String>) -> Result<Target, TargetError> {
        let shown = escaped(url);
        let not_url = |why: &str| TargetError::NotUrl { url: shown.clone(), why: why.to_owned() };
        let uri: Uri = url.parse().map_err(|error: ureq::http::uri::InvalidUri| not_url(&error.to_string()))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(TargetError::Tls(shown)),
            _ => return Err(not_url("it does not begin with http://")),
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(|| not_url("it names no host"))?;
        // The parser takes any number for a port, and then goes by the usual one.
        let place = uri.authority().map_or("", |all| all.as_str().rsplit('@').next().unwrap_or_default());
        if place != host && uri.port_u16().is_none() {
            return Err(not_url("its port is not within 1 to 65535"));
        }
        let api = match uri.path().trim_end_matches('/') {
            path if path.ends_with("/api/v2/write") => Api::Two,
            path if path.ends_with("/write") => Api::One,
            _ => return Err(TargetError::Path(shown)),
        };
        if parameter(&uri, "precision").is_some() {
            return Err(TargetError::Precision(shown));
        }
        if parameter(&uri, api.place()).is_none_or(str::is_empty) {
            return Err(TargetError::Place { url: shown, parameter: api.place() });
        }
        Ok(Target { url: format!("{url}&precision=ns"), uri, api, token })
    }

    /// `http://host:8086`, without a user's name or password.
    fn server(&self) -> String {
        let host = self.uri.host().unwrap_or_default();
        let port = self.uri.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
        format!("http://{host}{port}")
    }
}

/// The address without what is secret in it.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.api.place();
        let value = parameter(&self.uri, place).unwrap_or_default();
        write!(f, "{}{}?{place}={value}", self.server(), self.uri.path())
    }
}

fn parameter<'a>(uri: &'a Uri, name: &str) -> Option<&'a str> {
    let pairs = uri.query().unwrap_or_default().split('&');
    pairs.filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// Why not all points were written.
#[derive(Debug, thiserror::Error)]
#[error("writing to {target} failed: {why}; {cure}{}", progress(*.written, *.all))]
pub(crate) struct PushError {
    target: String,
    why: String,
    cure: String,
    /// Points that the server has taken.
    written: usize,
    all: usize,
}

fn progress(written: usize, all: usize) -> String {
    match written {
        0 => String::new(),
        n => format!(" ({n} of {all} points were written; the same export again writes them over themselves)"),
    }
}

/// Writes lines, several thousand at a time.
///
/// # Errors
/// [`PushError`]: no server there, or what it answered, with the cure and how far the writing came.
pub(crate) fn push(target: &Target, lines: &[String]) -> Result<(), PushError> {
    let configured = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .timeout_connect(Some(CONNECT))
        .timeout_global(Some(REQUEST))
        .user_agent(concat!("contention-lab/", env!("CARGO_PKG_VERSION")));
    let agent: ureq::Agent = configured.build().into();
    for (nth, batch) in lines.chunks(BATCH).enumerate() {
        send(&agent, target, &batch.concat()).map_err(|(why, cure)| PushError {
            target: target.to_string(),
            why,
            cure,
            written: nth * BATCH,
            all: lines.len(),
        })?;
    }
    Ok(())
}

/// One request; what went wrong, and the cure.
fn send(agent: &ureq::Agent, target: &Target, body: &str) -> Result<(), (String, String)> {
    let mut request = agent.post(&target.url).content_type("text/plain; charset=utf-8");
    if let Some(token) = &target.token {
        request = request.header(AUTHORIZATION, format!("Token {token}"));
    }
    let mut response = request.send(body.as_bytes()).map_err(|error| unreachable(&error))?;
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let location = response.headers().get(LOCATION).and_then(|to| to.to_str().ok()).map(escaped);
    // Version 1 repeats each line that it refuses. An answer that breaks off still has its status.
    let mut answer = Vec::new();
    let _ = response.body_mut().as_reader().take(LONGEST_ANSWER).read_to_end(&mut answer);
    let said = said(&String::from_utf8_lossy(&answer));
    let why = match said.is_empty() {
        true => format!("the server answered {status} and nothing else"),
        false => format!("the server answered {status}: {said}"),
    };
    Err((why, cure(status.as_u16(), &said, location, target)))
}

fn unreachable(error: &ureq::Error) -> (String, String) {
    let refused = matches!(error, ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused);
    let cure = match error {
        _ if refused => "is the server started, and is this its port?",
        ureq::Error::HostNotFound => "is the host's name right?",
        ureq::Error::Timeout(_) => "is the server busy, or a firewall in between?",
        _ => "is this an InfluxDB server, and does it run?",
    };
    (escaped(&error.to_string()), cure.to_owned())
}

/// What a server says of an error: version 1 as `error`, version 2 as `message`; other servers in a text.
fn said(answer: &str) -> String {
    let json: Value = serde_json::from_str(answer).unwrap_or_default();
    let text = json["error"].as_str().or(json["message"].as_str()).unwrap_or(answer).trim();
    escaped(&text.chars().take(SHOWN_ANSWER).collect::<String>())
}

fn cure(status: u16, said: &str, location: Option<String>, target: &Target) -> String {
    let server = target.server();
    match (status, target.api) {
        (300..=399, _) => match location {
            Some(to) => format!("name the address that it points to: {to}"),
            None => "name the server itself: what answers there sends elsewhere, and does not say where".to_owned(),
        },
        (401 | 403, Api::One) => format!("name a user that may write: {}", target.with_user()),
        (401 | 403, Api::Two) => {
            "put a token that may write to the bucket into the environment variable INFLUX_TOKEN".to_owned()
        }
        (404, Api::One) if said.contains("database not found") => {
            format!("create it: curl {server}/query --data-urlencode 'q=CREATE DATABASE \"{}\"'", target.place())
        }
        (404, Api::Two) if said.contains("not found") => "create the bucket, or name another".to_owned(),
        (404, _) => format!("is this an InfluxDB server? {FORMS}"),
        (400, _) if said.contains("field type conflict") => {
            "the database holds other fields under these names: name another one for the lab's points".to_owned()
        }
        (413, _) => "raise the server's limit on a request's size (max-body-size)".to_owned(),
        (500.., _) => "see the server's log, and try again".to_owned(),
        _ => "see the server's log".to_owned(),
    }
}

impl Target {
    fn place(&self) -> &str {
        parameter(&self.uri, self.api.place()).unwrap_or_default()
    }

    /// How the address reads with a user in it.
    fn with_user(&self) -> String {
        format!("http://USER:PASSWORD@{}", self.to_string().trim_start_matches("http://"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_cannot_be_written_to_say_how_they_should_read() {
        for (url, part) in [
            ("localhost:8086", "it does not begin with http://"),
            ("http://", "is no URL"),
            ("http://h:99999/write?db=x", "is no URL"),
            ("https://h/write?db=x", "curl --data-binary"),
            ("ftp://h/write?db=x", "it does not begin with http://"),
            ("http://h:8086", "/write?db=DATABASE"),
            ("http://h:8086/query?db=x", "not one to write points to"),
            ("http://h:8086/write", "does not say db="),
            ("http://h:8086/write?db=", "does not say db="),
            ("http://h:8086/api/v2/write?db=x", "does not say bucket="),
            ("http://h:8086/write?db=x&precision=s", "leave it out"),
        ] {
            let said = Target::new(url, None).unwrap_err().to_string();
            assert!(said.contains(part), "{url}: {said}");
        }
    }

    #[test]
    fn secrets_of_an_address_are_not_shown() {
        let target = Target::new("http://me:secret1@[::1]:8086/write?u=me&p=secret2&db=lab", Some("secret3".into()));
        let target = target.unwrap();
        assert_eq!(target.to_string(), "http://[::1]:8086/write?db=lab");
        assert_eq!(target.url, "http://me:secret1@[::1]:8086/write?u=me&p=secret2&db=lab&precision=ns");
        let two = Target::new("http://h/influx/api/v2/write?org=o&bucket=b", None).unwrap();
        assert_eq!((two.api, two.to_string().as_str()), (Api::Two, "http://h/influx/api/v2/write?bucket=b"));
    }

    #[test]
    fn a_cure_fits_what_was_answered() {
        let one = Target::new("http://h:1/write?db=my", None).unwrap();
        let two = Target::new("http://h:1/api/v2/write?org=o&bucket=b", None).unwrap();
        let found = |status, said: &str, target| cure(status, said, None, target);
        assert_eq!(
            found(404, "database not found: \"my\"", &one),
            "create it: curl http://h:1/query --data-urlencode 'q=CREATE DATABASE \"my\"'"
        );
        assert!(found(401, "", &one).ends_with("http://USER:PASSWORD@h:1/write?db=my"));
        assert!(found(401, "unauthorized access", &two).contains("INFLUX_TOKEN"));
        assert!(found(400, "partial write: field type conflict: …", &one).contains("another one"));
        assert!(found(404, "", &one).contains("is this an InfluxDB server?"));
        assert!(cure(307, "", Some("https://h/write".to_owned()), &one).contains("https://h/write"));
        assert_eq!(said("{\"code\":\"invalid\",\"message\":\"no\\u001b[2J\"}"), "no\\u{1b}[2J");
        assert_eq!(said("<html>gateway</html>\n"), "<html>gateway</html>");
    }
}

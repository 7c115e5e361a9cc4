//! False alarms: watches of two programs that share nothing, of which none may say that they do.

use super::slice::{self, Seen};
use super::target::Pair;
use super::{AttachError, Kind};
use crate::contest::duel;
use record::{Attach, LineVerdict};
use serde::Serialize;
use std::time::Duration;

/// What many watches of a clean pair said.
#[derive(Debug, Serialize)]
pub(crate) struct AlarmReport {
    schema_version: u32,
    benchmark: &'static str,
    pub(super) watch_s: f64,
    pub(super) watches: u32,
    /// Watches that proved both to write: the others may have been blind.
    pub(super) saw_both: u32,
    pub(super) alarms: Vec<Alarm>,
}

/// A watch that saw sharing where there is none.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Alarm {
    /// Which watch, from 1.
    pub(super) watch: u32,
    /// What it told.
    pub(super) said: String,
}

/// Watches a padded pair so often, a fresh one each time.
pub(crate) fn alarms(watches: u32, time: Duration) -> Result<AlarmReport, AttachError> {
    let cpus = duel::two_cpus()?;
    let (mut alarms, mut saw_both, mut last) = (Vec::new(), 0, String::new());
    for watch in 1..=watches {
        eprintln!("watch {watch} of {watches}");
        let pair = Pair::start(Kind::Padded, cpus)?;
        let told = slice::watch(&pair, time, &|_| ())?;
        let seen = Seen::of(&told, &pair);
        pair.end()?;
        saw_both += u32::from(seen.both);
        last = seen.said;
        alarms.extend(said(&told).into_iter().map(|said| Alarm { watch, said }));
    }
    match saw_both {
        0 => Err(AttachError::Blind { kind: Kind::Padded, said: last }),
        _ => Ok(AlarmReport {
            schema_version: 1,
            benchmark: "attach-alarms",
            watch_s: time.as_secs_f64(),
            watches,
            saw_both,
            alarms,
        }),
    }
}

/// What a watch said that is not so: lines that are shared, and locks.
fn said(told: &Attach) -> Vec<String> {
    let quiet = |verdict| matches!(verdict, LineVerdict::Private | LineVerdict::ReadMostly);
    let lines = told.lines.iter().filter(|line| !quiet(line.verdict));
    let lines = lines.map(|line| format!("the line at {:#x} is {:?}", line.offset, line.verdict));
    lines.chain(told.locks.iter().map(|lock| format!("the word at {:#x} is a lock", lock.offset))).collect()
}

impl AlarmReport {
    /// 0 where there was none, else 1.
    pub(crate) fn exit_status(&self) -> u8 {
        u8::from(!self.alarms.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_to_be_shared_is_an_alarm() {
        let mut told: Attach = serde_json::from_value(serde_json::json!({
            "schema_version": 1,
            "segment": {"name": "ring", "kind": "posix", "device": [0, 1], "inode": 2, "bytes": 4096, "deleted": true},
            "watched_ns": 1, "processes": [], "locks": [], "notes": [],
            "cost": {"traps": 0, "samples": 0, "events": 0, "stolen_ns": 0, "slowdown": null},
            "lines": [
                {"offset": 0, "verdict": "private", "page_offset": 0, "words": []},
                {"offset": 64, "verdict": "read_mostly", "page_offset": 64, "words": []}
            ],
        }))
        .expect("a record");
        assert_eq!(said(&told), [""; 0]);
        told.lines[1].verdict = LineVerdict::FalseSharing;
        assert_eq!(said(&told), ["the line at 0x40 is FalseSharing"]);
        let report = |alarms| AlarmReport {
            schema_version: 1,
            benchmark: "attach-alarms",
            watch_s: 2.0,
            watches: 50,
            saw_both: 49,
            alarms,
        };
        assert_eq!(report(Vec::new()).exit_status(), 0);
        let text = report(Vec::new()).markdown();
        assert!(
            text.contains("50 watches of 2 s") && text.contains("0 false alarms") && text.contains("in 49"),
            "{text}"
        );
        let one = report(vec![Alarm { watch: 3, said: said(&told).concat() }]);
        assert!(one.exit_status() == 1 && one.markdown().contains("Watch 3: the line at 0x40"), "{}", one.markdown());
    }
}

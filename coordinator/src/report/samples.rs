//! `samples.csv`: every observation as one row, for R, pandas or a spreadsheet.

use record::{Observation, Reading};
use std::collections::BTreeSet;
use std::io::Write;

/// The columns that every run has, in order.
const FIXED: [&str; 22] = [
    "arm",
    "block",
    "worker",
    "role",
    "pid",
    "tid",
    "cpu",
    "passes",
    "kept_passes",
    "kept_ns",
    "lost_ns",
    "blocked_ns",
    "window_ns",
    "noted_ns",
    "ns_per_op",
    "transfer_before_ns",
    "transfer_after_ns",
    "contended_before_ns",
    "contended_after_ns",
    "core_speed",
    "regime",
    "spoiled",
];

/// What is kept of a worker's dealings with a lock, as columns `LOCK_acquisitions` and so on.
const LOCK: [&str; 12] = [
    "acquisitions",
    "contended",
    "waits_lost",
    "handoffs",
    "longest_run",
    "owner_died",
    "shared",
    "spins",
    "futex_waits",
    "retries",
    "timeouts",
    "longest_gap_ns",
];

/// Writes a row an arm × repetition × worker. After [`FIXED`] come two columns for each counter that any worker read,
/// `NAME` and `NAME_state`, and [`LOCK`] for each lock. What was not seen is empty, never 0.
///
/// # Errors
/// What `out` answers.
pub(super) fn write(observations: &[Observation], out: impl Write) -> std::io::Result<()> {
    let counters: BTreeSet<&str> = observations.iter().flat_map(|o| o.counters.keys()).map(String::as_str).collect();
    let locks: BTreeSet<&str> = observations.iter().flat_map(|o| &o.locks).map(|lock| lock.lock.as_str()).collect();
    let mut csv = csv::Writer::from_writer(out);
    let mut head: Vec<String> = FIXED.map(str::to_owned).into();
    head.extend(counters.iter().flat_map(|name| [(*name).to_owned(), format!("{name}_state")]));
    head.extend(locks.iter().flat_map(|lock| LOCK.map(|column| format!("{lock}_{column}"))));
    csv.write_record(&head)?;
    for seen in observations {
        let mut row = fixed(seen);
        row.extend(counters.iter().flat_map(|name| counter(seen.counters.get(*name))));
        row.extend(locks.iter().flat_map(|lock| dealings(seen, lock)));
        csv.write_record(&row)?;
    }
    csv.flush()
}

fn fixed(seen: &Observation) -> Vec<String> {
    vec![
        seen.arm.clone(),
        seen.block.to_string(),
        seen.worker.to_string(),
        seen.role.clone(),
        optional(seen.pid),
        optional(seen.tid),
        seen.cpu.to_string(),
        seen.passes.to_string(),
        seen.kept_passes.to_string(),
        seen.kept_ns.to_string(),
        seen.lost_ns.to_string(),
        seen.blocked_ns.to_string(),
        seen.window_ns.to_string(),
        optional(seen.noted_ns),
        optional(seen.ns_per_op),
        optional(seen.transfer_before_ns),
        optional(seen.transfer_after_ns),
        optional(seen.contended_before_ns),
        optional(seen.contended_after_ns),
        seen.core_loop_ns.to_string(),
        optional(seen.regime),
        seen.spoiled.join(";"),
    ]
}

fn optional(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn counter(reading: Option<&Reading>) -> [String; 2] {
    match reading {
        Some(reading) => [optional(reading.value()), reading.state().to_owned()],
        None => [String::new(), String::new()],
    }
}

fn dealings(seen: &Observation, name: &str) -> [String; 12] {
    match seen.locks.iter().find(|lock| lock.lock == name) {
        Some(lock) => [
            lock.acquisitions.to_string(),
            lock.contended.to_string(),
            lock.waits_lost.to_string(),
            lock.handoffs.to_string(),
            lock.longest_run.to_string(),
            lock.owner_died.to_string(),
            lock.shared.to_string(),
            lock.spins.to_string(),
            lock.futex_waits.to_string(),
            lock.retries.to_string(),
            lock.timeouts.to_string(),
            lock.longest_gap_ns.to_string(),
        ],
        None => Default::default(),
    }
}

#[cfg(test)]
mod tests {
    use crate::report::testing;
    use record::LockObservation;
    use std::collections::HashMap;

    fn parsed(observations: &[record::Observation]) -> Vec<HashMap<String, String>> {
        let mut bytes = Vec::new();
        super::write(observations, &mut bytes).unwrap();
        csv::Reader::from_reader(bytes.as_slice()).deserialize().collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn there_is_a_row_an_observation_and_figures_come_back_exactly() {
        let run = testing::false_sharing();
        let rows = parsed(&run.observations);
        assert_eq!(rows.len(), run.observations.len());
        for (row, seen) in rows.iter().zip(&run.observations) {
            assert_eq!(row["arm"], seen.arm);
            assert_eq!(row["ns_per_op"].parse::<f64>().ok(), seen.ns_per_op);
            assert_eq!(row["kept_ns"].parse::<f64>(), Ok(seen.kept_ns));
            assert_eq!(row["spoiled"], seen.spoiled.join(";"));
        }
    }

    #[test]
    fn what_was_not_seen_is_empty() {
        let mut observations = testing::false_sharing().observations;
        observations[1].counters.clear();
        observations[1].spoiled = vec!["lost_time".to_owned(), "gap_log_full".to_owned()];
        observations[0].locks = vec![LockObservation {
            lock: "m".to_owned(),
            acquisitions: 9,
            contended: 4,
            kept_waits: Vec::new(),
            all_waits: Vec::new(),
            waits_lost: 0,
            handoffs: 3,
            longest_run: 2,
            owner_died: 0,
            spins: 77,
            longest_gap_ns: 1234.5,
            ..Default::default()
        }];
        let rows = parsed(&observations);
        let column = |row: usize, names: [&str; 7]| names.map(|name| rows[row][name].as_str());
        let counters = ["context_switches", "l1d_load_misses", "l1d_load_misses_state"];
        let names = [&counters[..], &["m_acquisitions", "m_waits_lost", "m_spins", "m_longest_gap_ns"]].concat();
        let names: [&str; 7] = names.try_into().unwrap();
        assert_eq!(column(0, names), ["2", "", "unsupported", "9", "0", "77", "1234.5"]);
        assert_eq!(column(1, names), [""; 7]);
        assert_eq!(rows[1]["spoiled"], "lost_time;gap_log_full");
        assert_eq!(rows[1]["tid"], "");
    }
}

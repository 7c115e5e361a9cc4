//! A running bpftrace, attached to one kind of place, and the waits that it saw.

use super::{Condition, Powers, TracingError};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// What it prints once it has timed its first wait, which proves that both its places are attached.
const ATTACHED: &str = "attached";
/// How long that may take, and the printing of its maps.
const PATIENCE: Duration = Duration::from_secs(120);

/// Ended when dropped.
pub(super) struct Tracer {
    child: Child,
    lines: Receiver<String>,
}

impl Tracer {
    /// Starts bpftrace and lets `run` work until it has seen a wait: it does not say when it is attached.
    pub(super) fn attach(
        condition: Condition,
        coordinator: &Path,
        run: impl Fn() -> Result<(), TracingError>,
    ) -> Result<Tracer, TracingError> {
        let (begin, end) = match condition {
            Condition::Uprobe => {
                let library = library()?;
                let place = |kind| format!("{kind}:{}:pthread_mutex_lock", library.display());
                (place("uprobe"), place("uretprobe"))
            }
            _ => {
                let place = |name| format!("usdt:{}:contention_lab:{name}", coordinator.display());
                (place("lock_contended"), place("lock_acquired"))
            }
        };
        let mut child = Command::new("bpftrace")
            .args(["-f", "json", "-B", "line", "-e", &program(&begin, &end)])
            .env("BPFTRACE_MAP_KEYS_MAX", "65536") // a key a bucket and process
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(TracingError::NoTracer)?;
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut tracer = Tracer { child, lines };
        tracer.wait_until_attached(condition, run)?;
        Ok(tracer)
    }

    fn wait_until_attached(
        &mut self,
        condition: Condition,
        run: impl Fn() -> Result<(), TracingError>,
    ) -> Result<(), TracingError> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            run()?;
            while let Ok(line) = self.lines.try_recv() {
                if line.contains(ATTACHED) && line.contains("printf") {
                    return Ok(());
                }
            }
            if self.child.try_wait()?.is_some() {
                return Err(TracingError::TracerEnded(self.last_words()?));
            }
        }
        Err(TracingError::NotAttached(condition.name()))
    }

    fn last_words(&mut self) -> Result<String, TracingError> {
        let mut said = String::new();
        if let Some(mut errors) = self.child.stderr.take() {
            errors.read_to_string(&mut said)?;
        }
        Ok(said.trim().to_owned())
    }

    /// Ends it, which makes it print its map: the waits by process.
    pub(super) fn detach(mut self) -> Result<BTreeMap<i32, Powers>, TracingError> {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGINT).map_err(std::io::Error::from)?;
        let mut waits = BTreeMap::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => note(&line, &mut waits),
                Err(RecvTimeoutError::Disconnected) if waits.is_empty() => {
                    return Err(TracingError::TracerEnded(self.last_words()?));
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(waits),
                Err(RecvTimeoutError::Timeout) => return Err(TracingError::TracerEnded("it did not, in fact".into())),
            }
        }
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits from `begin` to `end` of one thread, by process: by its number in its own PID namespace, which is what a run
/// reports; bpftrace's `pid` is that of the first one. It ends by itself some time, should nobody be left to end it:
/// a probe that was forgotten slows every program down that uses the library.
fn program(begin: &str, end: &str) -> String {
    format!(
        "{begin} {{ @since[tid] = nsecs; }}
         {end} /@since[tid]/ {{
             $numbers = ((struct task_struct *)curtask)->group_leader->thread_pid;
             $own = (struct upid *)((uint64)$numbers + sizeof(struct pid)
                 + (uint64)$numbers->level * sizeof(struct upid));
             @waits[$own->nr] = hist(nsecs - @since[tid]); delete(@since[tid]);
             if (@said == 0) {{ @said = 1; printf(\"{ATTACHED}\\n\"); }}
         }}
         interval:s:600 {{ exit(); }}"
    )
}

/// The C library that this process uses, as the traced one does.
fn library() -> Result<PathBuf, TracingError> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let path = maps.lines().filter_map(|line| line.split_whitespace().nth(5)).find(|path| path.ends_with("/libc.so.6"));
    path.map(PathBuf::from).ok_or(TracingError::NoLibrary)
}

/// Adds what one line of bpftrace's JSON says of the map of waits.
fn note(line: &str, waits: &mut BTreeMap<i32, Powers>) {
    let Ok(line) = serde_json::from_str::<Value>(line) else { return };
    let Some(map) = line["data"]["@waits"].as_object() else { return };
    for (pid, buckets) in map {
        let Ok(pid) = pid.parse() else { continue };
        let powers: &mut Powers = waits.entry(pid).or_default();
        for bucket in buckets.as_array().into_iter().flatten() {
            powers.add(bucket["min"].as_u64().unwrap_or(0), bucket["count"].as_u64().unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_of_waits_is_read_and_nothing_else() {
        let mut waits = BTreeMap::new();
        for line in [
            r#"{"type": "attached_probes", "data": {"probes": 2}}"#,
            r#"{"type": "map", "data": {"@since": {"17": 5}}}"#,
            r#"{"type": "hist", "data": {"@waits": {"17": [{"min": 512, "max": 1023, "count": 3}]}}}"#,
            r#"{"type": "hist", "data": {"@waits": {"17": [{"min": 1024, "max": 2047, "count": 1}]}}}"#,
            "attached",
        ] {
            note(line, &mut waits);
        }
        assert_eq!((waits.len(), waits[&17].total(), waits[&17].share(9)), (1, 4, Some(0.75)));
    }
}

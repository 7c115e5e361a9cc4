//! A tracer beside the watch: bpftrace at the same tracepoints.

use super::MUTEX;
use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use testing::{A_LONG_TIME, Lines, within};

/// Its classes of length, nanoseconds: a hundredth of the waits that are compared.
const CLASS_NS: u64 = 500;

/// What it counted.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) waits: u64,
    pub(crate) refused: u64,
    pub(crate) wakes: u64,
    /// Waits by length.
    classes: BTreeMap<u64, u64>,
}

impl Counted {
    /// The wait that so many of all do not exceed, in the middle of its class.
    pub(crate) fn quantile_ns(&self, quantile: f64) -> f64 {
        let wanted = ((self.waits as f64 * quantile).ceil() as u64).max(1);
        let mut passed = 0;
        let class = self.classes.iter().find(|(_, count)| {
            passed += **count;
            passed >= wanted
        });
        (*class.expect("waits").0 as f64 + 0.5) * CLASS_NS as f64
    }
}

/// bpftrace, attached.
pub(crate) struct Tracer {
    child: Child,
    output: Lines,
}

/// Shared waits (FUTEX_WAIT, FUTEX_WAIT_BITSET) and wakes of the program at its mutex, which lies at one place in a page
/// wherever it is mapped: pthread_join waits too. A call of the pinger, which has a value of its own,
/// tells that both ends are attached.
fn program(command: &str) -> String {
    format!(
        "tracepoint:syscalls:sys_enter_futex /comm == \"{command}\"/ {{
             $at = (uint64)args->uaddr & 4095;
             @own[tid] = args->val == 77123 ? 3 : $at != {MUTEX} ? 0 : ((args->op & 255) == 0 || (args->op & 255) == 9 ? 1 :
                 ((args->op & 255) == 1 ? 2 : 0));
             @since[tid] = nsecs;
         }}
         tracepoint:syscalls:sys_exit_futex /comm == \"{command}\" && @own[tid] == 1/ {{
             @waits[(nsecs - @since[tid]) / {CLASS_NS}] = count();
             if (args->ret == -11) {{ @refused = count(); }}
         }}
         tracepoint:syscalls:sys_exit_futex /comm == \"{command}\" && @own[tid] == 2/ {{ @wakes = count(); }}
         tracepoint:syscalls:sys_exit_futex /comm == \"{command}\" && @own[tid] == 3/ {{ printf(\"attached\\n\"); }}
         tracepoint:syscalls:sys_exit_futex /comm == \"{command}\"/ {{ delete(@own[tid]); delete(@since[tid]); }}
         interval:s:600 {{ exit(); }}"
    )
}

impl Tracer {
    /// Attaches it to all processes of that name, one of which pings.
    pub(crate) fn attach(command: &str) -> Result<Tracer, String> {
        let mut bpftrace = Command::new("bpftrace");
        bpftrace.args(["-e", &program(command)]).env("BPFTRACE_MAP_KEYS_MAX", "65536");
        bpftrace.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = bpftrace.spawn().map_err(|error| error.to_string())?;
        let output = Lines::of(child.stdout.take().expect("a pipe"));
        let mut said = String::new();
        while let Some(line) = output.hear() {
            if line == "attached" {
                return Ok(Tracer { child, output });
            }
            said = said + &line + "\n";
        }
        let _ = child.stderr.take().expect("a pipe").read_to_string(&mut said);
        let _ = child.wait();
        Err(said)
    }

    /// Ends it, by which it prints what it counted.
    pub(crate) fn detach(mut self) -> Counted {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
        let lines: Vec<String> = std::iter::from_fn(|| self.output.hear()).collect();
        let status = within(A_LONG_TIME, "the end of bpftrace", || self.child.try_wait().unwrap());
        assert!(status.success(), "{lines:?}");
        let mut counted = Counted::default();
        for line in &lines {
            let number = |text: &str| text.trim().parse::<u64>().unwrap_or_else(|_| panic!("{line}"));
            if let Some((class, count)) = line.strip_prefix("@waits[").and_then(|rest| rest.split_once("]: ")) {
                counted.waits += number(count);
                counted.classes.insert(number(class), number(count));
            } else if let Some(count) = line.strip_prefix("@refused: ") {
                counted.refused = number(count);
            } else if let Some(count) = line.strip_prefix("@wakes: ") {
                counted.wakes = number(count);
            }
        }
        counted
    }
}

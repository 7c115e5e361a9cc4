//! Many inputs through one door, each within bounds, with what it takes to repeat the one that failed.

use crate::Reached;
use crate::bend::Move;
use crate::sound::Sound;
use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};
use proptest::prelude::{Strategy, any, prop, prop_oneof};
use proptest::sample::Index;
use proptest::test_runner::{Config, TestError, TestRunner};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

/// CPU time of one input at most. The slowest take a hundredth of it in a build without optimisation.
const TIME_MAX: Duration = Duration::from_secs(20);

/// Most that this process may ever have had resident: far less than a damaged length could ask for.
const MEMORY_MAX: u64 = 3 << 29;

/// Says how many inputs; and how many there are for each landing, where it says nothing.
const CASES: &str = "PROPTEST_CASES";
const FEW: u32 = 100;

/// Names a file whose bytes go through the door in place of all others: see [`through`].
const ONLY: &str = "LAB_INPUT";

/// One input.
#[derive(Clone)]
pub struct Input {
    /// What is in it.
    pub bytes: Vec<u8>,
    /// Where it comes from, for messages.
    from: String,
    /// Whether it is as it was found.
    sound: bool,
}

impl Input {
    /// An input that was made, not bent.
    pub fn made(bytes: Vec<u8>) -> Input {
        Input { bytes, from: "made".to_owned(), sound: false }
    }
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes, {}", self.bytes.len(), self.from)
    }
}

/// Sound inputs with up to eight changes each, most with one or two, made by `bend`.
pub fn bent(sound: &[Sound], bend: impl Fn(&Sound, &[Move]) -> Vec<u8>) -> impl Strategy<Value = Input> {
    // One change is more likely to leave a file readable than five.
    let moves = prop_oneof![prop::collection::vec(any::<Move>(), 1..3), prop::collection::vec(any::<Move>(), 0..9)];
    let unbent: Vec<Vec<u8>> = sound.iter().map(|of| bend(of, &[])).collect();
    (any::<Index>(), moves).prop_map(move |(which, moves)| {
        let which = which.index(sound.len());
        let bytes = bend(&sound[which], &moves);
        let (from, sound) = (format!("`{}` after {moves:?}", sound[which].name), bytes == unbent[which]);
        Input { bytes, from, sound }
    })
}

/// As many inputs as `PROPTEST_CASES` says (a hundred where it says nothing) through a door. Each ends in bounded CPU time and
/// memory, and some come inside that are not as they were found.
///
/// An input that fails is made as small as it gets and left in a file. `LAB_INPUT=FILE` in the environment of the same
/// test sends that one through alone; so does a fuzz target that is given the file. One that ends the process leaves its
/// file, too.
///
/// # Panics
/// Where an input fails, or none comes inside.
pub fn through(name: &str, inputs: impl Strategy<Value = Input>, door: impl Fn(&[u8]) -> Reached) {
    if let Some(path) = std::env::var_os(ONLY) {
        let bytes = std::fs::read(&path).expect("the file that LAB_INPUT names");
        eprintln!("{name}: {} bytes of {}: {:?}", bytes.len(), path.display(), door(&bytes));
        return;
    }
    let tally = RefCell::new(Tally::default());
    let last = Last::new(name);
    let config = Config::default();
    let cases = std::env::var_os(CASES).map_or(FEW, |_| config.cases);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, max_shrink_iters: 4096, ..config });
    let outcome = runner.run(&inputs, |input| {
        last.keep(&input.bytes);
        let before = cpu_time();
        let reached = quietly(|| door(&input.bytes));
        let took = cpu_time().saturating_sub(before);
        assert!(took < TIME_MAX, "it took {took:?} of CPU time");
        let peak = peak_bytes();
        assert!(peak < MEMORY_MAX, "this process has had {peak} bytes of memory");
        tally.borrow_mut().add(reached, input.sound, took);
        Ok(())
    });
    let tally = tally.into_inner();
    match outcome {
        Ok(()) => last.forget(),
        Err(TestError::Fail(why, input)) => {
            last.keep(&input.bytes);
            let why = SAID.take().unwrap_or_else(|| why.to_string());
            panic!("{name}: {why}\n{input:?}\nin {}: {ONLY} with that path repeats it", last.path.display());
        }
        Err(TestError::Abort(why)) => panic!("{name}: no inputs: {why}"),
    }
    eprintln!("{name}: {tally}, {} MB at most", peak_bytes() >> 20);
    assert!(tally.inside > 0, "{name}: not one bent input came past the reader, so nothing behind it was tried");
}

thread_local! {
    /// Whether this thread is behind a door.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// What its last panic there said, and where.
    static SAID: Cell<Option<String>> = const { Cell::new(None) };
}

/// Keeps what a panic says instead of printing it: an input that fails does so a hundred times until it is small.
fn quietly<T>(door: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let other = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| match INSIDE.get() {
            true => SAID.set(Some(panic.to_string())),
            false => other(panic),
        }));
    });
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            INSIDE.set(false);
        }
    }
    INSIDE.set(true);
    let _leave = Leave;
    door()
}

/// What became of the inputs.
#[derive(Default)]
struct Tally {
    all: u64,
    /// As they were found.
    sound: u64,
    /// Of the others, those that came past the reader.
    inside: u64,
    slowest: Duration,
    total: Duration,
}

impl Tally {
    fn add(&mut self, reached: Reached, sound: bool, took: Duration) {
        self.all += 1;
        self.sound += u64::from(sound);
        self.inside += u64::from(!sound && reached == Reached::Inside);
        self.slowest = self.slowest.max(took);
        self.total += took;
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Tally { all, sound, inside, slowest, total } = self;
        write!(f, "{all} inputs in {total:.1?} of CPU time, {inside} past the reader ({sound} more were sound), ")?;
        write!(f, "{slowest:.1?} the slowest")
    }
}

/// The file of the input that is on its way.
struct Last {
    path: PathBuf,
    file: File,
}

impl Last {
    fn new(name: &str) -> Last {
        // In memory where there is such a place: it is written a million times.
        let folder = [Path::new("/dev/shm"), &std::env::temp_dir()]
            .into_iter()
            .find(|folder| folder.is_dir())
            .map(Path::to_owned);
        let name = format!("hostile-input-{}-{}", name.replace(' ', "-"), std::process::id());
        let path = folder.unwrap_or_default().join(name);
        let file = File::create(&path).expect("a file for inputs");
        Last { path, file }
    }

    fn keep(&self, bytes: &[u8]) {
        self.file
            .write_all_at(bytes, 0)
            .and_then(|()| self.file.set_len(bytes.len() as u64))
            .expect("room for an input");
    }

    fn forget(self) {
        // What stays is a few kilobytes.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What this thread has used.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// The largest resident size that this process has had.
fn peak_bytes() -> u64 {
    // getrusage(2): kilobytes.
    getrusage(UsageWho::RUSAGE_SELF).map_or(0, |usage| u64::try_from(usage.max_rss()).unwrap_or(0) << 10)
}

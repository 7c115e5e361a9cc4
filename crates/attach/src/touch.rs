//! Who touches which words of the segment, and what that costs: samples, then breakpoints, then a verdict for each
//! line.

use crate::candidates::{Candidates, gather, line_of};
use crate::decode::{Code, text};
use crate::fields::Fields;
use crate::maps;
use crate::notes::Notes;
use crate::prove::{Books, Costs, Limits, Proof, Setting, calibrate, prove};
use crate::sample::{Moments, sample};
use crate::symbols::{self, Place, SymbolParser};
use crate::verdict::{burden, verdict};
use crate::words::{Use, User, Word, words};
use crate::{Targets, cpu_clock};
use plan::CACHE_LINE_BYTES;
use record::{AttachNote, Interval, LineVerdict, TouchedLine, TouchedWord, TouchingInstruction, WatchCost};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Part of the time that goes to sampling; what is left goes to the proof.
const SAMPLING: f64 = 0.3;
/// Part of its time that no thread may lose to the proof: half of what a watch may cost in all.
const MOST_LOST: f64 = 0.02;
/// Hits until a breakpoint is switched off: enough to see an instruction that reads and one that writes.
const HITS: i32 = 4;
/// A segment of at most so many bytes is gone over whole in the time that is left, sampled or not.
const SMALL_BYTES: u64 = 16 << 10;
/// Samples at an instruction from which on its operand is told without proof, where there can be none.
const SAMPLES_MIN: u64 = 3;

/// How to find out who touches what.
pub struct TouchOptions<'a> {
    /// How long it takes; reading symbols comes on top, a few seconds at the most.
    pub time: Duration,
    /// What an access costs more, nanoseconds, when the two CPUs share the line than when one has it alone; `None`
    /// where that was not measured.
    pub penalty: &'a dyn Fn(u32, u32) -> Option<Interval>,
    /// How to start the process that reads symbols; without, instructions have addresses alone.
    pub parser: Option<&'a SymbolParser>,
    /// The struct that lies in the segment.
    pub fields: Option<&'a Fields>,
    /// Whether to end now.
    pub stop: &'a dyn Fn() -> bool,
    /// Told when there are samples enough and the proof begins, with the time that it may take.
    pub proving: &'a dyn Fn(Duration),
}

/// What was seen of who touches what.
#[derive(Debug, Default)]
pub struct Touched {
    /// The lines, the dearest first.
    pub lines: Vec<TouchedLine>,
    /// Pids seen spinning, by the offset of the word that they look at.
    pub spinners: BTreeMap<u64, Vec<u32>>,
    /// What was not seen, and why.
    pub notes: Vec<AttachNote>,
    /// What it cost the targets.
    pub cost: WatchCost,
}

impl Touched {
    /// Takes words for locks that the kernel was asked to wait for (offsets in the segment).
    pub fn mark_locks(&mut self, waited_for: &BTreeSet<u64>) {
        for line in &mut self.lines {
            let behind = line.offset + CACHE_LINE_BYTES;
            if line.verdict != LineVerdict::Private && waited_for.range(line.offset..behind).next().is_some() {
                line.verdict = LineVerdict::LockWord;
                line.recoverable = line.recoverable.map(|(_, high)| (0.0, high));
            }
        }
    }
}

/// Watches the targets for a while. They go on as they are: a thread loses at most about one part in fifty of its time
/// to the proof, and about as much to samples while these are taken; when this process ends, be it by a signal, the kernel
/// takes everything back. A target may end at any instant.
pub fn watch(targets: &Targets, options: &TouchOptions<'_>) -> Touched {
    let mut notes = Notes::default();
    let ran_before = cpu_ns(targets);
    let costs = calibrate();
    let moments = sample(&targets.processes, options.time.mul_f64(SAMPLING), options.stop, &mut notes);
    let mut books = Books::default();
    let candidates = candidates(targets, &moments, &mut books, &mut notes);
    let limits = Limits { time: options.time.mul_f64(1.0 - SAMPLING), most_lost: MOST_LOST, hits: HITS };
    let small = whole(targets);
    (options.proving)(limits.time);
    let setting = Setting { limits, costs, stop: options.stop, notes: &mut notes };
    let proof = prove(targets, &candidates, &small, &mut books, setting);
    if proof.left_out > 0 {
        let text = format!("{} lines that samples lead to were not proved: time was up", proof.left_out);
        notes.add("lines_left_out", None, text, Some("watch longer: --for 20s"));
    }
    let cost = cost(&moments, &proof, &costs, ran_before, cpu_ns(targets));
    let mut told =
        Told { targets, options, moments: &moments, candidates: &candidates, proof: &proof, books: &mut books };
    let lines = told.lines(&costs, &mut notes);
    Touched { lines, spinners: candidates.spinners(), notes: notes.into_list(), cost }
}

fn candidates(targets: &Targets, moments: &Moments, books: &mut Books, notes: &mut Notes) -> Candidates {
    if !Code::is_known() {
        notes.add(
            "foreign_architecture",
            None,
            "instructions of this processor are not taken apart here: lines are those that registers pointed to, and who \
             reads a word that it writes too is not told",
            None,
        );
    }
    let mut found = Candidates::default();
    for target in &targets.processes {
        let (code, memory) = books.of(target);
        gather(target, moments, code, memory, &mut found);
        // What comes later reads its stack and its code anew.
        memory.forget();
    }
    found
}

/// The lines of a small segment, as far as anybody maps it.
fn whole(targets: &Targets) -> Vec<u64> {
    match targets.segment.bytes {
        bytes if bytes <= SMALL_BYTES => (0..bytes).step_by(CACHE_LINE_BYTES as usize).collect(),
        _ => Vec::new(),
    }
}

/// CPU time of all targets that live, nanoseconds.
fn cpu_ns(targets: &Targets) -> u64 {
    targets.processes.iter().filter_map(|target| cpu_clock::used_ns(target.pid)).sum()
}

fn cost(moments: &Moments, proof: &Proof, costs: &Costs, before: u64, behind: u64) -> WatchCost {
    let samples = moments.list.len() as u64 + moments.lost;
    let stolen = proof.traps as f64 * costs.trap_ns + proof.arming_ns + samples as f64 * costs.sample_ns;
    let ran = behind.saturating_sub(before);
    let slowdown = (ran > 0).then(|| stolen / ran as f64);
    WatchCost { traps: proof.traps, samples, events: 0, stolen_ns: stolen as u64, slowdown }
}

/// Everything that the lines are told from.
struct Told<'a> {
    targets: &'a Targets,
    options: &'a TouchOptions<'a>,
    moments: &'a Moments,
    candidates: &'a Candidates,
    proof: &'a Proof,
    books: &'a mut Books,
}

impl Told<'_> {
    fn lines(&mut self, costs: &Costs, notes: &mut Notes) -> Vec<TouchedLine> {
        let proved = words(self.proof, costs.trap_ns);
        let sampled = self.sampled(&proved);
        let places = self.places(&proved, &sampled, notes);
        let cpus = self.moments.cpus();
        let mut lines: Vec<(f64, TouchedLine)> = proved
            .iter()
            .map(|(line, words)| {
                let verdict = verdict(words);
                let shares =
                    |(pid, tid): User| self.candidates.shares.get(&(*line, pid, tid)).copied().unwrap_or_default();
                let burden = burden(words, verdict, &cpus, &shares, self.options.penalty);
                let costs = burden.penalty_ns.map_or(0.0, |penalty| penalty.median);
                let mut told = self.line(*line, verdict, words, &places);
                (told.accesses_per_second, told.accesses_at_least) =
                    (Some(burden.accesses_per_second), burden.at_least);
                (told.penalty_ns, told.recoverable) = (burden.penalty_ns, burden.recoverable);
                (burden.accesses_per_second * costs, told)
            })
            .collect();
        lines.extend(self.unproved(&sampled, &places));
        let shared = |line: &TouchedLine| !matches!(line.verdict, LineVerdict::Private | LineVerdict::ReadMostly);
        let rate = |line: &TouchedLine| line.accesses_per_second.unwrap_or_default();
        lines.sort_by(|(a, one), (b, other)| {
            let by_kind = shared(other).cmp(&shared(one));
            by_kind.then(b.total_cmp(a)).then(rate(other).total_cmp(&rate(one))).then(one.offset.cmp(&other.offset))
        });
        lines.into_iter().map(|(_, line)| line).collect()
    }

    fn line(
        &self,
        offset: u64,
        verdict: LineVerdict,
        words: &[Word],
        places: &BTreeMap<(u32, u64), Place>,
    ) -> TouchedLine {
        let words = words.iter().map(|word| self.word(word, places)).collect();
        TouchedLine {
            offset,
            verdict,
            page_offset: offset % 4096,
            words,
            accesses_per_second: None,
            accesses_at_least: false,
            penalty_ns: None,
            recoverable: None,
        }
    }

    fn word(&self, word: &Word, places: &BTreeMap<(u32, u64), Place>) -> TouchedWord {
        let pids = |users: BTreeSet<User>| users.into_iter().map(|(pid, _)| pid).collect::<BTreeSet<u32>>();
        let mut instructions: BTreeMap<(u32, u64), TouchingInstruction> = BTreeMap::new();
        let mut threads: BTreeSet<(u32, u64, u32)> = BTreeSet::new();
        for one in &word.uses {
            let key = (one.user.0, one.key.ip);
            let entry = instructions.entry(key).or_insert_with(|| self.instruction(one, word, places));
            entry.hits += one.touch.hits;
            entry.per_second = entry.per_second.map(|sum| sum + one.rate);
            entry.at_least |= one.at_least;
            if threads.insert((key.0, key.1, one.user.1)) {
                entry.threads += 1;
                entry.tids.push(one.user.1);
            }
            entry.reads |= one.touch.reads;
            entry.writes |= one.touch.writes;
        }
        instructions.values_mut().for_each(|at| at.tids.sort_unstable());
        TouchedWord {
            offset: word.offset,
            bytes: word.bytes as u32,
            field: self.options.fields.and_then(|fields| fields.name(word.offset)),
            writers: pids(word.users(|touch| touch.writes)).into_iter().collect(),
            readers: pids(word.users(|touch| touch.reads)).into_iter().collect(),
            proved: true,
            adds: word.adds(),
            pace: None,
            held: None,
            instructions: instructions.into_values().collect(),
        }
    }

    fn instruction(&self, one: &Use, word: &Word, places: &BTreeMap<(u32, u64), Place>) -> TouchingInstruction {
        let (pid, address) = (one.user.0, one.key.ip);
        let place = places.get(&(pid, address)).cloned().unwrap_or_default();
        let in_word = (pid, word.offset, 0)..(pid, word.offset + word.bytes, 0);
        let samples = self.candidates.operands.range(in_word).filter(|((_, _, ip), _)| *ip == address);
        TouchingInstruction {
            pid,
            address,
            text: one.touch.text.clone(),
            symbol: if one.touch.kernel { Some("[kernel]".to_owned()) } else { place.symbol },
            object: place.object,
            source: place.source,
            writes: false,
            reads: false,
            hits: 0,
            samples: samples.map(|(_, candidate)| candidate.at).max().unwrap_or(0),
            per_second: Some(0.0),
            at_least: false,
            threads: 0,
            tids: Vec::new(),
        }
    }

    /// Operands that were seen at samples themselves, of processes in which they could not be proved.
    fn sampled(&self, proved: &BTreeMap<u64, Vec<Word>>) -> BTreeMap<u64, Vec<(u32, u64, u64)>> {
        let mut lines: BTreeMap<u64, Vec<(u32, u64, u64)>> = BTreeMap::new();
        for (&(pid, offset, ip), candidate) in &self.candidates.operands {
            let line = line_of(offset);
            let unproved = !self.proof.watched.contains(&(line, pid));
            if unproved && candidate.at >= SAMPLES_MIN && !proved.contains_key(&line) {
                lines.entry(line).or_default().push((pid, offset, ip));
            }
        }
        lines
    }

    /// Lines that were not proved, told from samples alone.
    fn unproved(
        &mut self,
        sampled: &BTreeMap<u64, Vec<(u32, u64, u64)>>,
        places: &BTreeMap<(u32, u64), Place>,
    ) -> Vec<(f64, TouchedLine)> {
        let mut lines = Vec::new();
        for (line, operands) in sampled {
            let mut words: BTreeMap<u64, TouchedWord> = BTreeMap::new();
            for &(pid, offset, ip) in operands {
                let bytes = self.candidates.operands[&(pid, offset, ip)].bytes.clamp(1, 8) as u32;
                let instruction = self.unproved_instruction(pid, offset, ip, places);
                let word = words.entry(offset).or_insert_with(|| self.unproved_word(offset));
                word.bytes = word.bytes.max(bytes);
                if instruction.writes && !word.writers.contains(&pid) {
                    word.writers.push(pid);
                }
                if instruction.reads && !word.readers.contains(&pid) {
                    word.readers.push(pid);
                }
                word.instructions.push(instruction);
            }
            let words: Vec<TouchedWord> = words.into_values().collect();
            let mut told = self.line(*line, verdict_of_samples(&words), &[], places);
            told.words = words;
            lines.push((0.0, told));
        }
        lines
    }

    fn unproved_word(&self, offset: u64) -> TouchedWord {
        let field = self.options.fields.and_then(|fields| fields.name(offset));
        TouchedWord {
            offset,
            bytes: 1,
            field,
            writers: vec![],
            readers: vec![],
            proved: false,
            adds: None,
            pace: None,
            held: None,
            instructions: vec![],
        }
    }

    fn unproved_instruction(
        &mut self,
        pid: u32,
        offset: u64,
        ip: u64,
        places: &BTreeMap<(u32, u64), Place>,
    ) -> TouchingInstruction {
        let candidate = &self.candidates.operands[&(pid, offset, ip)];
        let target = self.targets.processes.iter().find(|target| target.pid == pid);
        let instruction = target.and_then(|target| {
            let (code, memory) = self.books.of(target);
            code.at(ip, memory)
        });
        let place = places.get(&(pid, ip)).cloned().unwrap_or_default();
        TouchingInstruction {
            pid,
            address: ip,
            text: instruction.as_ref().map(text),
            symbol: place.symbol,
            object: place.object,
            source: place.source,
            writes: candidate.writes,
            reads: candidate.reads,
            hits: 0,
            samples: candidate.at,
            per_second: None,
            at_least: false,
            threads: 0,
            tids: Vec::new(),
        }
    }

    /// Names of all instructions that are told.
    fn places(
        &mut self,
        proved: &BTreeMap<u64, Vec<Word>>,
        sampled: &BTreeMap<u64, Vec<(u32, u64, u64)>>,
        notes: &mut Notes,
    ) -> BTreeMap<(u32, u64), Place> {
        let mut wanted: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
        for one in proved.values().flatten().flat_map(|word| &word.uses).filter(|one| !one.touch.kernel) {
            wanted.entry(one.user.0).or_default().insert(one.key.ip);
        }
        for (pid, _, ip) in sampled.values().flatten() {
            wanted.entry(*pid).or_default().insert(*ip);
        }
        let mut known: BTreeMap<u32, Vec<maps::Mapping>> = BTreeMap::new();
        for target in &self.targets.processes {
            known.insert(target.pid, self.books.of(target).1.mappings().to_vec());
        }
        let mappings = |pid: u32| known.get(&pid).cloned().unwrap_or_default();
        symbols::places(&wanted, &mappings, self.options.parser, notes)
    }
}

/// As [`verdict`], by processes: samples tell no rates.
fn verdict_of_samples(words: &[TouchedWord]) -> LineVerdict {
    let users = |word: &TouchedWord| -> BTreeSet<u32> { word.writers.iter().chain(&word.readers).copied().collect() };
    let all: BTreeSet<u32> = words.iter().flat_map(users).collect();
    let written = || words.iter().filter(|word| !word.writers.is_empty());
    match () {
        () if all.len() < 2 => LineVerdict::Private,
        () if written().next().is_none() => LineVerdict::ReadMostly,
        () if written().any(|word| users(word).len() > 1) => LineVerdict::TrueSharing,
        () => LineVerdict::FalseSharing,
    }
}

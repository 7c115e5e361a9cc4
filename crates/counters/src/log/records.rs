//! The kernel's records of samples, taken apart.
//!
//! # References
//! perf_event_open(2), "MMAP layout", PERF_RECORD_SAMPLE.

use super::LogKind;
use record::{FlushReason, KernelEvent, KernelEventKind};
use std::collections::HashMap;

const SAMPLE: u32 = 9;
/// `struct perf_event_header`: type, misc, size.
const HEADER_BYTES: usize = 8;
/// From here on upwards a frame is a mark (PERF_CONTEXT_MAX): which context the next ones are of.
const MARKS: u64 = u64::MAX - 4094;
/// All pages of an address space (TLB_FLUSH_ALL).
const ALL_PAGES: u64 = u64::MAX;
/// Where the fields of `tlb:tlb_flush` lie, on a kernel of 64 bits (`include/trace/events/tlb.h`): an `int` behind the
/// 8 bytes that all tracepoints begin with, and an `unsigned long`. In other places other numbers would be read.
const REASON_AT: usize = 8;
const PAGES_AT: usize = 16;

/// Samples of a log.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Parsed {
    pub(super) events: Vec<KernelEvent>,
    pub(super) stacks: Vec<Vec<u64>>,
}

/// Takes a log apart. `kinds` are the tracepoints' numbers, with which each one's data begins; what has another number,
/// or is cut off, is left out.
pub(super) fn parse(log: &[u8], kinds: &[(u64, LogKind)], stacks: bool, ticks: impl Fn(u64) -> u64) -> Parsed {
    let mut parsed = Parsed::default();
    let mut known: HashMap<Vec<u64>, u32> = HashMap::new();
    let mut rest = log;
    while let Some((kind, body, next)) = record(rest) {
        rest = next;
        if kind != SAMPLE {
            continue;
        }
        let Some((raw_ns, frames, kind)) = sample(body, kinds, stacks) else { continue };
        let stack = (!frames.is_empty()).then(|| {
            *known.entry(frames).or_insert_with_key(|frames| {
                parsed.stacks.push(frames.clone());
                parsed.stacks.len() as u32 - 1
            })
        });
        parsed.events.push(KernelEvent { ticks: ticks(raw_ns), kind, stack });
    }
    // Interrupts within the writing of another record are written behind it.
    parsed.events.sort_by_key(|event| event.ticks);
    parsed
}

/// The first record: type, body, and what follows.
fn record(log: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let kind = u32::from_ne_bytes(log.get(..4)?.try_into().ok()?);
    let bytes = usize::from(u16::from_ne_bytes(log.get(6..8)?.try_into().ok()?));
    // A size of 0 stands in memory that was never written.
    let body = log.get(HEADER_BYTES..bytes)?;
    Some((kind, body, &log[bytes..]))
}

/// Time, stack and kind, as the ring's events have them: TIME, CALLCHAIN where asked for, RAW.
fn sample(body: &[u8], kinds: &[(u64, LogKind)], stacks: bool) -> Option<(u64, Vec<u64>, KernelEventKind)> {
    let mut at = 0;
    let raw_ns = word(body, &mut at)?;
    let mut frames = Vec::new();
    if stacks {
        for _ in 0..word(body, &mut at)? {
            frames.push(word(body, &mut at)?);
        }
        frames.retain(|frame| *frame < MARKS);
    }
    let bytes = u32::from_ne_bytes(body.get(at..at + 4)?.try_into().ok()?) as usize;
    let data = body.get(at + 4..at + 4 + bytes)?;
    let id = u64::from(u16::from_ne_bytes(data.get(..2)?.try_into().ok()?));
    let (_, kind) = kinds.iter().find(|(known, _)| *known == id)?;
    let kind = match kind {
        LogKind::Interrupt => KernelEventKind::Interrupt,
        LogKind::Flush => {
            let reason = u32::from_ne_bytes(data.get(REASON_AT..REASON_AT + 4)?.try_into().ok()?);
            let pages = u64::from_ne_bytes(data.get(PAGES_AT..PAGES_AT + 8)?.try_into().ok()?);
            let pages = (pages != ALL_PAGES).then_some(pages);
            KernelEventKind::Flush { reason: FlushReason::of(reason)?, pages }
        }
    };
    Some((raw_ns, frames, kind))
}

fn word(body: &[u8], at: &mut usize) -> Option<u64> {
    let word = body.get(*at..*at + 8)?.try_into().ok()?;
    *at += 8;
    Some(u64::from_ne_bytes(word))
}

#[cfg(test)]
mod tests {
    use super::{LogKind, parse};
    use record::{FlushReason, KernelEventKind};

    const KINDS: [(u64, LogKind); 2] = [(188, LogKind::Flush), (151, LogKind::Interrupt)];

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(0u16.to_ne_bytes());
        bytes.extend((body.len() as u16 + 8).to_ne_bytes());
        bytes.extend(body);
        bytes
    }

    /// A sample as the kernel writes it: padded so that the next record begins at a multiple of 8.
    fn sample(raw_ns: u64, stack: Option<&[u64]>, data: &[u8]) -> Vec<u8> {
        let mut body = raw_ns.to_ne_bytes().to_vec();
        if let Some(stack) = stack {
            body.extend((stack.len() as u64).to_ne_bytes());
            body.extend(stack.iter().flat_map(|frame| frame.to_ne_bytes()));
        }
        let padded = (data.len() + 4).next_multiple_of(8) - 4;
        body.extend((padded as u32).to_ne_bytes());
        body.extend(data);
        body.resize(body.len() + padded - data.len(), 0);
        record(9, &body)
    }

    fn flush(id: u16, reason: u32, pages: u64) -> Vec<u8> {
        let mut data = id.to_ne_bytes().to_vec();
        data.resize(8, 0);
        data.extend(reason.to_ne_bytes());
        data.resize(16, 0);
        data.extend(pages.to_ne_bytes());
        data
    }

    fn interrupt() -> Vec<u8> {
        let mut data = 151u16.to_ne_bytes().to_vec();
        data.resize(12, 0);
        data
    }

    #[test]
    fn flushes_and_interrupts_come_back_in_order_of_time() {
        let log = [
            sample(20, None, &flush(188, 1, 512)),
            sample(10, None, &interrupt()),
            sample(30, None, &flush(188, 4, u64::MAX)),
        ];
        let events = parse(&log.concat(), &KINDS, false, |ns| ns * 3).events;
        assert_eq!(events.iter().map(|event| event.ticks).collect::<Vec<_>>(), [30, 60, 90]);
        let kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
        let flush = |reason, pages| KernelEventKind::Flush { reason, pages };
        assert_eq!(
            kinds,
            [KernelEventKind::Interrupt, flush(FlushReason::Remote, Some(512)), flush(FlushReason::Sent, None)]
        );
    }

    #[test]
    fn a_stack_is_kept_once_and_without_its_marks() {
        let marks = [u64::MAX - 127, 0xffff_ffff_8100_0010, 0xffff_ffff_8100_0020];
        let other = [u64::MAX - 127, 0xffff_ffff_8100_0030];
        let log = [&marks[..], &other, &marks].map(|stack| sample(1, Some(stack), &interrupt())).concat();
        let parsed = parse(&log, &KINDS, true, |ns| ns);
        assert_eq!(parsed.stacks, [&marks[1..], &other[1..]]);
        assert_eq!(parsed.events.iter().map(|event| event.stack).collect::<Vec<_>>(), [Some(0), Some(1), Some(0)]);
    }

    #[test]
    fn what_is_no_sample_or_unknown_or_cut_off_is_left_out() {
        let whole = sample(7, None, &interrupt());
        let lost = record(2, &[0; 16]);
        let strange =
            [sample(1, None, &flush(9, 1, 1)), sample(1, None, &flush(188, 77, 1)), sample(1, None, &[188, 0])];
        let log = [&lost[..], &strange.concat(), &whole, &whole[..20], &[0; 64]].concat();
        let events = parse(&log, &KINDS, false, |ns| ns).events;
        assert_eq!(events.iter().map(|event| event.ticks).collect::<Vec<_>>(), [7]);
        for cut in 0..whole.len() {
            assert_eq!(parse(&whole[..cut], &KINDS, false, |ns| ns).events, [], "{cut}");
        }
    }
}

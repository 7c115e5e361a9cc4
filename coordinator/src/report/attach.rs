//! The page of `attach`: a segment, who maps it, what each did, which lines they fight over, who waited, and what watching
//! cost them.

mod closing;
mod counts;
mod lines;
pub(crate) mod list;
mod locks;
mod processes;
mod scenario;

use crate::report::figures::{count, plural};
use crate::report::page::Page;
use crate::report::style::Style;
use record::{Attach, AttachedProcess, AttachedSegment, SegmentKind};

/// The page. Lines take at most the style's width; every text is escaped, since processes choose their own names.
pub(crate) fn render(seen: &Attach, style: &Style) -> String {
    let mut page = Page::new(style);
    page.heading(&described(&seen.segment));
    let seconds = seen.watched_ns as f64 / 1e9;
    page.prose(&match seen.ended_early {
        false => format!("watched for {seconds:.1} s, undisturbed at its begin and its end"),
        true => format!("ended early after {seconds:.1} s, as it was asked to"),
    });
    lines::headline(&mut page, seen);
    processes::write(&mut page, seen);
    counts::write(&mut page, seen);
    lines::write(&mut page, seen);
    locks::write(&mut page, seen);
    scenario::write(&mut page, seen);
    closing::write(&mut page, seen);
    page.finish()
}

/// `/dev/shm/ring: POSIX shared memory, 4096 bytes on 64 lines`.
fn described(segment: &AttachedSegment) -> String {
    let gone = match (segment.deleted, segment.kind) {
        // They never had one.
        (true, SegmentKind::Memfd | SegmentKind::Anonymous) | (false, _) => "",
        (true, _) => ", its name removed",
    };
    format!("{}: {}, {}{gone}", bare(&segment.name), kind(segment.kind), plural(segment.bytes, "byte"))
}

/// The name without the kernel's mark, which stands behind names that were never there, too.
fn bare(name: &str) -> &str {
    name.strip_suffix(" (deleted)").unwrap_or(name)
}

fn kind(kind: SegmentKind) -> &'static str {
    match kind {
        SegmentKind::Posix => "POSIX shared memory",
        SegmentKind::Memfd => "memory of memfd_create",
        SegmentKind::Sysv => "System V shared memory",
        SegmentKind::File => "a file mapped shared",
        SegmentKind::Anonymous => "anonymous shared memory",
    }
}

/// The same as one word.
fn short(kind: SegmentKind) -> &'static str {
    match kind {
        SegmentKind::Posix => "posix",
        SegmentKind::Memfd => "memfd",
        SegmentKind::Sysv => "sysv",
        SegmentKind::File => "file",
        SegmentKind::Anonymous => "anonymous",
    }
}

/// `4711 writer`; by its number alone where that is not known.
fn who(seen: &Attach, pid: u32) -> String {
    seen.processes.iter().find(|one| one.pid == pid).map_or_else(|| pid.to_string(), name)
}

fn name(one: &AttachedProcess) -> String {
    if one.command.is_empty() { one.pid.to_string() } else { format!("{} {}", one.pid, one.command) }
}

/// `4711 writer, 4712 reader`.
fn whom(seen: &Attach, pids: &[u32]) -> String {
    pids.iter().map(|pid| who(seen, *pid)).collect::<Vec<_>>().join(", ")
}

/// An address or offset: `0x40`.
fn hex(value: u64) -> String {
    format!("{value:#x}")
}

/// A time in the unit in which it has three digits.
fn time(ns: u64) -> String {
    let value = ns as f64;
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns}\u{a0}ns"),
        1_000..1_000_000 => (value / 1e3, "µs"),
        1_000_000..1_000_000_000 => (value / 1e6, "ms"),
        _ => (value / 1e9, "s"),
    };
    format!("{}\u{a0}{unit}", crate::report::figures::plain(value))
}

/// A rate to three digits, `1 234 567`.
fn rate(per_second: f64) -> String {
    if per_second < 1000.0 {
        return crate::report::figures::plain(per_second);
    }
    let unit = 10f64.powi(per_second.log10().floor() as i32 - 2);
    count(((per_second / unit).round() * unit) as u64)
}

#[cfg(test)]
mod tests;

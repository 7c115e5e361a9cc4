//! From what a user names to the segment and the processes that map it.

use crate::access::{self, Closed};
use crate::census::census;
use crate::own_mapping;
use crate::segment::{self, Key};
use crate::target::{Looked, Target, Targets, look};
use host::Root;
use record::{AttachListing, AttachNote, AttachedSegment, ListedSegment, SegmentKind};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What a user names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// `/ring` of shm_open, `memfd:ring` of memfd_create, or `00:1b:1042`: device and inode as the maps have them.
    Segment(String),
    /// A file.
    File(PathBuf),
    /// A number that shmget gave.
    Sysv(u64),
    /// The one that the named processes share.
    OfPids,
}

/// What was found.
#[derive(Debug)]
pub struct Found {
    /// The segment and those who map it.
    pub targets: Targets,
    /// Named processes that this one may not look at.
    pub closed: Vec<(u32, Closed)>,
    /// What was decided or missed on the way.
    pub notes: Vec<AttachNote>,
}

/// Why nothing was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// There is nothing of that name.
    #[error("{what}: there is no such segment, and no process maps one that had this name; {SEE_LIST}")]
    Unknown {
        /// The option, as it was written.
        what: String,
    },
    /// Nobody maps it.
    #[error("{what}: no process maps it now{beside}; start its users first")]
    Unmapped {
        /// The option, as it was written.
        what: String,
        /// What of the same name is mapped, with its own options; or that some processes could not be looked at.
        beside: String,
    },
    /// The name fits several.
    #[error("{what} fits {}; name one of them:\n{}", segments(.list.len()), .list.join("\n"))]
    Several {
        /// The options, as they were written.
        what: String,
        /// A line each: the options that name it alone, and what it is.
        list: Vec<String>,
    },
    /// No such process.
    #[error("--pid {pid}: there is no process of this number{thread}; `ps -e` lists those there are")]
    NoProcess {
        /// The number.
        pid: u32,
        /// Where it is a thread's: whose.
        thread: String,
    },
    /// A named process is closed to this one.
    #[error("--pid {pid}: {}; {}", .closed.why, .closed.cure)]
    Closed {
        /// The process.
        pid: u32,
        /// What is missing.
        closed: Closed,
    },
    /// The named processes share nothing.
    #[error("{what}: {why}; {SEE_LIST}")]
    NothingShared {
        /// The options, as they were written.
        what: String,
        /// Which of them maps what.
        why: String,
    },
}

const SEE_LIST: &str = "`coordinator attach --list` shows what is shared on this machine";

fn segments(count: usize) -> String {
    format!("{count} segments")
}

/// Finds the segment and opens every process that maps it: all of them, or with `pids` these alone.
///
/// # Errors
/// [`FindError`]: each says what to name instead, or which capability is missing.
pub fn find(root: &Root, wanted: &Wanted, pids: &[u32]) -> Result<Found, FindError> {
    let closed = named_processes(root, pids)?;
    let listing = census(root);
    let mut notes = Vec::new();
    let segment = match wanted {
        Wanted::OfPids => shared_by(&listing, pids, &closed, &mut notes)?,
        Wanted::Sysv(id) => one_of(fitting(&listing, |of| of.kind == SegmentKind::Sysv && of.inode == *id), &{
            format!("--sysv {id}")
        })?,
        Wanted::File(path) => of_file(&listing, path, &format!("--file {}", path.display()))?,
        Wanted::Segment(name) => of_name(&listing, name)?,
    };
    let key = (segment.device, segment.inode);
    let processes = open(root, key, pids);
    if processes.is_empty() {
        let what = words(wanted, pids);
        return Err(FindError::Unmapped { what, beside: unseen(&listing) });
    }
    notes.extend(not_looked_at(root, &listing, pids));
    notes.extend(not_users(root, &processes, &closed, pids));
    Ok(Found { targets: Targets { segment, processes }, closed, notes })
}

/// The options as they were written.
fn words(wanted: &Wanted, pids: &[u32]) -> String {
    let named = match wanted {
        Wanted::Segment(name) => Some(format!("--segment {name}")),
        Wanted::File(path) => Some(format!("--file {}", path.display())),
        Wanted::Sysv(id) => Some(format!("--sysv {id}")),
        Wanted::OfPids => None,
    };
    named.into_iter().chain(pids.iter().map(|pid| format!("--pid {pid}"))).collect::<Vec<_>>().join(" ")
}

/// Which of the named processes are closed; all of them closed is an error, and so is one that does not exist.
fn named_processes(root: &Root, pids: &[u32]) -> Result<Vec<(u32, Closed)>, FindError> {
    let mut closed = Vec::new();
    for &pid in pids {
        match host::mappings(root, pid) {
            // Threads have folders of their own in /proc, which are not listed there.
            Ok(_) if host::process_numbers(root).binary_search(&pid).is_err() => {
                let of = thread_group(root, pid);
                return Err(FindError::NoProcess { pid, thread: of });
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                closed.push((pid, access::closed_maps(root, pid)));
            }
            Err(_) => return Err(FindError::NoProcess { pid, thread: String::new() }),
        }
    }
    match closed.first() {
        Some((pid, why)) if closed.len() == pids.len() => Err(FindError::Closed { pid: *pid, closed: why.clone() }),
        _ => Ok(closed),
    }
}

fn thread_group(root: &Root, tid: u32) -> String {
    let group = host::process_numbers(root).into_iter().find(|pid| host::is_thread_of(root, *pid, tid));
    group.map_or_else(String::new, |pid| format!(": it is a thread of process {pid}, which --pid {pid} names"))
}

fn fitting(listing: &AttachListing, fits: impl Fn(&AttachedSegment) -> bool) -> Vec<&ListedSegment> {
    listing.segments.iter().filter(|of| fits(&of.segment)).collect()
}

/// The only one of them.
fn one_of(mut fitting: Vec<&ListedSegment>, what: &str) -> Result<AttachedSegment, FindError> {
    let what = what.to_owned();
    match fitting.len() {
        0 => Err(FindError::Unknown { what }),
        1 => Ok(fitting.remove(0).segment.clone()),
        _ => Err(FindError::Several { what, list: lines(&fitting) }),
    }
}

fn lines(of: &[&ListedSegment]) -> Vec<String> {
    let number = |of: &ListedSegment| {
        let AttachedSegment { device: (major, minor), inode, .. } = of.segment;
        format!("--segment {major:02x}:{minor:02x}:{inode}")
    };
    let unique = |one: &ListedSegment| of.iter().filter(|other| other.choose == one.choose).count() == 1;
    let line = |one: &&ListedSegment| {
        let options = if unique(one) { one.choose.clone() } else { number(one) };
        let users: Vec<String> = one.users.iter().map(|user| user.pid.to_string()).collect();
        format!("  {options}  {}, {} bytes, mapped by {}", one.segment.name, one.segment.bytes, users.join(", "))
    };
    of.iter().map(line).collect()
}

/// The file at `path` if somebody maps it, whatever its name in their maps.
fn of_file(listing: &AttachListing, path: &Path, what: &str) -> Result<AttachedSegment, FindError> {
    let gone = || fitting(listing, |of| of.deleted && Path::new(segment::bare_name(of)) == path);
    let Ok(key) = own_mapping::key_of(path) else { return one_of(gone(), what) };
    let found = listing.segments.iter().find(|of| (of.segment.device, of.segment.inode) == key);
    match (found, gone()) {
        (Some(found), _) => Ok(found.segment.clone()),
        (None, gone) if gone.is_empty() => Err(FindError::Unmapped { what: what.to_owned(), beside: unseen(listing) }),
        (None, gone) => {
            let beside =
                format!(", but one that had this name and was deleted is mapped:\n{}\n", lines(&gone).join("\n"));
            Err(FindError::Unmapped { what: what.to_owned(), beside })
        }
    }
}

fn of_name(listing: &AttachListing, name: &str) -> Result<AttachedSegment, FindError> {
    let what = format!("--segment {name}");
    if let Some((device, inode)) = segment::parsed_number(name) {
        return one_of(fitting(listing, |of| (of.device, of.inode) == (device, inode)), &what);
    }
    if name.starts_with("memfd:") {
        return one_of(fitting(listing, |of| segment::bare_name(of).strip_prefix('/') == Some(name)), &what);
    }
    let path = Path::new("/dev/shm").join(name.trim_start_matches('/'));
    if path.exists() {
        return of_file(listing, &path, &what);
    }
    // It may have been unlinked, or lie in the file system of a container.
    one_of(fitting(listing, |of| Path::new(segment::bare_name(of)) == path), &what)
}

/// What all the named processes map. Of several it is the one that most processes may write, if that is one.
fn shared_by(
    listing: &AttachListing,
    pids: &[u32],
    closed: &[(u32, Closed)],
    notes: &mut Vec<AttachNote>,
) -> Result<AttachedSegment, FindError> {
    let open: BTreeSet<u32> = pids.iter().copied().filter(|pid| closed.iter().all(|(of, _)| of != pid)).collect();
    let by_all = |of: &&ListedSegment| open.iter().all(|pid| of.users.iter().any(|user| user.pid == *pid));
    let all: Vec<&ListedSegment> = listing.segments.iter().filter(by_all).collect();
    let loud: Vec<&ListedSegment> = all.iter().copied().filter(|of| of.quiet.is_none()).collect();
    // One process may be watched on what it alone maps: its threads contend too.
    let candidates = if loud.is_empty() { all } else { loud };
    let what = words(&Wanted::OfPids, pids);
    let most = candidates.iter().map(|of| writers(of)).max();
    let Some(most) = most else { return Err(FindError::NothingShared { what, why: nothing(listing, &open) }) };
    let best: Vec<&ListedSegment> = candidates.iter().copied().filter(|of| writers(of) == most).collect();
    if best.len() > 1 {
        return Err(FindError::Several { what, list: lines(&candidates) });
    }
    let others: Vec<&ListedSegment> = candidates.into_iter().filter(|of| of.segment != best[0].segment).collect();
    if !others.is_empty() {
        let choose: Vec<&str> = others.iter().map(|of| of.choose.as_str()).collect();
        notes.push(AttachNote {
            id: "several_segments".to_owned(),
            pid: None,
            text: format!(
                "{what} share {} segments; the one that most processes may write is watched",
                others.len() + 1
            ),
            cure: Some(format!("for another one: {}", choose.join(", or "))),
        });
    }
    Ok(best[0].segment.clone())
}

fn writers(of: &ListedSegment) -> usize {
    of.users.iter().filter(|user| user.mappings.iter().any(|mapping| mapping.writable)).count()
}

fn nothing(listing: &AttachListing, pids: &BTreeSet<u32>) -> String {
    let maps = |pid: &u32| {
        let count = listing.segments.iter().filter(|of| of.users.iter().any(|user| user.pid == *pid)).count();
        format!("process {pid} maps {count}")
    };
    match pids.len() {
        1 => "it maps no shared segment".to_owned(),
        _ => format!("they have no shared segment in common: {}", pids.iter().map(maps).collect::<Vec<_>>().join(", ")),
    }
}

/// Each process that maps the segment, opened; with `pids` these alone.
fn open(root: &Root, key: Key, pids: &[u32]) -> Vec<Target> {
    let asked = |pid: &u32| pids.is_empty() || pids.contains(pid);
    let opened = |pid| match look(root, pid, key) {
        Looked::Maps(target, _) => Some(*target),
        Looked::Elsewhere | Looked::Gone | Looked::Closed => None,
    };
    host::process_numbers(root).into_iter().filter(asked).filter_map(opened).collect()
}

/// Each named process that could be looked at, and does not map the segment: it is not watched.
fn not_users(root: &Root, users: &[Target], closed: &[(u32, Closed)], pids: &[u32]) -> Vec<AttachNote> {
    let asked: BTreeSet<u32> = pids.iter().copied().collect();
    let told = |pid: &u32| users.iter().any(|user| user.pid == *pid) || closed.iter().any(|(of, _)| of == pid);
    let note = |pid| AttachNote {
        id: "not_a_user".to_owned(),
        pid: Some(pid),
        text: format!("{} did not map the segment when the watch began, and is not watched", access::named(root, pid)),
        cure: Some(
            "`coordinator attach --list --all` shows who maps what; watch again once it has mapped the segment"
                .to_owned(),
        ),
    };
    asked.into_iter().filter(|pid| !told(pid)).map(note).collect()
}

fn unseen(listing: &AttachListing) -> String {
    match listing.closed.len() {
        0 => String::new(),
        closed => format!(" of those that this one may look at ({closed} closed to it)"),
    }
}

/// Where all users were asked for, and some processes could not be looked at.
fn not_looked_at(root: &Root, listing: &AttachListing, pids: &[u32]) -> Option<AttachNote> {
    let Closed { why, cure } = access::closed_processes(root, &listing.closed).filter(|_| pids.is_empty())?;
    Some(AttachNote { id: "not_permitted".to_owned(), pid: None, text: why, cure: Some(cure) })
}

#[cfg(test)]
#[path = "find_tests.rs"]
mod tests;

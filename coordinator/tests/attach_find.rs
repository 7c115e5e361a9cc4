//! Which segment `attach` finds by which words, and which processes map it, whatever the segment is and wherever each has
//! it.

mod common;
mod foreign;

use common::{coordinator, stderr, stdout};
use foreign::{Sharer, process, sharer, watched};
use record::{Attach, AttachListing, ListedSegment, SegmentKind};
use std::path::Path;
use testing::skip;

/// What every sharer maps.
const BYTES: u64 = 16_384;

/// A name of POSIX shared memory that is removed at the test's end.
struct Name(String);

impl Name {
    fn new(of: &str) -> Name {
        Name(format!("/foreign-{of}-{}", std::process::id()))
    }

    fn remove(&self) {
        let _ = std::fs::remove_file(Path::new("/dev/shm").join(&self.0[1..]));
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Two processes that have a segment at different addresses.
fn two(kind: &str, name: &str, again: &str) -> Option<[Sharer; 2]> {
    if let Err(why) = sharer() {
        skip(&why);
        return None;
    }
    let first = Sharer::start(kind, name);
    let second = Sharer::start(again, &first.handle);
    assert_ne!(first.address, second.address, "the decoy does its work");
    Some([first, second])
}

/// That exactly these two were seen, each where it said that it has the segment.
fn assert_both(seen: &Attach, both: &[Sharer; 2], kind: SegmentKind, deleted: bool) {
    let segment = &seen.segment;
    assert_eq!((segment.kind, segment.bytes, segment.deleted), (kind, BYTES, deleted), "{segment:?}");
    let mut pids = both.iter().map(|one| one.pid).collect::<Vec<_>>();
    pids.sort_unstable();
    assert_eq!(seen.processes.iter().map(|one| one.pid).collect::<Vec<_>>(), pids);
    for one in both {
        let seen = process(seen, one.pid);
        let [mapping] = seen.mappings[..] else { panic!("{seen:?}") };
        assert_eq!((mapping.address, mapping.bytes, mapping.offset), (one.address, BYTES, 0));
        assert!(
            mapping.writable && seen.command == "sharer" && seen.threads == 1 && seen.address_bits == 64,
            "{seen:?}"
        );
        assert!(seen.ended.is_none() && seen.joined_ns.is_none() && seen.unwatched.is_none(), "{seen:?}");
        assert!(seen.executable.as_deref().is_some_and(|path| path.ends_with("/sharer")), "{seen:?}");
        assert!(seen.cpu.iter().all(|share| share.is_some_and(|share| share < 0.5)), "it sleeps: {:?}", seen.cpu);
    }
}

#[test]
fn posix_shared_memory_is_found_by_its_name_also_when_that_is_gone() {
    let name = Name::new("posix");
    let Some(both) = two("posix", &name.0, "posix") else { return };
    assert_both(&watched(&["--segment", &name.0, "--for", "1s"]), &both, SegmentKind::Posix, false);
    name.remove();
    assert_both(&watched(&["--segment", &name.0, "--for", "1s"]), &both, SegmentKind::Posix, true);
}

#[test]
fn memory_without_a_file_is_found_by_the_name_it_was_made_with() {
    let name = format!("queue-{}", std::process::id());
    let Some(both) = two("memfd", &name, "file") else { return };
    let seen = watched(&["--segment", &format!("memfd:{name}"), "--for", "1s"]);
    assert_both(&seen, &both, SegmentKind::Memfd, true);
}

fn remove_sysv(id: &str) -> bool {
    std::process::Command::new("ipcrm").args(["-m", id]).status().is_ok_and(|status| status.success())
}

#[test]
fn system_v_shared_memory_is_found_by_its_number() {
    let Some(both) = two("sysv", "-1", "sysv") else { return };
    let id = both[0].handle.clone();
    assert_both(&watched(&["--sysv", &id, "--for", "1s"]), &both, SegmentKind::Sysv, false);
    if !remove_sysv(&id) {
        return skip("ipcrm of util-linux is not there, and the segment stays");
    }
    assert_both(&watched(&["--sysv", &id, "--for", "1s"]), &both, SegmentKind::Sysv, true);
}

#[test]
fn a_file_is_found_by_its_path_also_when_it_was_removed() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("a ring");
    let path = path.to_str().unwrap();
    let Some(both) = two("file", path, "file") else { return };
    assert_both(&watched(&["--file", path, "--for", "1s"]), &both, SegmentKind::File, false);
    std::fs::remove_file(path).unwrap();
    assert_both(&watched(&["--file", path, "--for", "1s"]), &both, SegmentKind::File, true);
}

#[test]
fn memory_that_a_child_inherited_is_found_by_pids_alone() {
    if let Err(why) = sharer() {
        return skip(&why);
    }
    let mut parent = Sharer::start("anonymous", "-");
    let child = u32::try_from(parent.tell("fork")).unwrap();
    let pids = [parent.pid.to_string(), child.to_string()];
    let seen = watched(&["--pid", &pids[0], "--pid", &pids[1], "--for", "1s"]);
    assert_eq!((seen.segment.kind, seen.segment.bytes), (SegmentKind::Anonymous, BYTES));
    for pid in [parent.pid, child] {
        assert_eq!(process(&seen, pid).mappings[0].address, parent.address, "a fork has it where its parent does");
    }
    parent.tell(&format!("kill {child}"));
}

#[test]
fn a_named_process_that_does_not_map_the_segment_is_told_of() {
    let (name, other) = (Name::new("asked"), Name::new("elsewhere"));
    let Some(both) = two("posix", &name.0, "posix") else { return };
    let elsewhere = Sharer::start("posix", &other.0);
    let pids = [both[0].pid, elsewhere.pid].map(|pid| pid.to_string());
    let seen = watched(&["--segment", &name.0, "--pid", &pids[0], "--pid", &pids[1], "--for", "1s"]);
    assert_eq!(seen.processes.iter().map(|one| one.pid).collect::<Vec<_>>(), [both[0].pid]);
    let notes: Vec<_> = seen.notes.iter().filter(|note| note.id == "not_a_user").collect();
    let [note] = notes[..] else { panic!("{:?}", seen.notes) };
    assert!(note.pid == Some(elsewhere.pid) && note.text.contains(&pids[1]) && note.cure.is_some(), "{note:?}");
}

fn listed() -> AttachListing {
    let output = coordinator().args(["attach", "--list", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

fn of_pid(listing: &AttachListing, pid: u32) -> &ListedSegment {
    let maps = |of: &&ListedSegment| of.quiet.is_none() && of.users.iter().any(|user| user.pid == pid);
    listing.segments.iter().find(maps).unwrap_or_else(|| panic!("{pid} shares nothing: {listing:#?}"))
}

#[test]
fn the_list_names_each_segment_by_options_that_find_it() {
    let (name, memfd) = (Name::new("listed"), format!("listed {}", std::process::id()));
    let (Some(posix), Some(memory)) = (two("posix", &name.0, "posix"), two("memfd", &memfd, "file")) else { return };
    let Some(sysv) = two("sysv", "-1", "sysv") else { return };
    let listing = listed();
    for (both, kind) in [(&posix, SegmentKind::Posix), (&memory, SegmentKind::Memfd), (&sysv, SegmentKind::Sysv)] {
        let of = of_pid(&listing, both[0].pid);
        assert_eq!((of.segment.kind, of.users.len(), of.users[0].mappings.len()), (kind, 2, 1), "{of:?}");
        let options: Vec<&str> = of.choose.split(' ').chain(["--for", "1s"]).collect();
        assert_eq!(watched(&options).segment, of.segment, "{}", of.choose);
    }
    let screen = stdout(&coordinator().args(["attach", "--list"]).output().unwrap());
    assert!(screen.contains(&name.0) && screen.contains("coordinator attach --segment /foreign-listed"), "{screen}");
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    remove_sysv(&sysv[0].handle);
}

#[test]
fn of_several_segments_the_user_is_asked_and_what_is_not_there_is_told() {
    let name = format!("twin-{}", std::process::id());
    let (Some(one), Some(_other)) = (two("memfd", &name, "file"), two("memfd", &name, "file")) else { return };
    let refused = |arguments: &[&str]| {
        let output = coordinator().arg("attach").args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        stderr(&output)
    };
    let text = refused(&["--segment", &format!("memfd:{name}")]);
    assert!(text.contains("fits 2 segments; name one of them:") && text.contains("--segment 00:"), "{text}");
    let narrowed = watched(&["--pid", &one[0].pid.to_string(), "--pid", &one[1].pid.to_string(), "--for", "1s"]);
    assert_both(&narrowed, &one, SegmentKind::Memfd, true);
    for (arguments, part) in [
        (&["--segment", "/not there"][..], "there is no such segment"),
        (&["--sysv", "4000000000"], "there is no such segment"),
        (&["--file", "/not there"], "there is no such segment"),
        (&["--file", "/proc/version"], "no process maps it now"),
        (&["--pid", "4294967295"], "there is no process of this number"),
        (&[], "--list"),
        (&["--segment", "/x", "--for", "10ms"], "from 1s to 1h"),
    ] {
        let text = refused(arguments);
        assert!(text.contains(part), "{arguments:?}: {text}");
    }
}

//! Which segment a user's words name, on machines made of files. Processes there cannot be opened: so what is asked is the
//! choice alone.

use super::*;

/// A listing of segments: name, inode, who maps it, and who of them may write.
fn listing(rows: &[(&str, u64, &[u32], &[u32])]) -> (tempfile::TempDir, AttachListing) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut maps = std::collections::BTreeMap::<u32, String>::new();
    for (index, (name, inode, users, writers)) in rows.iter().enumerate() {
        for pid in *users {
            let mode = if writers.contains(pid) { "rw-s" } else { "r--s" };
            let begin = 0x1000 * (index + 1);
            let line = format!("{begin:x}-{:x} {mode} 00000000 00:1b {inode} {name}\n", begin + 0x1000);
            maps.entry(*pid).or_default().push_str(&line);
        }
    }
    for (pid, text) in maps {
        let process = folder.path().join(format!("proc/{pid}"));
        std::fs::create_dir_all(&process).expect("a folder");
        std::fs::write(process.join("maps"), text).expect("a file");
    }
    let seen = census(&Root::at(folder.path()));
    (folder, seen)
}

fn inode(found: Result<AttachedSegment, FindError>) -> u64 {
    found.unwrap_or_else(|error| panic!("{error}")).inode
}

#[test]
fn a_name_finds_what_was_unlinked_too() {
    let (_folder, seen) = listing(&[
        ("/dev/shm/no such ring here (deleted)", 41, &[11, 12], &[11]),
        ("/memfd:queue (deleted)", 42, &[11, 12], &[11]),
    ]);
    assert_eq!(inode(of_name(&seen, "/no such ring here")), 41);
    assert_eq!(inode(of_name(&seen, "no such ring here")), 41);
    assert_eq!(inode(of_name(&seen, "memfd:queue")), 42);
    assert_eq!(inode(of_name(&seen, "00:1b:42")), 42);
    let error = of_name(&seen, "/another").expect_err("no such name");
    assert_eq!(error, FindError::Unknown { what: "--segment /another".to_owned() });
    assert!(error.to_string().contains("attach --list"), "{error}");
}

#[test]
fn a_name_of_several_asks_which() {
    let (_folder, seen) =
        listing(&[("/memfd:q (deleted)", 41, &[11, 12], &[11]), ("/memfd:q (deleted)", 42, &[13, 14], &[13])]);
    let text = of_name(&seen, "memfd:q").expect_err("two of them").to_string();
    assert!(text.starts_with("--segment memfd:q fits 2 segments; name one of them:"), "{text}");
    assert!(text.contains("--segment 00:1b:41  /memfd:q (deleted), 4096 bytes, mapped by 11, 12"), "{text}");
    assert!(text.contains("--segment 00:1b:42"), "{text}");
}

#[test]
fn a_file_that_is_there_and_not_mapped_is_told_from_one_that_is_not_there() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let (_folder, seen) = listing(&[(&format!("{} (deleted)", file.path().display()), 41, &[11, 12], &[11])]);
    let text = of_file(&seen, file.path(), "--file x").expect_err("another one").to_string();
    assert!(text.contains("no process maps it now") && text.contains("--segment 00:1b:41"), "{text}");
    let path = file.path().to_owned();
    drop(file);
    assert_eq!(inode(of_file(&seen, &path, "--file x")), 41, "the name is gone, and so is the file");
}

#[test]
fn pids_alone_find_what_they_share() {
    let shared = |pids: &[u32]| {
        let (_folder, seen) = listing(&[
            ("/dev/shm/all", 41, &[11, 12, 13], &[11, 12]),
            ("/dev/shm/two", 42, &[11, 12], &[12]),
            ("/usr/share/font", 43, &[11, 12, 13], &[]),
            ("/dev/shm/x", 44, &[15, 16], &[15]),
            ("/dev/shm/y", 45, &[15, 16], &[16]),
            ("/var/own", 46, &[17], &[17]),
        ]);
        let mut notes = Vec::new();
        shared_by(&seen, pids, &[], &mut notes).map(|segment| (segment.inode, notes))
    };
    let (inode, notes) = shared(&[11, 12]).expect("one of two");
    assert_eq!((inode, notes[0].id.as_str()), (41, "several_segments"));
    assert_eq!(notes[0].cure.as_deref(), Some("for another one: --segment /two"));
    assert_eq!(shared(&[11, 13]), Ok((41, vec![])), "a font that nobody writes is no choice");
    assert_eq!(shared(&[17]), Ok((46, vec![])), "threads of one process contend too");
    let text = shared(&[15, 16]).expect_err("neither is more shared").to_string();
    assert!(text.contains("--segment /x") && text.contains("--segment /y"), "{text}");
    let text = shared(&[13, 15]).expect_err("nothing").to_string();
    assert!(text.contains("no shared segment in common: process 13 maps 2, process 15 maps 2"), "{text}");
}

#[test]
fn processes_that_could_not_be_looked_at_are_noted_unless_pids_were_named() {
    let (folder, seen) = listing(&[]);
    let root = Root::at(folder.path());
    let seen = AttachListing { closed: vec![1, 2], ..seen };
    let note = not_looked_at(&root, &seen, &[]).expect("a note");
    assert!(note.text.starts_with("2 processes are closed to this one"), "{note:?}");
    assert_eq!(not_looked_at(&root, &seen, &[11]), None);
    assert!(unseen(&seen).contains("2 closed to it"));
}

#[test]
fn a_named_process_that_does_not_map_the_segment_is_noted_once() {
    let (folder, _) = listing(&[("/dev/shm/other", 41, &[11, 12], &[11])]);
    let closed = Closed { why: String::new(), cure: String::new() };
    let notes = not_users(&Root::at(folder.path()), &[], &[(12, closed)], &[11, 12, 11]);
    let [note] = &notes[..] else { panic!("one is closed, and told so elsewhere: {notes:?}") };
    assert_eq!((note.id.as_str(), note.pid), ("not_a_user", Some(11)));
    assert!(note.text.starts_with("process 11 ") && note.text.contains("did not map the segment"), "{note:?}");
}

#[test]
fn a_number_that_is_no_process_s_is_refused() {
    let error = named_processes(&Root::system(), &[u32::MAX]).expect_err("no such process");
    assert!(error.to_string().starts_with("--pid 4294967295: there is no process of this number"), "{error}");
}

//! Finding and removing the segments that dead runs left.

use crate::segment::{NAME_PREFIX, SHM_FOLDER};
use nix::fcntl::{Flock, FlockArg, OFlag};
use nix::sys::mman::{shm_open, shm_unlink};
use nix::sys::stat::{Mode, fstat};
use std::os::fd::OwnedFd;

/// A segment of the lab's, found by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}

/// The lab's segments that no living creator holds, this user's own alone.
///
/// # Errors
/// Where `/dev/shm` cannot be read.
pub fn orphans() -> std::io::Result<Vec<Orphan>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(SHM_FOLDER)? {
        let Ok(name) = entry?.file_name().into_string() else {
            continue;
        };
        if let Some((_, bytes)) = claim(&name) {
            found.push(Orphan { name, bytes });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Removes one of them, if nobody holds it still. Returns whether it was removed.
pub fn remove_orphan(name: &str) -> bool {
    // Unlinked while the lock is held: a creator that lost this race sees its link gone and takes another name.
    claim(name).is_some_and(|(_guard, _)| shm_unlink(format!("/{name}").as_str()).is_ok())
}

/// Locks a segment that its creator no longer holds, for a moment: a creator waits for it. Never one of another user,
/// nor anything but a lab's regular file.
fn claim(name: &str) -> Option<(Flock<OwnedFd>, u64)> {
    let digits = name.strip_prefix(NAME_PREFIX)?;
    if digits.len() != 16 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    // Without waiting: whoever made a file may hold a lease on it (fcntl(2)), for which an open would wait a minute.
    let flags = OFlag::O_RDWR | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let fd = shm_open(format!("/{name}").as_str(), flags, Mode::empty()).ok()?;
    let stat = fstat(&fd).ok()?;
    let ours = stat.st_uid == nix::unistd::geteuid().as_raw() && stat.st_mode & libc::S_IFMT == libc::S_IFREG;
    if !ours {
        return None;
    }
    let guard = Flock::lock(fd, FlockArg::LockExclusiveNonblock).ok()?;
    // Where another sweep was faster the name may be somebody else's by now. While it is locked here, none removes it.
    let linked = fstat(&*guard).ok()?.st_nlink > 0;
    linked.then_some((guard, stat.st_size as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::random_name;
    use std::path::Path;
    use std::time::{Duration, Instant};

    #[test]
    fn what_a_dead_creator_left_is_found_and_removed() {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let name = random_name().unwrap();
            let path = Path::new(SHM_FOLDER).join(&name);
            std::fs::write(&path, b"left").unwrap();
            let listed = orphans().unwrap().contains(&Orphan { name: name.clone(), bytes: 4 });
            if remove_orphan(&name) && listed {
                assert!(!path.exists());
                return;
            }
            // A run elsewhere on this machine may have swept at that moment, and been first.
            let _ = std::fs::remove_file(&path);
            assert!(Instant::now() < deadline, "never both found and removed");
        }
    }

    #[test]
    fn what_is_not_the_labs_is_left_alone() {
        let labs = random_name().unwrap();
        for name in [format!("{labs}0"), format!("{}g", &labs[..labs.len() - 1]), format!("x{labs}")] {
            let path = Path::new(SHM_FOLDER).join(&name);
            std::fs::write(&path, b"kept").unwrap();
            assert!(!remove_orphan(&name));
            assert!(path.exists());
            std::fs::remove_file(&path).unwrap();
        }
    }
}

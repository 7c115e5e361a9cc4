//! Where debug information lies that was split off a program: the places that debuggers look in (GDB manual, "Separate Debug
//! Files").

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where distributions put it.
pub const DEBUG_ROOT: &str = "/usr/lib/debug";

/// The files that a program's debug information may have been moved to, those by its build identifier first. `link`: the name
/// that it gives itself (`.gnu_debuglink`), which is one of a file and no path; `folder`: where the program lies, whole;
/// `roots`: [`DEBUG_ROOT`], and others like it.
pub fn places(build_id: Option<&[u8]>, link: Option<&[u8]>, folder: &Path, roots: &[PathBuf]) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = build_id.into_iter().flat_map(|id| by_build_id(id, roots)).collect();
    let is_name = |name: &&[u8]| !matches!(*name, b"" | b"." | b"..") && !name.contains(&b'/') && !name.contains(&0);
    if let Some(name) = link.filter(is_name) {
        let name = Path::new(OsStr::from_bytes(name));
        places.push(folder.join(name));
        places.push(folder.join(".debug").join(name));
        let within = folder.strip_prefix("/").unwrap_or(folder);
        places.extend(roots.iter().map(|root| root.join(within).join(name)));
    }
    places
}

/// The files of a build identifier.
pub fn by_build_id(id: &[u8], roots: &[PathBuf]) -> Vec<PathBuf> {
    let Some((first, rest)) = id.split_first().filter(|(_, rest)| !rest.is_empty()) else { return Vec::new() };
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    roots.iter().map(|root| root.join(format!(".build-id/{first:02x}/{rest}.debug"))).collect()
}

#[cfg(test)]
mod tests {
    use super::places;
    use std::path::{Path, PathBuf};

    #[test]
    fn the_build_identifier_comes_first_then_the_name_and_a_name_is_no_path() {
        let roots = ["/usr/lib/debug", "/own"].map(PathBuf::from);
        let of = |id: Option<&[u8]>, link: Option<&[u8]>| -> Vec<String> {
            let all = places(id, link, Path::new("/usr/bin"), &roots);
            all.iter().map(|path| path.display().to_string()).collect()
        };
        let expected = [
            "/usr/lib/debug/.build-id/0a/1bff.debug",
            "/own/.build-id/0a/1bff.debug",
            "/usr/bin/p.debug",
            "/usr/bin/.debug/p.debug",
            "/usr/lib/debug/usr/bin/p.debug",
            "/own/usr/bin/p.debug",
        ];
        assert_eq!(of(Some(&[0x0a, 0x1b, 0xff]), Some(b"p.debug")), expected);
        for name in ["../../etc/shadow", "/etc/shadow", "..", "", "a\0b"] {
            assert_eq!(of(Some(&[7]), Some(name.as_bytes())), [""; 0], "{name:?}");
        }
    }
}

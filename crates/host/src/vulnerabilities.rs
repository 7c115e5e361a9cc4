//! The processor's known weaknesses, and what the kernel does about each.

use crate::root::Root;

/// One weakness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vulnerability {
    /// `meltdown`, `spectre_v2`, ….
    pub name: String,
    /// In the kernel's words: `Not affected`, `Vulnerable…`, `Mitigation: …`, `Unknown…`.
    pub status: String,
}

/// Every weakness that the kernel knows, by name; none where it does not say.
///
/// # References
/// `Documentation/admin-guide/hw-vuln/index.rst`; `Documentation/ABI/testing/sysfs-devices-system-cpu`,
/// vulnerabilities.
pub fn vulnerabilities(root: &Root) -> Vec<Vulnerability> {
    let folder = "sys/devices/system/cpu/vulnerabilities";
    let read = |name: String| {
        let status = root.text(&format!("{folder}/{name}"))?;
        Some(Vulnerability { name, status })
    };
    root.names(folder).into_iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::vulnerabilities;
    use crate::fixture::Fixture;

    #[test]
    fn each_file_is_a_weakness() {
        let folder = "sys/devices/system/cpu/vulnerabilities";
        let fixture = Fixture::new()
            .file(&format!("{folder}/meltdown"), "Mitigation: PTI\n")
            .file(&format!("{folder}/l1tf"), "Not affected\n");
        let seen = vulnerabilities(&fixture.root());
        let of: Vec<(&str, &str)> = seen.iter().map(|v| (v.name.as_str(), v.status.as_str())).collect();
        assert_eq!(of, [("l1tf", "Not affected"), ("meltdown", "Mitigation: PTI")]);
        assert!(vulnerabilities(&Fixture::new().root()).is_empty());
    }
}

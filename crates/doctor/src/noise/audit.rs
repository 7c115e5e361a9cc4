//! Whether system calls are audited.

use crate::Finding;
use host::Root;

/// What is known without asking the audit system itself, which takes CAP_AUDIT_CONTROL.
pub(super) fn finding(root: &Root, auditd: bool) -> Finding {
    const NAME: &str = "audit";
    const WHY: &str = "an audited system call costs several times its own time: a lock that waits in the kernel looks worse \
                       than it is";
    let at_boot = host::kernel_parameter(root, "audit");
    if !auditd && !host::command_line_is_shown(root) {
        return Finding::missing(NAME, "no auditd seen, and /proc/cmdline is hidden", WHY);
    }
    let (seen, on) = match (auditd, at_boot.as_deref()) {
        (_, Some("0" | "off")) => ("off at boot (audit=0)", false),
        (true, _) => ("auditd runs", true),
        (false, Some("1" | "on")) => ("on at boot (audit=1), no auditd seen", true),
        (false, _) => ("no auditd seen, not asked for at boot", false),
    };
    match on {
        false => Finding::idle(NAME, seen, WHY),
        true => Finding::warn(NAME, seen, WHY).cured_by(
            "`sudo auditctl -e 0` while measuring, `sudo auditctl -e 1` afterwards; `sudo auditctl -l` lists rules",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::finding;
    use crate::fixture::{Fixture, assert_well_formed};
    use record::CheckState::{self, Missing, Ok, Warn};

    fn state(line: &str, auditd: bool) -> CheckState {
        let found = finding(Fixture::new().file("proc/cmdline", line).patient().root, auditd);
        assert_well_formed(&found);
        assert_eq!(found.check.state == Warn, found.check.cure.is_some());
        found.check.state
    }

    #[test]
    fn a_daemon_or_the_command_line_tells() {
        assert_eq!((state("quiet", false), state("quiet", true)), (Ok, Warn));
        let hidden = finding(Fixture::new().patient().root, false);
        assert_eq!(hidden.check.state, Missing, "{hidden:?}");
        assert_eq!((state("audit=1", false), state("audit=off", true)), (Warn, Ok));
    }
}

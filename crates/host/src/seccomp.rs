//! Whether this process's system calls are filtered.

use crate::named_rows::row;
use crate::root::Root;

/// How the kernel restricts this process's system calls.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Seccomp {
    /// Not at all.
    Off,
    /// read, write, exit and sigreturn alone.
    Strict,
    /// A filter judges each call, as container runtimes install one.
    Filter,
}

/// The seccomp mode of this process; `None` where `/proc/self/status` does not say.
///
/// # References
/// prctl(2), PR_GET_SECCOMP; proc_pid_status(5).
pub fn seccomp(root: &Root) -> Option<Seccomp> {
    match row(&root.text("proc/self/status")?, "Seccomp")? {
        "0" => Some(Seccomp::Off),
        "1" => Some(Seccomp::Strict),
        "2" => Some(Seccomp::Filter),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Seccomp, seccomp};
    use crate::fixture::Fixture;

    #[test]
    fn a_mode_that_is_not_said_is_not_off() {
        let of = |row: &str| seccomp(&Fixture::new().file("proc/self/status", &format!("Name:\tx\n{row}\n")).root());
        assert_eq!(of("Seccomp:\t0"), Some(Seccomp::Off));
        assert_eq!(of("Seccomp:\t1"), Some(Seccomp::Strict));
        assert_eq!(of("Seccomp:\t2"), Some(Seccomp::Filter));
        assert_eq!((of("Seccomp_filters:\t2"), seccomp(&Fixture::new().root())), (None, None));
    }
}

//! What the kernel was told when it was started.

use crate::root::Root;

/// The value of a parameter of the kernel's command line, the empty text where it stands without one; the last where it
/// is given twice. `None` where it is not given, or `/proc/cmdline` cannot be read.
///
/// # References
/// `Documentation/admin-guide/kernel-parameters.rst`.
pub fn kernel_parameter(root: &Root, name: &str) -> Option<String> {
    let line = root.text("proc/cmdline")?;
    let value = |word: &str| {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        (key == name).then(|| value.to_owned())
    };
    line.split_whitespace().filter_map(value).next_back()
}

/// Whether `/proc/cmdline` can be read, so that a parameter that is not found there was not given.
pub fn command_line_is_shown(root: &Root) -> bool {
    root.text("proc/cmdline").is_some()
}

#[cfg(test)]
mod tests {
    use super::{command_line_is_shown, kernel_parameter};
    use crate::fixture::Fixture;

    #[test]
    fn parameters_are_found_by_their_whole_name_and_the_last_counts() {
        let root = Fixture::new().file("proc/cmdline", "quiet skew_tick=0 xaudit=1 skew_tick=1 isolcpus=domain,2-3\n");
        let of = |name| kernel_parameter(&root.root(), name);
        assert_eq!((of("skew_tick").as_deref(), of("quiet").as_deref()), (Some("1"), Some("")));
        assert_eq!((of("isolcpus").as_deref(), of("audit")), (Some("domain,2-3"), None));
        assert!(command_line_is_shown(&root.root()));
        let hidden = Fixture::new();
        assert_eq!((kernel_parameter(&hidden.root(), "quiet"), command_line_is_shown(&hidden.root())), (None, false));
    }
}

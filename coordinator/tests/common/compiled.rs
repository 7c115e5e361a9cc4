//! Programs that a test compiles with debug information, from the sources in `tests/layouts`.

use std::path::{Path, PathBuf};
use std::process::Command;
use testing::skip;

/// Compiles `source` of `tests/layouts` to `folder/name`; `None`, with the reason said, where there is no compiler.
pub(crate) fn compile(compiler: &str, arguments: &[&str], source: &str, folder: &Path, name: &str) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/layouts").join(source);
    let program = folder.join(name);
    let mut command = Command::new(compiler);
    command.args(arguments).arg(&source).arg("-o").arg(&program).current_dir(folder);
    match command.output() {
        Err(error) => {
            skip(&format!("{compiler} cannot be run: {error}"));
            None
        }
        Ok(output) => {
            assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
            Some(program)
        }
    }
}

//! `clean`: removes segments that dead runs left. What a living process holds, or another user made, stays.

use crate::exit::{CommandError, Ending};
use std::io::Write;

pub(crate) fn clean() -> Result<Ending, CommandError> {
    let orphans =
        shm_layout::orphans().map_err(|error| CommandError::Failed(format!("reading /dev/shm failed: {error}")))?;
    let mut out = std::io::stdout().lock();
    let mut removed = 0;
    for orphan in &orphans {
        if shm_layout::remove_orphan(&orphan.name) {
            writeln!(out, "removed /dev/shm/{} ({} bytes)", orphan.name, orphan.bytes)?;
            removed += 1;
        }
    }
    if removed == 0 {
        writeln!(out, "nothing to remove: no segment of the lab is without a living owner")?;
    }
    Ok(Ending::Done)
}

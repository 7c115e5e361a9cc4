//! `schema`: the JSON Schema of scenario files.

use crate::exit::{CommandError, Ending};
use std::io::Write;

pub(crate) fn schema() -> Result<Ending, CommandError> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{:#}", scenario::schema::json_schema())?;
    Ok(Ending::Done)
}

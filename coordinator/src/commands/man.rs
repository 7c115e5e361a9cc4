//! `man`: the manual pages, made from the command line's own help.

use crate::cli::{Cli, ManOptions};
use crate::exit::{CommandError, Ending};
use crate::report::text::shown;
use clap::CommandFactory;

pub(crate) fn man(options: &ManOptions) -> Result<Ending, CommandError> {
    let folder = &options.folder;
    let written = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(Cli::command(), folder));
    written.map(|()| Ending::Done).map_err(|error| {
        let folder = shown(folder);
        CommandError::Failed(format!(
            "writing manual pages to {folder} failed: {error}; name a folder that you can write to"
        ))
    })
}

//! What a child says, line by line.

use crate::A_LONG_TIME;
use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

/// Lines out of a child's pipe, taken by a thread of their own: the child never waits for a reader, and the reader never
/// for longer than [`A_LONG_TIME`].
#[derive(Debug)]
pub struct Lines {
    heard: Receiver<String>,
}

impl Lines {
    /// The lines of what `source` gives.
    pub fn of(source: impl Read + Send + 'static) -> Lines {
        let (tell, heard) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(source).split(b'\n').map_while(Result::ok);
            let text = |line: Vec<u8>| String::from_utf8_lossy(&line).into_owned();
            lines.map(text).try_for_each(|line| tell.send(line))
        });
        Lines { heard }
    }

    /// Waits for the next line, which comes without its end; `None` where the child said no more.
    ///
    /// # Panics
    /// After [`A_LONG_TIME`] without one.
    #[track_caller]
    pub fn hear(&self) -> Option<String> {
        match self.heard.recv_timeout(A_LONG_TIME) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no line within {A_LONG_TIME:?}"),
        }
    }

    /// What has come by now, without waiting.
    pub fn heard(&self) -> impl Iterator<Item = String> + '_ {
        self.heard.try_iter()
    }
}

//! A repetition's window as somebody outside sees it: the name goes before the first pass, but whoever had opened it by then
//! can read the two instants as long as the file is kept open, without a mapping. For `bench`, which times the start of runs
//! that it is no part of; it stands here because the two words' places are the map's.

use crate::control::{Control, Published, WindowTicks};
use crate::header::{Header, MAGIC};
use std::fs::File;
use std::io;
use std::mem::{offset_of, size_of};
use std::os::unix::fs::FileExt;

const OPEN: usize = size_of::<Header>() + offset_of!(Control, published) + offset_of!(Published, open_ticks);
const CLOSE: usize = size_of::<Header>() + offset_of!(Control, published) + offset_of!(Published, close_ticks);

impl WindowTicks {
    /// What a segment's file says; `None` where its window was never published, or where this is no segment of the lab's.
    /// Anyone, when the repetition has ended: until then the two words may not belong together.
    ///
    /// # Errors
    /// Where the file cannot be read, or is shorter than a segment.
    pub fn read(segment: &File) -> io::Result<Option<WindowTicks>> {
        let word = |at: usize| {
            let mut bytes = [0; size_of::<u64>()];
            segment.read_exact_at(&mut bytes, at as u64).map(|()| u64::from_ne_bytes(bytes))
        };
        let (magic, open, close) = (word(offset_of!(Header, magic))?, word(OPEN)?, word(CLOSE)?);
        Ok((magic == MAGIC && open != 0).then_some(WindowTicks { open, close }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Segment;
    use crate::testing::{program, spec};

    #[test]
    fn an_open_file_tells_the_window_after_its_name_is_gone() {
        let program = program(4096);
        let mut segment = Segment::create(&spec(&program, b"p")).unwrap();
        let file = File::open(format!("/dev/shm/{}", segment.name())).unwrap();
        segment.unlink();
        assert_eq!(WindowTicks::read(&file).unwrap(), None, "not published yet");
        assert!(segment.control().arrive_ready(1, 1_000, 20, 300));
        assert_eq!(WindowTicks::read(&file).unwrap(), segment.control().window());
        assert_eq!(segment.control().window(), Some(WindowTicks { open: 1_020, close: 1_320 }));
    }

    #[test]
    fn another_file_has_no_window() {
        let open = |path| File::open(path).unwrap();
        assert_eq!(WindowTicks::read(&open("/proc/self/exe")).unwrap(), None);
        assert!(WindowTicks::read(&open("/proc/self/comm")).is_err(), "too short");
    }
}

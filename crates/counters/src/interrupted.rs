//! Shootdown interrupts of the worker's CPU, noted at the window's edges.

use crate::refusal;
use host::{Root, Shootdowns, ShootdownsError};
use nix::errno::Errno;
use plan::CpuId;
use record::Reading;
use std::io;

/// Interrupts since boot, `None` where the CPU has lost its column; must not allocate.
type Source = Box<dyn FnMut() -> io::Result<Option<u64>>>;

/// The notes of one worker. The first of a window is made before anything is switched on and the last after everything
/// is switched off, since each takes tens of microseconds: interrupts in these are counted too.
pub(crate) struct Interrupted {
    source: Result<Source, Reading>,
    opened: Option<u64>,
    /// Over the closed windows; `None` before the first.
    total: Option<u64>,
    /// Why a note could not be made, if one could not: then there is no figure.
    failed: Option<Reading>,
}

impl Interrupted {
    /// Of the calling thread's CPU, on which it is pinned.
    pub(crate) fn here() -> Interrupted {
        let cpu = nix::sched::sched_getcpu().ok().and_then(|cpu| u32::try_from(cpu).ok()).map(CpuId);
        let opened = match cpu {
            Some(cpu) => Shootdowns::open(&Root::system(), cpu).map_err(|error| refused(&error)),
            None => Err(refusal::unsupported("sched_getcpu(3) did not tell this worker's CPU".to_owned())),
        };
        Interrupted::by(opened.map(|mut here| -> Source { Box::new(move || here.read()) }))
    }

    fn by(source: Result<Source, Reading>) -> Interrupted {
        Interrupted { source, opened: None, total: None, failed: None }
    }

    /// The window opens.
    pub(crate) fn enable(&mut self) {
        self.opened = self.note();
    }

    /// The window closes.
    pub(crate) fn disable(&mut self) {
        let Some((opened, closed)) = self.opened.take().zip(self.note()) else { return };
        match closed.checked_sub(opened) {
            Some(more) => self.total = Some(self.total.unwrap_or(0) + more),
            None => {
                let back = "the count in /proc/interrupts went backwards, as when a virtual machine is moved";
                self.failed = Some(refusal::unsupported(back.to_owned()));
            }
        }
    }

    pub(crate) fn reading(&self) -> Reading {
        match (&self.source, &self.failed, self.total) {
            (Err(reading), ..) | (Ok(_), Some(reading), _) => reading.clone(),
            (Ok(_), None, Some(value)) => Reading::Counted { value },
            (Ok(_), None, None) => Reading::NotScheduled,
        }
    }

    fn note(&mut self) -> Option<u64> {
        let Ok(source) = &mut self.source else { return None };
        let noted = source();
        // Only what fails allocates.
        self.failed = match &noted {
            Ok(Some(_)) => return noted.ok().flatten(),
            Ok(None) => Some(refusal::unsupported("/proc/interrupts lost this CPU's column during the run".to_owned())),
            Err(error) => {
                let errno = Errno::from_raw(error.raw_os_error().unwrap_or(0));
                Some(refusal::unsupported(refusal::failed("reading /proc/interrupts", errno)))
            }
        };
        None
    }
}

fn refused(error: &ShootdownsError) -> Reading {
    match error {
        ShootdownsError::Closed { .. } => refusal::not_in_file(&Root::system(), "proc/interrupts", error.to_string()),
        ShootdownsError::NoRow { .. } => refusal::unsupported(format!(
            "{error}: this kernel has no such interrupts, or a container shows another file in its place"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::{Interrupted, Source};
    use record::Reading;
    use std::io;

    fn windows(answers: &[Option<u64>]) -> Reading {
        let windows = answers.len() / 2;
        let mut answers = Vec::from(answers).into_iter();
        let source: Source = Box::new(move || Ok(answers.next().flatten()));
        let mut noted = Interrupted::by(Ok(source));
        for _ in 0..windows {
            noted.enable();
            noted.disable();
        }
        noted.reading()
    }

    #[test]
    fn windows_add_up_and_what_lies_between_them_does_not() {
        assert_eq!(windows(&[Some(10), Some(17), Some(100), Some(101)]), Reading::Counted { value: 8 });
        assert_eq!(windows(&[]), Reading::NotScheduled, "no window is not zero interrupts");
    }

    #[test]
    fn a_note_that_failed_leaves_no_figure() {
        for answers in [[None, Some(5)], [Some(5), None], [Some(5), Some(4)]] {
            assert!(matches!(windows(&answers), Reading::Unsupported { .. }), "{answers:?}");
        }
        let closed: Source = Box::new(|| Err(io::Error::from_raw_os_error(5)));
        let mut noted = Interrupted::by(Ok(closed));
        noted.enable();
        noted.disable();
        assert!(matches!(noted.reading(), Reading::Unsupported { why } if why.contains("EIO")));
    }
}

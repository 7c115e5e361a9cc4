//! How wide and how high a terminal is.
#![allow(unsafe_code)] // asking the terminal, for which nix has a macro and no function

use nix::libc;
use std::os::fd::{AsFd, AsRawFd};

mod request {
    nix::ioctl_read_bad!(window_size, nix::libc::TIOCGWINSZ, nix::libc::winsize);
}

/// Columns of the terminal that `output` is; `None` where it is none or does not know. A terminal that knows its
/// columns and not its rows, as after `stty cols 40`, knows enough.
pub(crate) fn columns(output: impl AsFd) -> Option<u16> {
    size(output).map(|size| size.ws_col).filter(|columns| *columns > 0)
}

/// Its rows, likewise.
pub(crate) fn rows(output: impl AsFd) -> Option<u16> {
    size(output).map(|size| size.ws_row).filter(|rows| *rows > 0)
}

/// # References
/// ioctl_tty(2), TIOCGWINSZ: what is not known is 0.
fn size(output: impl AsFd) -> Option<libc::winsize> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the kernel writes one winsize, and `size` is one, alive and borrowed by nobody else; `output` keeps the
    // descriptor open.
    unsafe { request::window_size(output.as_fd().as_raw_fd(), &mut size) }.ok()?;
    Some(size)
}

#[cfg(test)]
mod tests {
    use super::{columns, rows};
    use nix::libc::winsize;
    use nix::pty::openpty;

    #[test]
    fn columns_are_known_without_rows_and_zero_is_not_known() {
        let of = |ws_row, ws_col| {
            let size = winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
            // Without its other end a terminal is hung up, and knows nothing.
            let ends = openpty(Some(&size), None).expect("a pseudo-terminal");
            (columns(&ends.slave), rows(&ends.slave))
        };
        assert_eq!([of(24, 100), of(0, 40)], [(Some(100), Some(24)), (Some(40), None)]);
        assert_eq!([of(24, 0), of(0, 0)], [(None, Some(24)), (None, None)]);
        let (read, _write) = nix::unistd::pipe().expect("a pipe");
        assert_eq!(columns(read), None, "no terminal");
    }
}

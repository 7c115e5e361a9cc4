//! Threads that already waited when watching began, of whose calls no beginning is seen.
//!
//! # References
//! proc_pid_syscall(5).

use super::call::{Call, Place, Purpose, Syscall};
use crate::Target;
use host::Root;

/// The word at which a thread waits now, as an offset in the segment; `None` where it does not, or the kernel does not tell.
pub(super) fn waits_at(root: &Root, target: &Target, tid: u32) -> Option<u64> {
    let text = root.text(&format!("proc/{}/task/{tid}/syscall", target.pid))?;
    let call = call(&text, target.address_bits)?;
    match (call.purpose, call.place) {
        (Purpose::Wait, Place::At(address, _)) => target.offset(address),
        _ => None,
    }
}

/// The futex call in a row of the number and six arguments.
fn call(text: &str, address_bits: u32) -> Option<Call> {
    let mut words = text.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        *argument = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    }
    Call::of(Syscall::numbered(number, address_bits)?, &arguments)
}

#[cfg(test)]
mod tests {
    use super::super::call::{Place, Purpose};
    use super::call;

    #[test]
    fn a_row_of_the_kernels_is_a_call() {
        let row = format!("{} 0x7f00 0x80 0x2 0x0 0x0 0xffffffff 0x7ffe 0x7fab", libc::SYS_futex);
        let seen = call(&row, 64).unwrap();
        assert_eq!((seen.purpose, seen.place, seen.private), (Purpose::Wait, Place::At(0x7f00, None), true));
        assert_eq!(call(&row, 32), None);
        assert_eq!(["running", "-1 0x7ffe 0x7fab", "7 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8"].map(|row| call(row, 64)), [None; 3]);
    }
}

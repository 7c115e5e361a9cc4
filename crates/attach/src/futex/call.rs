//! What a thread asks of the kernel with a futex call, from the call's arguments.
//!
//! # References
//! futex(2); `linux/futex.h`; `Documentation/userspace-api/futex2.rst`; `kernel/futex/syscalls.c`.

/// The calls that wait at an address or wake who waits there. Each has a pair of tracepoints of its own.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Syscall {
    /// The old one with an operation for everything; the only one that glibc 2.36 and musl use.
    Futex,
    /// Waits at several words at once (Linux 5.16).
    Waitv,
    /// `FUTEX_WAIT_BITSET` of the old one (Linux 6.7), and so on.
    Wait,
    Wake,
    Requeue,
}

impl Syscall {
    pub(super) const ALL: [Syscall; 5] =
        [Syscall::Futex, Syscall::Waitv, Syscall::Wait, Syscall::Wake, Syscall::Requeue];

    /// As the kernel's tracepoints name it behind `sys_enter_`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Syscall::Futex => "futex",
            Syscall::Waitv => "futex_waitv",
            Syscall::Wait => "futex_wait",
            Syscall::Wake => "futex_wake",
            Syscall::Requeue => "futex_requeue",
        }
    }

    /// The call with this number, in a process of so many bits. Numbers from 403 on are the same everywhere.
    pub(super) fn numbered(number: u64, address_bits: u32) -> Option<Syscall> {
        match (number, address_bits) {
            (449, _) => Some(Syscall::Waitv),
            (454, _) => Some(Syscall::Wake),
            (455, _) => Some(Syscall::Wait),
            (456, _) => Some(Syscall::Requeue),
            // With 32-bit and with 64-bit times; i386 and arm agree.
            (240 | 422, 32) => Some(Syscall::Futex),
            (202, 64) if cfg!(target_arch = "x86_64") => Some(Syscall::Futex),
            (98, 64) if !cfg!(target_arch = "x86_64") => Some(Syscall::Futex), // asm-generic/unistd.h
            _ => None,
        }
    }
}

/// Where a call's words are.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At these addresses.
    At(u64, Option<u64>),
    /// In so many elements of `struct futex_waitv` at this address, which the caller keeps until it returns.
    Listed { array: u64, count: u32 },
}

/// What a call is for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To sleep until somebody wakes it.
    Wait,
    /// To wake who sleeps; `moves` if some are put to sleep at another word instead.
    Wake { moves: bool },
}

/// A call that waits or wakes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) purpose: Purpose,
    pub(super) place: Place,
    /// The kernel itself takes the lock for the waiter and gives it away: the word holds the owner's thread.
    pub(super) inherits_priority: bool,
    /// Whether the kernel was told that nobody outside of the process uses the word.
    pub(super) private: bool,
}

/// `FUTEX_PRIVATE_FLAG`, and `FUTEX2_PRIVATE` of the new calls.
const PRIVATE: u64 = 128;
/// `FUTEX_CLOCK_REALTIME`.
const REALTIME: u64 = 256;
/// The kernel takes no more words in one call (`FUTEX_WAITV_MAX`).
const MOST_LISTED: u32 = 128;

impl Call {
    /// What a call with these arguments is; `None` where it neither waits nor wakes.
    pub(super) fn of(syscall: Syscall, arguments: &[u64; 6]) -> Option<Call> {
        let [first, second, _, fourth, fifth, _] = *arguments;
        let plain = |purpose, place, flags| {
            Some(Call { purpose, place, inherits_priority: false, private: flags & PRIVATE != 0 })
        };
        match syscall {
            Syscall::Futex => Call::of_operation(second, first, fifth),
            Syscall::Waitv => {
                let count = u32::try_from(second).unwrap_or(u32::MAX).min(MOST_LISTED);
                plain(Purpose::Wait, Place::Listed { array: first, count }, 0)
            }
            Syscall::Wait => plain(Purpose::Wait, Place::At(first, None), fourth),
            Syscall::Wake => plain(Purpose::Wake { moves: false }, Place::At(first, None), fourth),
            Syscall::Requeue => plain(Purpose::Wake { moves: true }, Place::Listed { array: first, count: 2 }, 0),
        }
    }

    /// The old call's operation, an `int` in a register whose upper half means nothing.
    fn of_operation(operation: u64, word: u64, other: u64) -> Option<Call> {
        let operation = operation & 0xffff_ffff;
        let (wake, moving) = (Purpose::Wake { moves: false }, Purpose::Wake { moves: true });
        let (purpose, also, inherits_priority) = match operation & !(PRIVATE | REALTIME) {
            0 | 9 => (Purpose::Wait, None, false),      // FUTEX_WAIT, FUTEX_WAIT_BITSET
            6 | 13 => (Purpose::Wait, None, true),      // FUTEX_LOCK_PI, FUTEX_LOCK_PI2
            11 => (Purpose::Wait, None, false),         // FUTEX_WAIT_REQUEUE_PI: at the condition, then at the lock
            1 | 10 => (wake, None, false),              // FUTEX_WAKE, FUTEX_WAKE_BITSET
            5 => (wake, Some(other), false),            // FUTEX_WAKE_OP
            7 => (wake, None, true),                    // FUTEX_UNLOCK_PI
            3 | 4 | 12 => (moving, Some(other), false), // FUTEX_REQUEUE, FUTEX_CMP_REQUEUE, FUTEX_CMP_REQUEUE_PI
            _ => return None,                           // FUTEX_TRYLOCK_PI never sleeps; FUTEX_FD is no more
        };
        Some(Call { purpose, place: Place::At(word, also), inherits_priority, private: operation & PRIVATE != 0 })
    }
}

/// Length of a `struct futex_waitv`, bytes: the value, the address, the flags, and nothing.
pub(super) const LISTED_BYTES: usize = 24;

/// The addresses in a list of `struct futex_waitv`; what is cut off at its end is left out.
pub(super) fn listed(bytes: &[u8]) -> Vec<u64> {
    let address = |one: &[u8]| one.get(8..16).and_then(|at| at.try_into().ok()).map(u64::from_ne_bytes);
    bytes.chunks_exact(LISTED_BYTES).filter_map(address).collect()
}

/// What became of a wait, from what its call returned.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Somebody woke it, or the lock was given to it.
    Woken,
    /// The word was another than expected, so it never slept.
    Refused,
    /// It timed out, a signal came, or the call was wrong.
    Otherwise,
}

impl Outcome {
    pub(super) fn of(returned: i64) -> Outcome {
        match returned {
            0.. => Outcome::Woken,
            value if value == -i64::from(libc::EAGAIN) => Outcome::Refused,
            _ => Outcome::Otherwise,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Call, Outcome, Place, Purpose, Syscall, listed};

    fn futex(operation: u64) -> Option<Call> {
        Call::of(Syscall::Futex, &[0x7000, operation, 2, 0, 0x8000, u64::MAX])
    }

    #[test]
    fn an_operation_says_who_waits_and_who_wakes() {
        for (operation, inherits_priority) in [(0, false), (9, false), (6, true), (13, true), (11, false)] {
            let call = futex(operation).unwrap();
            let seen = (call.purpose, call.place, call.inherits_priority, call.private);
            assert_eq!(seen, (Purpose::Wait, Place::At(0x7000, None), inherits_priority, false), "{operation}");
        }
        for (operation, also, moves) in
            [(1, None, false), (10, None, false), (7, None, false), (5, Some(0x8000), false), (4, Some(0x8000), true)]
        {
            let call = futex(operation).unwrap();
            assert_eq!((call.purpose, call.place), (Purpose::Wake { moves }, Place::At(0x7000, also)), "{operation}");
        }
        assert_eq!([futex(8), futex(2), futex(99)], [None; 3]);
    }

    #[test]
    fn flags_are_no_part_of_the_operation() {
        let call = futex(9 | 128 | 256).unwrap();
        assert_eq!((call.purpose, call.private), (Purpose::Wait, true));
        // glibc passes an int: what the register's upper half holds is of no account.
        assert_eq!(futex(0xffff_ffff_0000_0001).map(|call| call.purpose), Some(Purpose::Wake { moves: false }));
    }

    #[test]
    fn the_new_calls_have_their_arguments_elsewhere() {
        let call = Call::of(Syscall::Wait, &[0x7000, 1, 0xffff_ffff, 0x82, 0, 1]).unwrap();
        assert_eq!((call.purpose, call.place, call.private), (Purpose::Wait, Place::At(0x7000, None), true));
        let call = Call::of(Syscall::Waitv, &[0x9000, 3, 0, 0, 0, 0]).unwrap();
        assert_eq!(call.place, Place::Listed { array: 0x9000, count: 3 });
        let call = Call::of(Syscall::Waitv, &[0x9000, u64::MAX, 0, 0, 0, 0]).unwrap();
        assert_eq!(call.place, Place::Listed { array: 0x9000, count: 128 });
    }

    #[test]
    fn addresses_are_taken_from_a_list_as_far_as_it_could_be_read() {
        let mut bytes = vec![0u8; 60];
        bytes[8..16].copy_from_slice(&0x7000u64.to_ne_bytes());
        bytes[32..40].copy_from_slice(&0x8000u64.to_ne_bytes());
        assert_eq!(listed(&bytes), [0x7000, 0x8000]);
    }

    #[test]
    fn numbers_depend_on_the_bits_of_the_process() {
        assert_eq!(Syscall::numbered(240, 32), Some(Syscall::Futex));
        assert_eq!(Syscall::numbered(240, 64), None);
        assert_eq!(Syscall::numbered(449, 64), Some(Syscall::Waitv));
        assert_eq!(Syscall::numbered(u64::try_from(libc::SYS_futex).unwrap(), 64), Some(Syscall::Futex));
    }

    #[test]
    fn only_a_changed_word_is_a_refusal() {
        assert_eq!([0, 3, -11, -110, -4, -512].map(Outcome::of), {
            use Outcome::{Otherwise, Refused, Woken};
            [Woken, Woken, Refused, Otherwise, Otherwise, Otherwise]
        });
    }
}

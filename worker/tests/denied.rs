//! Where the system denies executable memory, the error says so and names the cure. Alone in its file: the denial
//! holds for the whole test process and cannot be undone.
#![allow(unsafe_code, missing_docs)]

mod support;

use plan::AccessKind;
use worker::compile::{CompileError, CompiledLoop};

#[test]
fn denied_executable_memory_is_named_with_its_cure() {
    // SAFETY: prctl with integer arguments; it only forbids this process to gain executable mappings.
    let set = unsafe { libc::prctl(libc::PR_SET_MDWE, u64::from(libc::PR_MDWE_REFUSE_EXEC_GAIN), 0u64, 0u64, 0u64) };
    if set != 0 {
        return testing::skip("this kernel cannot deny executable memory (PR_SET_MDWE needs Linux 6.3)");
    }
    let program = support::program([support::access(AccessKind::Load, 0)]);
    match CompiledLoop::compile(&program, &worker::compile::LockSites::NONE, 0, 1.0, &support::HOOKS) {
        Err(error @ CompileError::ExecutableMemoryDenied { .. }) => {
            let text = error.to_string();
            assert!(text.contains("Permission denied") && text.contains("MemoryDenyWriteExecute=no"), "{text}");
        }
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("compiled where no memory may become executable"),
    }
}

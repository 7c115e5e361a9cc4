//! Passes that give back what they take, and each way in which one can fail to.

use super::check;
use crate::fixtures::Scene;
use crate::lock::LockKind;

fn scene(kind: LockKind, steps: &[&str]) -> Scene {
    Scene::new().field("x").region("heap", 1).lock_of("m", kind).lock("n", None).role("worker", 1, steps)
}

fn accepted(kind: LockKind, steps: &[&str]) {
    assert_eq!(check(&scene(kind, steps).arm("v")), Ok(()), "{steps:?} with {}", kind.name());
}

fn refusal_of(kind: LockKind, steps: &[&str]) -> crate::BindError {
    let error = check(&scene(kind, steps).arm("v")).expect_err(&format!("{steps:?} with {}", kind.name()));
    assert!(error.path.starts_with("role.worker.loop."), "{}", error.path);
    assert!(!error.cure.is_empty());
    error
}

fn refusal(steps: &[&str]) -> String {
    refusal_of(LockKind::Pthread, steps).message
}

#[test]
fn balanced_passes_are_accepted_nested_or_crossed_with_every_kind() {
    for kind in LockKind::ALL {
        for steps in [
            &["lock m", "bump x", "unlock m"][..],
            &["lock m", "lock n", "unlock n", "unlock m", "lock m", "unlock m"],
            &["lock m", "lock n", "unlock m", "every 64 add x", "unlock n"],
            &["rlock m", "load x", "work 50", "runlock m", "lock m", "store x", "unlock m"],
            &["lock n", "rlock m", "load x", "runlock m", "unlock n"],
        ] {
            accepted(kind, steps);
        }
    }
}

#[test]
fn unbalanced_passes_name_the_step() {
    assert!(refusal(&["unlock m", "lock m"]).contains("step `unlock m` releases `m`"));
    assert!(refusal(&["lock m", "lock m", "unlock m"]).contains("`m`, which this pass holds already"));
    assert!(refusal(&["rlock m", "rlock m", "runlock m"]).contains("`m`, which this pass holds already"));
    assert!(refusal(&["lock m", "lock n", "unlock m"]).contains("step `lock n` takes `n`, and the pass ends"));
}

#[test]
fn a_lock_in_some_passes_only_is_refused() {
    assert!(refusal(&["every 4 lock m", "every 4 unlock m"]).contains("step `every 4 lock m` would run"));
    assert!(refusal(&["lock m", "every 2 unlock m"]).contains("step `every 2 unlock m` would run"));
}

#[test]
fn a_lock_is_released_as_it_was_taken() {
    for kind in LockKind::ALL {
        let error = refusal_of(kind, &["lock m", "runlock m"]);
        assert!(error.message.contains("releases `m` as its reader, but `lock m` took it as its owner"), "{error}");
        assert_eq!((error.path.as_str(), error.cure.as_str()), ("role.worker.loop.1", "write `unlock m`"));
        assert_eq!(refusal_of(kind, &["rlock m", "unlock m"]).cure, "write `runlock m`");
    }
}

#[test]
fn only_kinds_whose_waiters_can_leave_time_out() {
    for kind in LockKind::ALL {
        for steps in [["lock m timeout 1000", "bump x", "unlock m"], ["rlock m timeout 1000", "load x", "runlock m"]] {
            if kind.times_out() {
                accepted(kind, &steps);
            } else {
                let error = refusal_of(kind, &steps);
                assert!(error.message.contains(&format!("`m` is of kind `{}` in arm `v`", kind.name())), "{error}");
                assert!(error.cure.contains("`futex`") && !error.cure.contains("`mcs`"), "{}", error.cure);
                assert_eq!(error.path, "role.worker.loop.0");
            }
        }
    }
}

#[test]
fn what_a_timeout_skips_is_whole_sections() {
    accepted(LockKind::Pthread, &["lock n", "lock m timeout 9", "unlock m", "unlock n"]);
    accepted(LockKind::Pthread, &["lock m timeout 9", "lock n timeout 9", "unlock n", "unlock m"]);
    let kept = refusal(&["lock m timeout 9", "lock n", "unlock m", "unlock n"]);
    assert!(kept.contains("step `unlock m` leaves `n` held"), "{kept}");
    let skipped = refusal(&["lock n", "lock m timeout 9", "unlock n", "unlock m"]);
    assert!(skipped.contains("step `unlock n` would be skipped where `lock m timeout 9` times out"), "{skipped}");
    let open = refusal(&["rlock m timeout 9", "load x"]);
    assert!(open.contains("step `rlock m timeout 9` has no `runlock m` behind it"), "{open}");
}

#[test]
fn a_sequence_locks_reader_does_what_bears_repeating() {
    for inside in [
        "store x",
        "bump x",
        "add x",
        "swap x",
        "cas x",
        "post x",
        "flush x",
        "wait x",
        "touch heap",
        "lock n",
        "rlock n",
    ] {
        let error = refusal_of(LockKind::Seqlock, &["rlock m", inside, "runlock m"]);
        assert_eq!(error.path, "role.worker.loop.1", "{error}");
        assert!(error.message.contains("of kind `seqlock` in arm `v`"), "{error}");
    }
    assert_eq!(
        refusal_of(LockKind::Seqlock, &["lock n", "rlock m", "unlock n", "runlock m"]).path,
        "role.worker.loop.2"
    );
    accepted(LockKind::PthreadRwlock, &["rlock m", "add x", "lock n", "unlock n", "runlock m"]);
    let harmless = ["rlock m", "load x", "work 9", "pause", "fence", "yield", "sleep 9", "every 3 load x", "runlock m"];
    accepted(LockKind::Seqlock, &harmless);
    accepted(LockKind::Seqlock, &["lock m", "add x", "lock n", "unlock n", "unlock m"]);
}

#[test]
fn who_dies_gives_nothing_back() {
    accepted(LockKind::Pthread, &["lock m", "rlock n", "die"]);
    accepted(LockKind::Pthread, &["lock m", "every 9 die", "unlock m"]);
    assert!(refusal(&["lock m", "every 9 die"]).contains("the pass ends without releasing it"));
    assert!(refusal(&["lock m timeout 9", "die"]).contains("has no `unlock m` behind it"));
}

//! A worker that may open no more files says that, and not that the machine lacks what the files would have told. The
//! limit is the whole process's, so this test has one of its own.

use counters::Counters;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use record::Reading;

#[test]
fn without_a_descriptor_what_is_taken_is_denied_with_its_cure() {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    let mut counters = Counters::open(&[]);
    // Lower than the number of any descriptor to come: standard input, output and error are open.
    setrlimit(Resource::RLIMIT_NOFILE, 3, hard).expect("one may lower one's own limit");
    counters.around();
    counters.around();
    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).expect("one may raise it up to the hard one");
    let readings = counters.read();
    for name in ["stolen_ns", "throttled_ns"] {
        match &readings[name] {
            Reading::Denied { why, cure } => {
                assert!(
                    why.contains("EMFILE") && why.contains("/proc/") && cure.contains("ulimit -n"),
                    "{why}; {cure}"
                );
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

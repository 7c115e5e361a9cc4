//! A machine whose distances come from two probes gives the probes' figures back.

use super::kit::{COSTS, access, cluster, model, program, witnessed, worker};
use crate::engine::Limits;
use crate::machine::Distance;
use plan::{AccessKind, OpKind, Width};

/// One way of the line-transfer probe and a contended pass, nanoseconds, as single runs on a machine of two CPUs gave
/// them.
const PROBES: [(f64, f64); 4] = [(54.0, 19.3), (215.0, 2.0), (40.0, 25.0), (60.0, 8.0)];

fn within(share: f64, of: f64, found: f64) -> bool {
    (found / of - 1.0).abs() <= share
}

#[test]
fn the_contended_probe_comes_out_as_it_went_in() {
    for (transfer_ns, contended_ns) in PROBES {
        for spread in [0.0, 0.03, 0.15] {
            let distance = Distance { spread, ..Distance::from_probes(transfer_ns, contended_ns, COSTS.bump_ns) };
            let bumps = program((0..2).map(|i| worker(i, vec![access(AccessKind::Bump, 8 * u64::from(i))])).collect());
            let modelled = model(&bumps, &cluster(2, distance), 200_000);
            for worker in &modelled.workers {
                let found = worker.ns_per_op.expect("passes");
                assert!(within(0.05, contended_ns, found), "{transfer_ns}, {contended_ns}, {spread}: {found}");
            }
        }
    }
}

#[test]
fn the_line_transfer_probe_comes_out_as_it_went_in() {
    for (transfer_ns, contended_ns) in PROBES {
        let distance = Distance::from_probes(transfer_ns, contended_ns, COSTS.bump_ns);
        let (post, wait) = (|at| OpKind::Post { width: Width::U64, at }, |at| OpKind::Wait { width: Width::U64, at });
        let throws = program(vec![worker(0, vec![post(0), wait(128)]), worker(1, vec![wait(0), post(128)])]);
        let modelled = model(&throws, &cluster(2, distance), 20_000);
        // To and fro; finding it takes half a turn of the spin loop, throwing it an atomic.
        let around = 2.0 * (transfer_ns + COSTS.pause_ns / 2.0 + COSTS.atomic_ns);
        let found = modelled.workers[0].ns_per_op.expect("passes");
        assert!(within(0.1, around, found), "{transfer_ns}: {found} where {around} is about right");
    }
}

/// Half of the fetches lie between the quartiles that went in.
#[test]
fn fetches_spread_as_the_quartiles_say() {
    let spread = 0.1;
    let distance = Distance { fetch_ns: 100.0, tenure_ns: 1.0, spread };
    // One takes the line each 10 µs, alternating with the other: no fetch meets another one.
    let adds = |index: u32| {
        let think = OpKind::Work(plan::Nanos(10_000 + 3_000 * u64::from(index)));
        worker(index, vec![access(AccessKind::Add, 0), think])
    };
    let limits = Limits { accesses: 1_000_000, window_ns: 3e7 };
    let fetches = witnessed(&program(vec![adds(0), adds(1)]), &cluster(2, distance), (limits, 9), |engine, _| {
        engine.witness.as_ref().expect("witnessed").takes.clone()
    });
    let mut lengths: Vec<f64> = fetches.iter().map(|&(asked, came)| (came - asked) as f64 / 1e3).collect();
    lengths.sort_by(f64::total_cmp);
    assert!(lengths.len() > 1_000, "{}", lengths.len());
    let at = |share: f64| lengths[(lengths.len() as f64 * share) as usize];
    let found = (at(0.25), at(0.5), at(0.75));
    for (expected, found) in [(90.0, found.0), (100.0, found.1), (110.0, found.2)] {
        assert!((expected - found).abs() < 1.5, "{expected} where {found} came out");
    }
}

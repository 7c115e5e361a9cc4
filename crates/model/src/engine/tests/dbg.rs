use super::kit::*;
use crate::engine::Limits;
use crate::machine::*;
use plan::*;
#[test]
fn dbg() {
    let w = |i| worker(i, vec![lock(None), access(AccessKind::Bump, 0), unlock()]);
    let d = Distance::from_probes(24.0, 1.13, 0.232);
    let mut m = cluster(2, d);
    m.costs = Costs { load_ns: 0.058, store_ns: 0.133, bump_ns: 0.232, atomic_ns: 4.64, fence_ns: 18.6, pause_ns: 24.3, flush_ns: 122., instruction_ns: 0.116, clock_ns: 13.0, syscall_ns: 149., wake_ns: 17000., store_buffer: 104, window: 448 };
    let r = witnessed(&locked(LockKind::Futex, vec![w(0), w(1)]), &m, (Limits { accesses: 4000, window_ns: 2e5 }, 1), |_, m| m.clone());
    println!("{:?}", r.workers);
}

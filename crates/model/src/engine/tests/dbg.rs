use super::kit::*;
use crate::engine::Limits;
use crate::machine::*;
use crate::protocol::Protocol;
use plan::*;
#[test]
fn dbg() {
    let ld = |o| access(AccessKind::Load, o);
    let any = |k, v: &[u64]| OpKind::Access { kind: k, width: Width::U64, at: Address::Any(v.to_vec()) };
    let ws = vec![
        worker(0, vec![any(AccessKind::Load, &[60,72,128,512,520]), OpKind::Flush { at: Address::Fixed(0) }]),
        worker(1, vec![OpKind::Work(Nanos(0))]),
        worker(2, vec![ld(0)]),
        worker(3, vec![access(AccessKind::Store, 0), lock(None), ld(0), unlock()]),
        worker(4, vec![any(AccessKind::Store, &[0]), ld(0), ld(0), ld(0)]),
    ];
    let d = Distance { fetch_ns: 1.0, tenure_ns: 0.0, spread: 0.0 };
    let mut m = machine(Protocol::Mesi, Shape { sockets: 2, clusters: 1, cores: 2, threads: 2 }, d);
    m.costs.store_buffer = 1; m.costs.window = 1;
    witnessed(&locked(LockKind::Pthread, ws), &m, (Limits { accesses: 3000, window_ns: 2e5 }, 161770444502136949), |_, _| ());
}

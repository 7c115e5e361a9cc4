use model::*;
use plan::*;
fn worker(i: u32, ops: Vec<OpKind>) -> WorkerProgram {
    WorkerProgram { index: WorkerIndex(i), role: 0, role_name: "r".into(), cpu: CpuId(i), process: i, period: None, latency: false, after: Nanos(0), steps: vec![],
        ops: ops.into_iter().map(|kind| Op { every: 1, step: 0, kind }).collect() }
}
fn acc(kind: AccessKind, at: u64) -> OpKind { OpKind::Access { kind, width: Width::U64, at: Address::Fixed(at) } }
fn machine(t: f64, c: f64) -> Machine {
    let d = Distance::from_probes(t, c, 0.33);
    println!("t {t} c {c}: fetch {:.1} tenure {:.2}", d.fetch_ns, d.tenure_ns);
    Machine { name: "h".into(), title: "h".into(), protocol: Protocol::Moesi, shape: Shape { sockets: 1, clusters: 1, cores: 128, threads: 1 },
        caches: Caches { l1: CacheShape { bytes: 48 << 10, ways: 12, ns: 0.0 }, l2: CacheShape { bytes: 1 << 20, ways: 16, ns: 3.0 }, llc: CacheShape { bytes: 32 << 20, ways: 16, ns: 12.0 }, llc_is_inclusive: false, memory_ns: 100.0, fetches_pairs: false },
        distances: Distances { cluster: d, socket: d, machine: d },
        costs: Costs { load_ns: 0.15, store_ns: 0.25, bump_ns: 0.33, atomic_ns: 2.35, fence_ns: 8.0, pause_ns: 10.0, flush_ns: 50.0, instruction_ns: 0.08, syscall_ns: 300.0, wake_ns: 5000.0, store_buffer: 64, window: 448 }, sources: vec![] }
}
fn run(name: &str, m: &Machine, ws: Vec<WorkerProgram>, locks: Vec<PlacedLock>, n: u64) -> Modelled {
    let p = Program { arm: "a".into(), window: Nanos(1), warm_up: Nanos(1), layout: Layout { placed: vec![], bytes: 64 }, area_bytes: 1 << 16, locks, regions: vec![], workers: ws, shares_cpu: false, timed_locks: true, seed: 1 };
    let t = std::time::Instant::now();
    let r = simulate(&p, m, &m.shape.topology(), Limits { accesses: n, window_ns: 1e9 }, 1).unwrap();
    let dt = t.elapsed().as_secs_f64();
    println!("{name}: {:?} ns/op, {:.1} M acc/s", r.workers.iter().take(4).map(|w| (w.ns_per_op.unwrap_or(0.0) * 100.0).round() / 100.0).collect::<Vec<_>>(), r.accesses as f64 / dt / 1e6);
    println!("   {:?} passes {} window {:.0}", r.workers[0].tally.named().iter().filter(|x| x.1 > 0).collect::<Vec<_>>(), r.workers[0].passes, r.window_ns);
    r
}
fn main() {
    let n = 2_000_000;
    for (t, c) in [(54.0, 19.3), (215.0, 2.0), (40.0, 25.0)] {
        let m = machine(t, c);
        for (nm, k) in [("bump", AccessKind::Bump), ("add", AccessKind::Add), ("store", AccessKind::Store), ("load", AccessKind::Load)] {
            run(&format!("packed {nm}"), &m, (0..2).map(|i| worker(i, vec![acc(k, 8 * i as u64)])).collect(), vec![], n);
            run(&format!("padded {nm}"), &m, (0..2).map(|i| worker(i, vec![acc(k, 128 * i as u64)])).collect(), vec![], n);
        }
        run("reader/writer", &m, vec![worker(0, vec![acc(AccessKind::Load, 0)]), worker(1, vec![acc(AccessKind::Store, 8)])], vec![], n);
        run("pingpong", &m, vec![worker(0, vec![OpKind::Post { width: Width::U64, at: 0 }, OpKind::Wait { width: Width::U64, at: 128 }]), worker(1, vec![OpKind::Wait { width: Width::U64, at: 0 }, OpKind::Post { width: Width::U64, at: 128 }])], vec![], n / 4);
        for kind in LockKind::ALL {
            let l = |i| worker(i, vec![OpKind::Lock { lock: 0, shared: false, timeout: None }, acc(AccessKind::Bump, 256), OpKind::Unlock { lock: 0, shared: false }, OpKind::Work(Nanos(100))]);
            let r = run(kind.name(), &m, vec![l(0), l(1)], vec![PlacedLock { name: "m".into(), kind, offset: 0 }], n / 4);
            println!("   {:?}", r.workers[0].locks);
        }
    }
    let m = machine(54.0, 19.3);
    run("128 one line", &m, (0..128).map(|i| worker(i, vec![acc(AccessKind::Add, 0)])).collect(), vec![], 12_800_000);
    run("128 lines", &m, (0..128).map(|i| worker(i, vec![acc(AccessKind::Add, 64 * i as u64)])).collect(), vec![], 12_800_000);
    run("10M each", &m, (0..2).map(|i| worker(i, vec![acc(AccessKind::Add, 8 * i as u64)])).collect(), vec![], 20_000_000);
    run("10M each", &m, (0..2).map(|i| worker(i, vec![acc(AccessKind::Add, 128 * i as u64)])).collect(), vec![], 20_000_000);
}

//! Runs made by hand, with figures as a machine of two virtual CPUs gives them.

use plan::CountedBy;
use plan::event::COUNTERS;
use record::*;
use std::collections::BTreeMap;

/// An estimate and its ends.
pub(super) fn interval(median: f64, low: f64, high: f64) -> Interval {
    Interval { median, low, high }
}

/// False sharing on a machine without hardware counters: three variants and every reference.
pub(crate) fn false_sharing() -> Run {
    let mut arms = vec![
        arm("packed", Kind::Variant, 16, interval(23.12, 21.94, 24.31), Some(interval(69.7, 65.2, 73.9))),
        arm("padded-64", Kind::Variant, 128, interval(0.3318, 0.3289, 0.3352), Some(interval(1.0, 1.0, 1.0))),
        arm("padded-128", Kind::Variant, 256, interval(0.3331, 0.3294, 0.3371), Some(interval(1.004, 0.992, 1.018))),
        arm("solo:counter", Kind::Solo, 16, interval(0.3302, 0.3281, 0.3329), None),
        arm("unshared:packed", Kind::Unshared, 16, interval(0.3325, 0.3297, 0.3358), None),
        arm("control", Kind::Control, 16, interval(23.31, 22.08, 24.4), None),
    ];
    arms[3].workers.truncate(1);
    arms[0].roles[0].contention =
        Contention { solo: Some(interval(70.0, 66.1, 74.2)), unshared: Some(interval(69.5, 65.3, 73.6)) };
    arms[0].other_regimes = vec![OtherRegime {
        transfer_ns: Some(214.2),
        contended_ns: Some(2.04),
        ns_per_op: interval(2.041, 2.041, 2.041),
        repetitions: 1,
    }];
    arms[0].repetitions = RepetitionCount { kept: 8, spoiled: 1, other_regime: 1 };
    let observations = observations(&arms);
    Run {
        schema_version: SCHEMA_VERSION,
        tool: Tool { version: "0.1.0".to_owned(), commit: Some("4975650".to_owned()) },
        command: "coordinator run scenarios/false_sharing.toml".to_owned(),
        seed: 42,
        started_utc: "2026-11-24T12:34:56Z".to_owned(),
        duration_s: 7.83,
        host: host(),
        scenario: ScenarioText {
            title: "False sharing".to_owned(),
            question: "What do two independent counters cost each other when they sit in one cache line?".to_owned(),
            path: "scenarios/false_sharing.toml".to_owned(),
            sha256: "5f3c1a90b7de44c2a1f09be3d6c85e7714ab2290c8f35d6e9b017f42aa6d3c58".to_owned(),
            text: "title = \"False sharing\"\n".to_owned(),
        },
        method: method(),
        events: COUNTERS.iter().map(|(name, by)| event(name, *by)).collect(),
        arms,
        observations,
        expect: vec![ExpectOutcome {
            claim: "ns_per_op(packed) >= 3 * ns_per_op(padded-64)".to_owned(),
            state: ExpectState::Holds,
            seen: Some(interval(69.7, 65.2, 73.9)),
            why: "the whole interval of the ratio lies above 3".to_owned(),
        }],
        predictions: vec![
            prediction(70.0, Some(interval(69.7, 65.2, 73.9))),
            prediction(5.0, Some(interval(69.7, 65.2, 73.9))),
            prediction(5.0, None),
        ],
        diagnosis: vec![diagnosis()],
        warnings: vec![Warning {
            id: "no_pmu".to_owned(),
            text: "this machine has no hardware counters".to_owned(),
            advice: "cache misses can be counted on bare metal, or in a VM that passes the PMU through".to_owned(),
        }],
        code: Some(Code {
            listings: vec![CodeListing {
                arm: "packed".to_owned(),
                role: "counter".to_owned(),
                worker: 0,
                text: "step 0: bump hits[me]\n\tmovq (%rdi), %rax\n\tret".to_owned(),
                lines_left_out: 0,
            }],
            listings_left_out: 2,
        }),
    }
}

fn prediction(predicted: f64, seen: Option<Interval>) -> Prediction {
    Prediction {
        text: "ns_per_op(packed) / ns_per_op(padded-64)".to_owned(),
        predicted,
        seen,
        off_by: seen.map(|seen| (predicted / seen.median).max(seen.median / predicted)),
        inside: seen.map(|seen| (seen.low..=seen.high).contains(&predicted)),
        why: seen.map_or("arm `padded-64` is not part of this run".to_owned(), |_| String::new()),
    }
}

/// Two processes at one mutex, in two variants, and a third that nobody has to wait at.
pub(crate) fn mutex() -> Run {
    let mut run = false_sharing();
    "Two processes, one lock".clone_into(&mut run.scenario.title);
    for arm in &mut run.arms {
        arm.locks = vec![lock(38_123_456, 18_345_012)];
    }
    run.arms[2].locks = vec![LockSummary {
        contended: 0,
        wait_ns: None,
        wait_ns_all: None,
        masked: 0,
        hold_ns: None,
        by_worker: Vec::new(),
        ..lock(99_123_456, 0)
    }];
    run.arms[1].locks[0].waits_lost = 3;
    run.arms[1].locks[0].owner_died = 1;
    let spinning = &mut run.arms[1].locks[0];
    "ticket".clone_into(&mut spinning.kind);
    (spinning.spins_per_wait, spinning.timeouts) = (Some(37.21), 5);
    run.method.lock_timing = Some(interval(1.193, 1.152, 1.241));
    run
}

/// An open loop at a lock: what each pass took, from when it was due and from when it began.
pub(crate) fn open_loop() -> Run {
    let mut run = mutex();
    let taken =
        |count, p50, p90, p99, p999, max| Some(Percentiles { count, min: 310, mean: 512.5, p50, p90, p99, p999, max });
    let role = &mut run.arms[0].roles[0];
    role.latency_ns = taken(40_012, 412, 1_204, 90_111, 412_319, 1_900_543);
    role.service_ns = taken(40_012, 398, 611, 4_127, 88_063, 301_055);
    role.service_corrected_ns = taken(40_977, 399, 702, 60_031, 251_903, 301_055);
    run
}

/// A role that touches memory, and is stalled from when another begins.
pub(crate) fn stalled() -> Run {
    let mut run = false_sharing();
    let taken = |min, mean, p50, p99, p999, max| {
        Some(Percentiles { count: 40_012, min, mean, p50, p90: p50 + 10, p99, p999, max })
    };
    let role = &mut run.arms[0].roles[0];
    role.batch_before_ns = taken(150, 200.4, 190, 220, 331, 57_003);
    role.batch_ns = taken(151, 262.6, 191, 260, 8_455, 275_455);
    role.batch_corrected_ns = taken(152, 2_922.6, 192, 68_223, 162_943, 275_456);
    role.batch_before_ticks = taken(389, 521.0, 494, 572, 861, 148_207);
    role.batch_ticks = taken(392, 682.8, 496, 676, 21_983, 716_183);
    run
}

/// Gives an observation times of every kind that an HdrHistogram log holds; `nth` tells it from others.
pub(crate) fn give_times(seen: &mut Observation, nth: u64) {
    let spread = |count: u64, step: u64| -> Vec<NsCount> {
        (0..count).map(|i| NsCount { ns: 61 + nth + i * i * step, count: 1 + i % 3 }).collect()
    };
    seen.locks = vec![LockObservation {
        lock: "m".to_owned(),
        kept_waits: spread(977 + nth, 13),
        // Whole thousands, whose ranks need no rounding.
        holds: vec![
            NsCount { ns: 21, count: 600 },
            NsCount { ns: 48 + nth, count: 390 },
            NsCount { ns: 90_001, count: 10 },
        ],
        ..Default::default()
    }];
    seen.response = spread(1501, 101);
    seen.service = spread(703, 7);
}

/// Every state that a reading can have, over the variants' two headline counters.
pub(super) fn every_reading() -> Run {
    let mut run = false_sharing();
    let denied = Reading::Denied {
        why: "perf_event_paranoid is 4".to_owned(),
        cure: "sudo sysctl kernel.perf_event_paranoid=2".to_owned(),
    };
    count(&mut run, 0, "l1d_load_misses", Reading::Counted { value: 91_234 }, Some(0.02137));
    count(&mut run, 0, "llc_load_misses", Reading::Scaled { value: 812, ratio: 0.63 }, Some(0.00019));
    count(&mut run, 1, "l1d_load_misses", Reading::NotScheduled, None);
    count(&mut run, 1, "llc_load_misses", denied, None);
    count(&mut run, 2, "l1d_load_misses", Reading::Counted { value: 0 }, Some(0.0));
    count(&mut run, 2, "llc_load_misses", Reading::Counted { value: 3 }, None);
    run.arms[3].roles[0].counters.clear();
    run
}

/// A run in which one arm cannot be placed, one kept too little, and nothing can be concluded.
pub(super) fn poor() -> Run {
    let mut run = false_sharing();
    for (index, state, why) in [
        (1, ArmState::NotApplicable, "needs 4 CPUs, this host has 2; `oversubscribe = true` would share them"),
        (2, ArmState::Unresolved, "2 of 10 repetitions kept in one regime, 3 are needed"),
    ] {
        let arm = &mut run.arms[index];
        arm.state = state;
        arm.why = Some(why.to_owned());
        (arm.ns_per_op, arm.ratio_to_best, arm.slice_ns_per_op, arm.ops_per_second) = (None, None, None, None);
        arm.repetitions = RepetitionCount { kept: 0, spoiled: 0, other_regime: 0 };
        (arm.roles, arm.workers) = (Vec::new(), Vec::new());
    }
    run.arms[2].repetitions = RepetitionCount { kept: 2, spoiled: 7, other_regime: 1 };
    run.arms[0].ratio_to_best = None;
    run.method.resolution = None;
    run.method.control = None;
    run.method.headline_regime = None;
    run.method.extended = true;
    run.expect[0].state = ExpectState::Undecided;
    run.expect[0].seen = None;
    run.diagnosis = vec![Diagnosis {
        kind: "none".to_owned(),
        severity: Severity::None,
        text: "nothing that this run could resolve".to_owned(),
        evidence: Vec::new(),
        cure: String::new(),
        expected_gain: None,
        ..diagnosis()
    }];
    run
}

/// Measured counters with what a model says of them beside.
pub(crate) fn modelled() -> Run {
    let mut run = every_reading();
    for arm in &mut run.arms[..2] {
        let misses = Modelled { value: 8_765_432.0, per_op: 0.4711 };
        if let Some(counter) = arm.roles[0].counters.get_mut("l1d_load_misses") {
            counter.modelled = Some(misses.clone());
        }
        arm.modelled = Some(modelled_arm(&misses));
    }
    run.diagnosis[0].evidence.push(Evidence {
        name: "ownership transfers per op".to_owned(),
        value: Some(0.8642),
        unit: String::new(),
        source: "modelled".to_owned(),
    });
    run
}

fn modelled_arm(misses: &Modelled) -> ModelledArm {
    let counters = || BTreeMap::from(["l1d_load_misses", "l1d_misses"].map(|name| (name.to_owned(), misses.clone())));
    let worker = |index| ModelledWorker {
        index,
        role: "counter".to_owned(),
        cpu: index,
        ns_per_op: Some(21.734),
        counters: counters(),
    };
    ModelledArm {
        machine: "host".to_owned(),
        regime: Some(0),
        roles: vec![ModelledRole {
            role: "counter".to_owned(),
            ns_per_op: Some(21.734),
            ops_per_second: 9.2e7,
            counters: counters(),
        }],
        workers: vec![worker(0), worker(1)],
        lines: vec![ModelledLine {
            index: 0,
            fields: vec!["hits[0]".to_owned(), "hits[1]".to_owned()],
            writers: vec![0, 1],
            readers: vec![],
            transfers_per_op: 0.4711,
            tenure_passes: Some(2.125),
            owners: BTreeMap::from([(0, 0.5), (1, 0.5)]),
            pairs: vec![ModelledPair {
                held: "hits[0]".to_owned(),
                wanted: "hits[1]".to_owned(),
                to_write: true,
                share: 0.5,
            }],
        }],
        ..ModelledArm::default()
    }
}

/// The same on an AMD processor with a PMU: generic events that count something else than their name says, some that it
/// lacks, one that took turns, two events of the user's, and a model beside. Every figure is another one.
pub(super) fn zen() -> Run {
    let mut run = false_sharing();
    "AMD EPYC 9R14".clone_into(&mut run.host.cpu_model);
    run.host.hypervisor = None;
    let renamed = [
        ("l1d_loads", "L1D accesses", "loads and stores that went to the L1 data cache"),
        ("l1d_load_misses", "L1D requests to L2", "requests to L2 from the L1 data cache: loads, stores, prefetches"),
        ("cache_misses", "L2 misses", "demand requests that missed the L2 cache"),
    ];
    for (name, shown, counts) in renamed {
        for event in run.events.iter_mut().filter(|event| event.name == name) {
            shown.clone_into(&mut event.shown);
            counts.clone_into(&mut event.counts);
        }
    }
    run.events.push(event("cpu/event=0x44,umask=0x14/", CountedBy::Processor));
    run.events.push(event("sched:sched_switch", CountedBy::Kernel));
    for index in 0..run.arms.len() {
        zen_counts(&mut run, index);
    }
    for (arm, per_op) in [(0, 0.4711), (1, 0.000_071)] {
        if let Some(counter) = run.arms[arm].roles[0].counters.get_mut("transfers_local") {
            counter.modelled = Some(Modelled { value: per_op * 4e7, per_op });
        }
    }
    let row = |name: &str, value, unit: &str, source: &str| Evidence {
        name: name.to_owned(),
        value,
        unit: unit.to_owned(),
        source: source.to_owned(),
    };
    run.diagnosis[0].evidence = vec![
        row("upgrades per pass of `counter` in `packed`", Some(0.731), "per op", "measured, scaled"),
        row(
            "upgrades per pass of `counter` in `packed` over `solo:counter`",
            Some(1617.0),
            "times",
            "measured, scaled",
        ),
        row("llc_load_misses", None, "", "missing: this processor's PMU has no such event"),
    ];
    run.warnings.clear();
    run
}

/// The same with a second role in every arm, which pays less.
pub(super) fn two_roles() -> Run {
    let mut run = zen();
    for arm in &mut run.arms {
        let mut reader = arm.roles[0].clone();
        "reader".clone_into(&mut reader.role);
        for counter in reader.counters.values_mut() {
            counter.modelled = None;
            counter.measured.per_op = counter.measured.per_op.map(|per_op| 0.57 * per_op);
        }
        arm.roles.push(reader);
    }
    run
}

fn zen_counts(run: &mut Run, arm: usize) {
    // Counter, per op in the packed arms, per op in the others.
    let figures = [
        ("cycles", 83.1, 1.21),
        ("instructions", 2.03, 2.13),
        ("l1d_loads", 2.51, 2.62),
        ("l1d_load_misses", 0.911, 0.000_31),
        ("transfers_local", 0.831, 0.000_21),
        ("transfers_remote", 0.0571, 0.000_11),
        ("upgrades", 0.731, 0.000_41),
        ("cache_references", 0.971, 0.000_51),
        ("cache_misses", 0.871, 0.000_61),
        ("dtlb_load_misses", 0.000_002, 0.000_001),
        ("cpu/event=0x44,umask=0x14/", 0.0, 0.0),
    ];
    let lacking = ["stalled_cycles", "transfers_cluster", "transfers_write", "l1d_invalidations", "llc_loads"];
    let packed = run.arms[arm].name == "packed" || run.arms[arm].name == "control";
    for (name, sick, well) in figures {
        let per_op = if packed { sick } else { well } * (1.0 + 0.037 * arm as f64);
        let value = (per_op * 4e7) as u64;
        let reading = match name {
            "upgrades" => Reading::Scaled { value, ratio: 0.53 },
            _ => Reading::Counted { value },
        };
        count(run, arm, name, reading, Some(per_op));
    }
    for name in lacking.into_iter().chain(["llc_load_misses"]) {
        let why = "this processor's PMU has no such event (perf_event_open: ENOENT)".to_owned();
        count(run, arm, name, Reading::Unsupported { why }, None);
    }
    let denied = Reading::Denied {
        why: "kernel.perf_event_paranoid is 2".to_owned(),
        cure: "sudo sysctl kernel.perf_event_paranoid=1".to_owned(),
    };
    count(run, arm, "sched:sched_switch", denied, None);
}

fn count(run: &mut Run, arm: usize, name: &str, reading: Reading, per_op: Option<f64>) {
    let measured = Measured { reading, per_op, per_second: per_op.map(|n| n * 4.3e7) };
    let counters = &mut run.arms[arm].roles[0].counters;
    let modelled = counters.get(name).and_then(|known| known.modelled.clone());
    counters.insert(name.to_owned(), CounterSummary { measured, modelled });
}

/// A counter under its own name.
fn event(name: &str, counted_by: CountedBy) -> CountedEvent {
    CountedEvent {
        name: name.to_owned(),
        shown: name.replace('_', " "),
        event: Some(name.replace('_', "-")),
        counts: format!("what the kernel's {name} counts"),
        source: "perf_event_open(2)".to_owned(),
        counted_by,
        cpus: "0-1".to_owned(),
    }
}

/// What the kernel counts on any machine, in an arm of so many nanoseconds an operation: nearly nothing but time.
fn kernel_counters(ns_per_op: f64) -> impl Iterator<Item = (String, CounterSummary)> {
    let ops_per_second = 2e9 / ns_per_op;
    let counted = move |a_second: f64| Measured {
        reading: Reading::Counted { value: a_second.round() as u64 },
        per_op: Some(a_second / ops_per_second),
        per_second: Some(a_second),
    };
    let not_mounted = || Measured {
        reading: Reading::Denied {
            why: "tracefs is not mounted".to_owned(),
            cure: "sudo mount -t tracefs nodev /sys/kernel/tracing".to_owned(),
        },
        per_op: None,
        per_second: None,
    };
    let readings = [
        ("context_switches", counted(14.5)),
        ("context_switches_voluntary", counted(0.0)),
        ("context_switches_involuntary", counted(14.5)),
        ("cpu_migrations", counted(0.0)),
        ("page_faults", counted(0.0)),
        ("page_faults_major", counted(0.0)),
        ("task_clock", counted(1.9531e9)),
        ("futex_calls", not_mounted()),
        ("tlb_flushes", not_mounted()),
        ("stolen_ns", counted(0.0)),
        ("throttled_ns", counted(0.0)),
    ];
    readings.into_iter().map(|(name, measured)| (name.to_owned(), CounterSummary { measured, modelled: None }))
}

fn host() -> Host {
    Host {
        hostname: "lab-1".to_owned(),
        kernel: "6.18.0".to_owned(),
        cpu_model: "AMD EPYC 7B13".to_owned(),
        hypervisor: Some("KVM".to_owned()),
        cpus: 2,
        llc_groups: 1,
        nodes: 1,
        sockets: 1,
        line_bytes: 64,
        ticks_per_second: 2.449_999e9,
        perf_event_paranoid: Some(2),
        stolen_share: Some(0.0123),
    }
}

fn method() -> Method {
    let regime = |number, transfer_ns, repetitions| Regime {
        number,
        transfer_ns: Some(transfer_ns),
        contended_ns: Some(transfer_ns / 2.5),
        core_loop_ns: 1021.5,
        costs: record::CostProbe { bump_ns: Some(0.33), wake_ns: None, ..Default::default() },
        repetitions,
    };
    Method {
        interval: "bootstrap over blocks".to_owned(),
        level: 0.95,
        slice_us: 500.0,
        resolution: Some(0.031),
        control: Some(interval(1.008, 0.988, 1.031)),
        watching_cost: Some(0.0042),
        lock_timing: None,
        headline_regime: Some(regime(0, 57.3, 58)),
        regimes: vec![regime(0, 57.3, 58), regime(1, 214.2, 1)],
        blocks: 10,
        extended: false,
    }
}

fn diagnosis() -> Diagnosis {
    let evidence = |name: &str, value, unit: &str, source: &str| Evidence {
        name: name.to_owned(),
        value,
        unit: unit.to_owned(),
        source: source.to_owned(),
    };
    Diagnosis {
        kind: "false_sharing".to_owned(),
        severity: Severity::High,
        text: "hits[0] and hits[1] are written by different workers but lie in one cache line, so each write takes \
               the line away from the other worker."
            .to_owned(),
        arms: vec!["packed".to_owned()],
        fields: vec!["hits".to_owned()],
        roles: vec!["counter".to_owned()],
        evidence: vec![
            evidence("ns per op, packed over padded-64", Some(69.68), "×", "measured"),
            evidence("distance of hits[0] and hits[1]", Some(8.0), "bytes", "layout"),
            evidence("L1D load misses per op", None, "", "missing: this machine has no hardware counters"),
        ],
        cure: "give each element a line of its own: placement = { pad = 64 }".to_owned(),
        expected_gain: Some(Gain { arm: "padded-64".to_owned(), ratio: interval(69.7, 65.2, 73.9) }),
    }
}

fn arm(name: &str, kind: Kind, bytes: u64, ns: Interval, ratio_to_best: Option<Interval>) -> ArmSummary {
    let rate = |share: f64| Some(interval(share * 1e9 / ns.median, share * 1e9 / ns.high, share * 1e9 / ns.low));
    let worker = |index, share| WorkerSummary {
        index,
        role: "counter".to_owned(),
        cpu: index,
        ns_per_op: Some(ns),
        ops_per_second: rate(share),
        latency_ns: None,
    };
    let unsupported = CounterSummary {
        measured: Measured {
            reading: Reading::Unsupported { why: "no hardware counters (ENOENT)".to_owned() },
            per_op: None,
            per_second: None,
        },
        modelled: None,
    };
    let processor_s = COUNTERS.iter().filter(|(_, by)| *by == CountedBy::Processor);
    let processor_s = processor_s.map(|(name, _)| ((*name).to_owned(), unsupported.clone()));
    let counters = processor_s.chain(kernel_counters(ns.median));
    ArmSummary {
        name: name.to_owned(),
        kind,
        state: ArmState::Measured,
        why: None,
        mask: "co-running".to_owned(),
        variant: name.split(':').next_back().unwrap_or(name).to_owned(),
        sweep: BTreeMap::new(),
        bytes,
        layout: (0..2)
            .map(|element| LayoutRow {
                field: "hits".to_owned(),
                element,
                offset: u64::from(element) * bytes / 2,
                bytes: 8,
                line: u64::from(element) * bytes / 2 / 64,
                writers: vec![element],
                readers: Vec::new(),
            })
            .collect(),
        regime: Some(0),
        regime_transfer_ns: Some(57.3),
        timeline: None,
        stacks: Vec::new(),
        modelled: None,
        repetitions: RepetitionCount { kept: 10, spoiled: 0, other_regime: 0 },
        lost_share: if name == "packed" { 0.031 } else { 0.0021 },
        other_regimes: Vec::new(),
        headline_role: "counter".to_owned(),
        ns_per_op: Some(ns),
        slice_ns_per_op: Some(Quantiles { p10: ns.low * 0.8, p50: ns.median, p90: ns.high * 1.1 }),
        ops_per_second: rate(2.0),
        ratio_to_best,
        roles: vec![RoleSummary {
            role: "counter".to_owned(),
            ns_per_op: Some(ns),
            slowest_worker_ns_per_op: Some(ns),
            ratio_to_best,
            slowest_worker_ratio_to_best: ratio_to_best,
            ops_per_second: rate(2.0),
            fairness_jain: Some(0.9981),
            contention: Contention::default(),
            counters: counters.collect(),
            ..Default::default()
        }],
        workers: vec![worker(0, 1.02), worker(1, 0.98)],
        locks: Vec::new(),
    }
}

fn lock(acquisitions: u64, contended: u64) -> LockSummary {
    let wait =
        |count, p50, p99, max| Percentiles { count, min: 61, mean: 431.25, p50, p90: 2 * p50, p99, p999: 4 * p99, max };
    let by_worker = (0..2)
        .map(|worker| LockWorker {
            worker,
            role: "counter".to_owned(),
            acquisitions: acquisitions / 2,
            contended: contended / 2,
            wait_ns: Some(wait((contended / 2).saturating_sub(6), 312, 4_127, 190_123)),
            hold_ns: Some(wait(500, 21, 48, 1_203)),
            longest_gap_ns: 4_812_345.0,
        })
        .collect();
    LockSummary {
        lock: "m".to_owned(),
        kind: "pthread".to_owned(),
        acquisitions,
        contended,
        wait_ns: Some(wait(contended.saturating_sub(12), 312, 4_127, 190_123)),
        wait_ns_all: Some(wait(contended, 312, 4_127, 4_190_123)),
        masked: 12,
        waits_lost: 0,
        hold_ns: Some(wait(1000, 21, 48, 1_203)),
        handoffs: acquisitions / 11,
        longest_run: 48_123,
        owner_died: 0,
        contended_share: Some(contended as f64 / acquisitions as f64),
        handoffs_per_op: Some(1.0 / 11.0),
        fairness_jain: Some(0.9731),
        longest_gap_ns: Some(4_812_345.0),
        longest_gap_worker: Some(1),
        hold_sampling: HOLD_SAMPLING,
        by_worker,
        ..Default::default()
    }
}

/// Two blocks of every arm, each of its workers; one repetition of the first arm spoiled.
fn observations(arms: &[ArmSummary]) -> Vec<Observation> {
    let mut seen = Vec::new();
    for block in 0..2 {
        for arm in arms {
            for worker in &arm.workers {
                let ns = worker.ns_per_op.map(|ns| ns.median * (1.0 + 0.013 * f64::from(block)));
                let spoiled =
                    if arm.name == "packed" && block == 1 { vec!["lost_time".to_owned()] } else { Vec::new() };
                seen.push(observation(arm, block, worker, ns, spoiled));
            }
        }
    }
    seen
}

fn observation(
    arm: &ArmSummary,
    block: u32,
    worker: &WorkerSummary,
    ns_per_op: Option<f64>,
    spoiled: Vec<String>,
) -> Observation {
    let counters = [
        ("context_switches".to_owned(), Reading::Counted { value: 2 }),
        ("l1d_load_misses".to_owned(), Reading::Unsupported { why: "no hardware counters (ENOENT)".to_owned() }),
    ];
    Observation {
        arm: arm.name.clone(),
        block,
        worker: worker.index,
        role: worker.role.clone(),
        pid: Some(4000 + worker.index as i32),
        tid: None,
        cpu: worker.cpu,
        passes: 4_312_345,
        kept_passes: 4_201_234,
        kept_ns: 97_213_456.789,
        lost_ns: 1_500_000.125,
        blocked_ns: 0.0,
        window_ns: 100_000_123.4,
        noted_ns: Some(121_000_456.7),
        ns_per_op,
        slice_ns_per_op: Vec::new(),
        transfer_before_ns: Some(57.1),
        transfer_after_ns: Some(57.9),
        contended_before_ns: Some(20.1),
        contended_after_ns: Some(20.4),
        core_loop_ns: 1021.5,
        regime: spoiled.is_empty().then_some(0),
        spoiled,
        counters: counters.into_iter().collect(),
        locks: Vec::new(),
        ..Default::default()
    }
}

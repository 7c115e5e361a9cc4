#!/usr/bin/env python3
"""How often do the lab's intervals hold what they should?

    coverage.py measure FOLDER [RUNS]   runs false_sharing RUNS times (20), each run's JSON into FOLDER
    coverage.py judge FOLDER            judges the intervals against the pooled ratio of their regime

The scenario is scenarios/false_sharing.toml with two claims more, so that the ratios of interest stand in `expect`.
Every run is compared with the pooled median ratio of all runs whose headline regime is the same (transfer time and core
speed within 1.4 x, contended probe within 5 %).
"""
import json, pathlib, statistics, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Never false, never undecided: they only put the ratio's interval into the JSON.
CLAIMS = """
[[expect]]
claim = "ns_per_op(padded-64) <= 1000 * ns_per_op(padded-128)"
"""
PAIRS = {
    "packed / padded-64": ("packed", "padded-64", 16),
    "padded-64 / padded-128": ("padded-64", "padded-128", 18),
}


def measure(folder, runs):
    folder.mkdir(parents=True, exist_ok=True)
    binary = ROOT / "target/release/coordinator"
    with tempfile.TemporaryDirectory() as scratch:
        scenario = pathlib.Path(scratch) / "false_sharing.toml"
        scenario.write_text((ROOT / "scenarios/false_sharing.toml").read_text() + CLAIMS)
        for run in range(runs):
            command = [binary, "run", scenario, "--json", "--quiet", "--out", scratch]
            done = subprocess.run(command, capture_output=True, text=True)
            print(run, "exit", done.returncode, flush=True)
            (folder / f"{run:03}.json").write_text(done.stdout)


def close(a, b, factor):
    return a is not None and b is not None and max(a, b) <= factor * min(a, b)


def same_regime(a, b):
    """Transfer time and core speed as within a run; the contended probe, a median of 60 readings and more, closer."""
    far = close(a["transfer_ns"], b["transfer_ns"], 1.4) and close(a["core_speed"], b["core_speed"], 1.4)
    return far and close(a["contended_ns"], b["contended_ns"], 1.05)


def figures(run, arm):
    """One figure a repetition of the headline regime: the median over workers of their ns per pass."""
    regime = run["method"]["headline_regime"]["number"]
    by_block = {}
    for seen in run["observations"]:
        if seen["arm"] == arm and seen["regime"] == regime and not seen["spoiled"]:
            by_block.setdefault(seen["block"], []).append(seen["ns_per_op"])
    return [statistics.median(values) for values in by_block.values()]


def judge(folder):
    runs = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json")) if path.stat().st_size]
    runs = [run for run in runs if run["method"]["headline_regime"]]
    print(f"{len(runs)} runs on {runs[0]['host']['cpu_model']}, {runs[0]['host']['kernel']}")
    print("interval:", runs[0]["method"]["interval"])
    for run in runs:
        regime = run["method"]["headline_regime"]
        lost = statistics.fmean(arm["lost_share"] for arm in run["arms"])
        print(f"  transfer {regime['transfer_ns']:6.1f} ns, contended {regime['contended_ns']:6.3f} ns, core loop {regime['core_speed']:8.0f} ns, lost {lost:5.1%}, "
              f"blocks {run['method']['blocks']}", end="")
        for claim in run["expect"]:
            seen = claim["seen"]
            print(f"   {seen['median']:.3f} ({seen['low']:.3f}-{seen['high']:.3f})" if seen else "   -", end="")
        print()
    resolved = [run["method"]["control"] for run in runs if run["method"]["control"]]
    held = sum(c["low"] <= 1 <= c["high"] for c in resolved)
    width = statistics.median(c["high"] - c["low"] for c in resolved)
    print(f"control holds 1: {held} of {len(resolved)}, median width {width:.3f}")
    for name, (left, right, bar) in PAIRS.items():
        held, total, widths = 0, 0, []
        for run in runs:
            claim = next(c for c in run["expect"] if f"ns_per_op({left})" in c["claim"] and f"({right})" in c["claim"])
            if not claim["seen"]:
                continue
            peers = [r for r in runs if same_regime(r["method"]["headline_regime"], run["method"]["headline_regime"])]
            pool = [statistics.median([v for r in peers for v in figures(r, arm)]) for arm in (left, right)]
            truth, seen = pool[0] / pool[1], claim["seen"]
            total += 1
            held += seen["low"] <= truth <= seen["high"]
            widths.append((seen["high"] - seen["low"]) / seen["median"])
        print(f"{name} holds the pooled ratio of its regime: {held} of {total} (asked for: {bar} of 20), "
              f"median width {statistics.median(widths):.3f}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["measure", folder]:
            measure(pathlib.Path(folder), 20)
        case ["measure", folder, runs]:
            measure(pathlib.Path(folder), int(runs))
        case ["judge", folder]:
            judge(pathlib.Path(folder))
        case _:
            sys.exit(__doc__)

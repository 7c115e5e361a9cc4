#!/usr/bin/env python3
"""Does noise lie? Runs false_sharing with and without a busy loop on one worker's CPU, alternated.

    noise.py [PAIRS]     quiet and busy runs in turn, 10 pairs by default; prints a line a pair and a verdict

A pair is sound if the busy run's padded figures are within 5 % of the quiet runs' before and after it (the nearer of the
two), and its packed figure lies in the range of the quiet run's slices (p10 to p90, both runs in one regime, the contended
probe within 5 %), or if it says that it cannot tell (exit status 3, or no figure).
"""
import json, pathlib, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUSY = "while True: pass"


def run(busy):
    with tempfile.TemporaryDirectory() as scratch:
        hog = subprocess.Popen(["taskset", "-c", "0", sys.executable, "-c", BUSY]) if busy else None
        command = [ROOT / "target/release/coordinator", "run", ROOT / "scenarios/false_sharing.toml", "--json", "--quiet"]
        done = subprocess.run(command + ["--out", scratch, "--repetitions", "6"], capture_output=True, text=True)
        if hog:
            hog.kill()
            hog.wait()
        return done.returncode, json.loads(done.stdout) if done.stdout else None


def arm(seen, name):
    return next(a for a in seen["arms"] if a["name"] == name)


def figure(seen, name):
    found = arm(seen, name)["ns_per_op"]
    return found["median"] if found else None


def whole_windows(seen, name):
    """What the same repetitions read without the mask."""
    rows = [o for o in seen["observations"] if o["arm"] == name]
    return sum(o["window_ns"] for o in rows) / sum(o["passes"] for o in rows)


def same_state(a, b):
    a, b = a["method"]["headline_regime"], b["method"]["headline_regime"]
    close = lambda key, factor: max(a[key], b[key]) <= factor * min(a[key], b[key])
    return bool(a and b) and close("transfer_ns", 1.4) and close("core_speed", 1.4) and close("contended_ns", 1.05)


def main(pairs):
    wrong = cannot_tell = 0
    _, before = run(False)
    for pair in range(pairs):
        status, busy = run(True)
        _, after = run(False)
        wrong_here = 0
        line = [f"pair {pair}: exit {status}, lost {arm(busy, 'padded-64')['lost_share']:.0%} of padded-64"]
        for name in ("padded-64", "padded-128"):
            value = figure(busy, name)
            quiet = [q for q in (figure(before, name), figure(after, name)) if q]
            if value is None or not quiet:
                cannot_tell += 1
                line.append(f"{name} cannot tell")
                continue
            off = min((value / q - 1 for q in quiet), key=abs)
            wrong_here += abs(off) > 0.05
            line.append(f"{name} {value:.4f} ({off:+.1%}; whole windows {whole_windows(busy, name):.3f})")
        value = figure(busy, "packed")
        peers = [q for q in (before, after) if q["method"]["headline_regime"] and same_state(q, busy)] if value else []
        if not peers:
            cannot_tell += value is None
            line.append("packed " + ("cannot tell" if value is None else f"{value:.2f}, no quiet run in its regime"))
        else:
            ranges = [arm(q, "packed")["slice_ns_per_op"] for q in peers]
            inside = any(r["p10"] <= value <= r["p90"] for r in ranges)
            wrong_here += not inside
            shown = ", ".join(f"{r['p10']:.2f}-{r['p90']:.2f}" for r in ranges)
            line.append(f"packed {value:.2f} {'in' if inside else 'NOT in'} {shown}")
        kinds = [d["kind"] for d in busy["diagnosis"]]
        wrong_here += kinds not in (["false_sharing"], ["none"])
        if status == 3:
            # The run says itself that it is inconclusive: whatever it shows, it does not vouch for it.
            cannot_tell, wrong_here = cannot_tell + 1, 0
        wrong += wrong_here
        print("; ".join(line), "; ", kinds, sep="", flush=True)
        before = after
    print(f"{pairs} pairs: {wrong} wrong, {cannot_tell} said that they cannot tell")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 10))

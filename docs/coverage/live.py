#!/usr/bin/env python3
"""What does looking cost? Runs a scenario in a terminal with and without --live, alternated.

    live.py [TRIPLES] [SCENARIO]     plain, live and plain again in turn, 10 triples of false_sharing by default

Prints, for each variant, live over plain and plain over plain (what the comparison can tell) of ns per operation, and of
the run's length. A ratio is that of a triple's live run to the mean of its two plain ones, and of the second plain run to
the first; medians, and the lowest and highest.
"""
import json, os, pathlib, pty, statistics, subprocess, sys, tempfile, threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("COORDINATOR", ROOT / "target/release/coordinator"))


def run(scenario, live):
    """The run's JSON; its standard error is a terminal that somebody reads."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [BINARY, "run", scenario, "--json", "--out", scratch] + (["--live"] if live else [])
        screen, terminal = pty.openpty()
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=terminal, env=os.environ | {"TERM": "xterm"})
        os.close(terminal)
        seen = []

        def read():
            try:
                while part := os.read(screen, 65536):
                    seen.append(part)
            except OSError:  # the other end is closed
                pass

        reader = threading.Thread(target=read)
        reader.start()
        run = json.loads(child.stdout.read())
        child.wait()
        reader.join()
        os.close(screen)
        text = b"".join(seen).decode()
        assert ("Now: " in text) == live, "the live view was not drawn, or drawn unasked"
        return run, text.count("Now: "), len(set(line for line in text.split("\n") if "Diagnosis so far" in line))


def figures(run):
    found = {a["name"]: a["ns_per_op"] for a in run["arms"] if a["kind"] == "variant"}
    return {name: value["median"] for name, value in found.items() if value} | {"length": run["duration_s"]}


def main(triples, scenario):
    live, plain = {}, {}
    drawn = looks = 0
    for _ in range(triples):
        (first, _, _), (middle, screens, findings), (last, _, _) = (run(scenario, look) for look in (False, True, False))
        drawn, looks = drawn + screens, looks + findings
        before, seen, after = figures(first), figures(middle), figures(last)
        for name in before.keys() & seen.keys() & after.keys():
            live.setdefault(name, []).append(seen[name] / ((before[name] + after[name]) / 2))
            plain.setdefault(name, []).append(after[name] / before[name])
    print(f"{triples} triples of {scenario.name}; a live run drew {drawn / triples:.0f} screens, with {looks / triples:.0f} analyses")
    shown = lambda ratios: f"{statistics.median(ratios):.4f} ({min(ratios):.4f}-{max(ratios):.4f})"
    for name in sorted(live):
        print(f"{name:20} live/plain {shown(live[name])}  plain/plain {shown(plain[name])}  n = {len(live[name])}")


if __name__ == "__main__":
    scenario = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "scenarios/false_sharing.toml"
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10, scenario)

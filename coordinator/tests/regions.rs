//! Steps on regions in real runs: shared memory is one and private memory a process's own, what is punched is gone for all
//! and reserved again for the next repetition, and what a machine cannot give is said.

mod common;

use common::{Bench, alone, counted, is_root, of_role, stderr};
use nix::unistd::{SysconfVar, sysconf};
use record::{Observation, Run};
use std::process::{Command, Stdio};
use testing::skip;

/// A role that populates a shared region of so much and touches a private one, and another that begins inside the window.
fn scenario(size: &str, culprit: &str) -> String {
    format!(
        r#"
title = "Regions"
question = "What is whose?"
[measure]
window = "40ms"
warm_up = "5ms"
repetitions = 2
baselines = []
[region.own]
size = "64KiB"
[region.seg]
size = "{size}"
shared = true
[[role]]
name = "victim"
populate = ["seg"]
loop = ["touch own"]
[[role]]
name = "culprit"
after = "10ms"
{culprit}
"#
    )
}

fn measured(text: &str) -> (Bench, Run) {
    let bench = Bench::new(text);
    let output = bench.run().args(["--json", "--quiet"]).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{:?}: {}", output.status, stderr(&output));
    (bench, serde_json::from_slice(&output.stdout).unwrap())
}

/// Everybody may count them.
fn faults(one: &Observation) -> u64 {
    counted(one, "page_faults")
}

#[test]
fn batches_and_calls_are_recorded_and_stand_in_the_timeline() {
    let _alone = alone();
    let (bench, run) = measured(&scenario("16MiB", "loop = ['punch seg 8KiB pause 100us']"));
    for one in of_role(&run, "victim") {
        let memory = one.memory.as_ref().unwrap();
        // A batch a pass, counted from the culprit's begin on: on a busy machine perhaps none.
        assert!(memory.batches <= one.passes && memory.record_ns > 0.0 && memory.calls == 0, "{memory:?}");
    }
    for one in of_role(&run, "culprit") {
        let memory = one.memory.as_ref().unwrap();
        // A chunk each 100 us of at most 30 ms; on a busy machine fewer.
        assert!(memory.batches == 0 && memory.calls <= 300, "{memory:?}");
    }
    let mut rows = csv::Reader::from_path(bench.only_result().join("timeline.csv")).unwrap();
    let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
    let named = |role: &str, what: &str| {
        rows.iter().filter(|row| &row[0] == "base" && &row[1] == "0" && &row[3] == role && &row[4] == what).count()
    };
    let first = |role: &str| {
        let of_role = of_role(&run, role);
        of_role.into_iter().find(|one| one.arm == "base" && one.block == 0).and_then(|one| one.memory.clone()).unwrap()
    };
    assert_eq!(named("culprit", "call") as u64, first("culprit").calls);
    assert_eq!(named("victim", "stall") as u64, first("victim").stalls);
    assert!((1..=40).contains(&named("victim", "batches")));
    let counted: u64 = (rows.iter().filter(|row| &row[0] == "base" && &row[1] == "0" && &row[4] == "batches"))
        .map(|row| row[8].parse::<u64>().unwrap())
        .sum();
    assert!(counted > 0 && counted >= first("victim").batches, "those before the culprit's begin come on top");
}

/// The victim's pages that the culprit has punched are not there any more, those of its own view stay: told by who has to
/// ask for them again. Both touch the whole region once more at the end of the window.
#[test]
fn what_is_punched_is_gone_for_everybody_and_a_view_is_one_s_own() {
    let _alone = alone();
    let page_bytes = sysconf(SysconfVar::PAGE_SIZE).unwrap().unwrap() as u64;
    let pages = (1 << 20) / page_bytes;
    let faults_of_victim = |culprit: &str| {
        let text = scenario("1MiB", &format!("populate = ['seg']\nloop = ['{culprit}', 'sleep 1s']"));
        // One pass in the window's last part, when the culprit's only pass is long over.
        let text =
            text.replace("window = \"40ms\"", "window = \"1100ms\"").replace("repetitions = 2", "repetitions = 1");
        let text = text.replace("loop = [\"touch own\"]", "loop = [\"sleep 500ms\", \"touch seg\", \"touch own\"]");
        let (_bench, run) = measured(&text);
        of_role(&run, "victim").iter().map(|one| faults(one)).max().unwrap()
    };
    for punches in ["punch seg", "remove seg"] {
        let seen = faults_of_victim(punches);
        assert!(seen >= pages, "{punches}: {seen} faults");
    }
    for own in ["dontneed seg", "unmap seg", "protect seg"] {
        let seen = faults_of_victim(own);
        assert!(seen < pages / 2, "{own}: {seen} faults");
    }
}

/// A page of a private region that one thread has touched is there for the other.
#[test]
fn roles_of_one_process_share_private_regions_and_a_number() {
    let _alone = alone();
    let (_bench, run) = measured(&scenario("64KiB", "process = 'victim'\npopulate = ['own']\nloop = ['touch own']"));
    for pair in run.observations.chunks(2) {
        let [victim, culprit] = pair else { panic!("two workers") };
        assert_eq!((victim.pid, victim.role.as_str()), (culprit.pid, "victim"));
        assert!(victim.tid != culprit.tid);
    }
    let apart = measured(&scenario("64KiB", "loop = ['touch own']")).1;
    assert!(apart.observations.chunks(2).all(|pair| pair[0].pid != pair[1].pid));
}

#[test]
fn a_region_that_is_punched_all_through_spoils_the_repetition_and_says_what_to_do() {
    let _alone = alone();
    let (_bench, run) = measured(&scenario("256KiB", "loop = ['punch seg 64KiB pause 10us']"));
    let spoiled = |one: &Observation| one.spoiled.iter().any(|reason| reason == "region_used_up");
    assert!(run.observations.iter().all(spoiled), "{:?}", run.observations[0].spoiled);
    let warning = run.warnings.iter().find(|warning| warning.id == "spoiled").unwrap();
    assert!(warning.advice.contains("give the region a larger `size`"), "{warning:?}");
}

#[test]
fn each_step_runs_on_private_and_on_shared_memory() {
    let _alone = alone();
    let private = "'touch own 16KiB chunk 4KiB', 'reuse own', 'dontneed own', 'protect own 8KiB pause 1us', \
                   'map own chunk 32KiB', 'unmap own chunk 16KiB', 'free own chunk 1KiB'";
    let (_bench, run) = measured(&scenario("1MiB", &format!("loop = [{private}]")));
    let shared = "'touch seg', 'reuse seg', 'dontneed seg', 'protect seg', 'unmap seg', 'remove seg', 'punch seg'";
    let (_bench, second) = measured(&scenario("1MiB", &format!("loop = [{shared}]")));
    for run in [run, second] {
        for one in of_role(&run, "culprit") {
            let memory = one.memory.as_ref().unwrap();
            assert!(one.passes == 0 || memory.calls > 0 && memory.batches > 0, "{} passes: {memory:?}", one.passes);
        }
        assert!(of_role(&run, "culprit").iter().any(|one| one.passes > 0));
    }
}

/// Whoever asks for huge pages that are not there is told where to look and how to get them.
#[test]
fn huge_pages_that_are_not_there_leave_nothing_to_run() {
    let _alone = alone();
    let text = scenario("1GiB", "loop = ['work 1us']").replace("shared = true", "shared = true\npages = \"2MiB\"");
    let pool = host::huge_pages(&host::Root::system()).unwrap_or_default();
    if pool.free >= 512 {
        return skip("this machine has a gigabyte of huge pages to spare");
    }
    let output = Bench::new(&text).run().output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("its regions need 512 huge pages of 2 MiB"), "{said}");
    let cure = format!("`sysctl vm.nr_hugepages={}` ", pool.total + 512 - pool.free);
    assert!(said.contains("free_hugepages") && said.contains(&cure), "{said}");
}

/// Huge pages that this test sets apart where it may and too few are, and gives back.
struct SetApart(Option<String>);

const SET_APART: &str = "/proc/sys/vm/nr_hugepages";

impl SetApart {
    /// So many are free now; `None` where they cannot be had.
    fn at_least(pages: u64) -> Option<SetApart> {
        let free = || {
            let text = std::fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages").ok()?;
            text.trim().parse::<u64>().ok()
        };
        if free()? >= pages {
            return Some(SetApart(None));
        }
        let before = std::fs::read_to_string(SET_APART).ok()?;
        let more = before.trim().parse::<u64>().ok()? + pages;
        std::fs::write(SET_APART, more.to_string()).ok()?;
        let apart = SetApart(Some(before));
        (free()? >= pages).then_some(apart)
    }
}

impl Drop for SetApart {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            std::fs::write(SET_APART, before).expect("what could be raised can be lowered");
        }
    }
}

/// Explicit huge pages, of one process and shared: told by the faults of touching what another punched, one for 512.
#[test]
fn huge_pages_that_are_there_are_mapped_whole() {
    let _alone = alone();
    // Those of the region, and of its copies in the arms beside.
    let Some(_apart) = SetApart::at_least(16) else {
        return skip("this machine has no huge pages to set apart");
    };
    let shared = scenario("4MiB", "loop = ['punch seg', 'sleep 1s']")
        .replace("shared = true", "shared = true\npages = \"2MiB\"")
        .replace("window = \"40ms\"", "window = \"1100ms\"")
        .replace("repetitions = 2", "repetitions = 1")
        .replace("loop = [\"touch own\"]", "loop = [\"sleep 500ms\", \"touch seg\", \"touch own\"]");
    let (_bench, run) = measured(&shared);
    let seen = of_role(&run, "victim").iter().map(|one| faults(one)).max().unwrap();
    assert!((2..512).contains(&seen), "two pages of 2 MiB are back after {seen} faults");
}

/// A shared-memory file system of 3 MiB, seen by the run alone: the segment fits, the region does not.
#[test]
fn a_region_that_there_is_no_room_for_is_refused_and_nothing_stays() {
    let _alone = alone();
    if !is_root() {
        return skip("mounting a small /dev/shm needs root");
    }
    let bench = Bench::new(&scenario("8MiB", "loop = ['punch seg 8KiB pause 100us']"));
    let small = "mount -t tmpfs -o size=3m,mode=1777 tmpfs /dev/shm && \"$@\"; code=$?; ls -A /dev/shm; exit $code";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", small, "sh", env!("CARGO_BIN_EXE_coordinator"), "run"]);
    command.arg(bench.scenario()).arg("--out").arg(bench.results()).stdin(Stdio::null());
    let Ok(output) = command.output() else { return skip("there is no unshare(1)") };
    let said = stderr(&output);
    if said.contains("unshare failed") || said.contains("mount:") {
        return skip(&format!("a mount namespace is not allowed here: {said}"));
    }
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("/dev/shm has no room for shared regions of 8388608 bytes (ENOSPC"), "{said}");
    assert_eq!(output.stdout, b"", "nothing is left in /dev/shm");
}

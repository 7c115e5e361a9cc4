//! `report.html`: that every run has one and `report` makes the same again, and what a real browser makes of it.

#[path = "common/browser.rs"]
mod browser;
mod common;

use browser::Browser;
use common::{Bench, coordinator, stderr, stdout};
use record::{Kind, Run};
use std::path::{Path, PathBuf};
use testing::skip;

/// Every page has these, in this order.
const SECTIONS: [&str; 12] = [
    "answer",
    "throughput",
    "latency",
    "lines",
    "together",
    "counters",
    "timeline",
    "distances",
    "code",
    "diagnosis",
    "trust",
    "again",
];

/// Largest page.
const MOST_BYTES: usize = 1_500_000;

/// Most elements of a page: a browser lays out so many at once.
const MOST_ELEMENTS: u64 = 25_000;

/// A title with everything in it that HTML has a meaning for.
const MARKUP: &str = "<img src=x onerror=alert(1)> & \"quoted\" '</title>'";

/// What would reorder a line, which no scenario may have in its title but a record could.
const REORDERS: char = '\u{202e}';

/// The folder of a run of one of the lab's scenarios, short.
fn ran(bench: &Bench, arguments: &[&str]) -> PathBuf {
    let output = bench.run().arg("--quiet").args(arguments).output().unwrap();
    // 1 and 3: a short window may not show what the scenario expects. The page has to be there all the same.
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{}", stderr(&output));
    bench.only_result()
}

fn scenario(name: &str) -> Bench {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    Bench::new(&std::fs::read_to_string(folder.join(name)).unwrap())
}

fn read(folder: &Path) -> Run {
    serde_json::from_slice(&std::fs::read(folder.join("run.json")).unwrap()).unwrap()
}

fn page(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("report.html")).unwrap()
}

/// Writes a run's record into a folder of its own and has its page made.
fn reported(run: &Run) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("run.json"), serde_json::to_vec(run).unwrap()).unwrap();
    let output = coordinator().arg("report").arg(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    folder
}

/// Whether every section stands on the page, once and in order.
fn assert_whole(page: &str) {
    let at = SECTIONS.map(|id| {
        let found: Vec<usize> = page.match_indices(&format!("<section id=\"{id}\"")).map(|(at, _)| at).collect();
        assert_eq!(found.len(), 1, "section {id}");
        found[0]
    });
    assert!(at.is_sorted(), "{at:?}");
    assert!(page.len() < MOST_BYTES, "{} bytes", page.len());
    assert!(!page.contains("<script"), "no script is needed, so there is none");
}

#[test]
fn every_run_leaves_a_page_and_report_makes_the_same_again() {
    let _alone = common::alone();
    let bench = Bench::new(&common::QUICK.replace("\"Quick\"", &format!("{MARKUP:?}")));
    let folder = ran(&bench, &[]);
    let first = page(&folder);
    assert_whole(&first);
    std::fs::write(folder.join("report.html"), "an old page").unwrap();
    let output = coordinator().arg("report").arg(&folder).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), format!("{}\n", folder.join("report.html").display()));
    assert_eq!(page(&folder), first, "the record holds all that the page shows");

    let run = read(&folder);
    assert_eq!(run.scenario.title, MARKUP);
    let code = run.code.expect("the record keeps listings");
    let of: Vec<(&str, &str)> = code.listings.iter().map(|one| (one.arm.as_str(), one.role.as_str())).collect();
    assert_eq!(of, [("packed", "counter"), ("padded", "counter")], "one worker's of each variant and role");
    assert!(first.contains("bump hits[me]") && first.contains("(%r"), "steps beside instructions");
}

#[test]
fn a_record_of_another_name_has_its_page_beside_it_and_what_is_no_run_is_refused() {
    let _alone = common::alone();
    let bench = Bench::new(common::QUICK);
    let folder = ran(&bench, &[]);
    let other = folder.join("before.json");
    std::fs::copy(folder.join("run.json"), &other).unwrap();
    let report = |run: &Path| coordinator().arg("report").arg(run).output().unwrap();
    assert_eq!(stdout(&report(&other)), format!("{}\n", folder.join("before.report.html").display()));
    let refused = report(bench.results().as_path());
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("holds no run.json"), "{}", stderr(&refused));
    let mut wrong = coordinator();
    wrong.arg("report").arg(&folder).arg("--topology").arg(folder.join("run.json"));
    let wrong = wrong.output().unwrap();
    assert_eq!(wrong.status.code(), Some(2), "{}", stderr(&wrong));
    assert!(stderr(&wrong).contains("topology --measure --json"), "{}", stderr(&wrong));
}

/// What a browser must find on every page.
fn assert_opens(browser: &mut Browser, file: &Path, name: &str) {
    let axe = std::env::var("LAB_AXE").ok().map(|path| std::fs::read_to_string(path).unwrap());
    if axe.is_none() {
        skip("axe-core is not there: `npm install axe-core`, and LAB_AXE names its axe.min.js");
    }
    for (screen, width) in [("desktop", 1280), ("phone", 390), ("narrow", 360)] {
        for scheme in ["light", "dark"] {
            browser.open(file, width, scheme);
            let at = format!("{name}, {screen}, {scheme}");
            assert_eq!(browser.said(), [] as [&serde_json::Value; 0], "{at}");
            let asked: Vec<String> = browser.requests().into_iter().filter(|url| !url.starts_with("data:")).collect();
            assert_eq!(asked, [format!("file://{}", file.display())], "{at}");
            let ids = browser.value("[...document.querySelectorAll('main > section')].map(s => s.id)");
            assert_eq!(ids, serde_json::json!(SECTIONS), "{at}");
            let wide = browser.value("document.documentElement.scrollWidth").as_u64().unwrap();
            assert!(wide <= width.into(), "{at}: the page is {wide} wide");
            if screen == "narrow" {
                continue;
            }
            keep(&format!("{name}-{screen}-{scheme}.png"), || browser.picture());
            axe.iter().for_each(|axe| assert_accessible(browser, axe, &at));
        }
    }
    keep(&format!("{name}.pdf"), || browser.print());
}

/// No finding that axe-core calls serious or critical, all details opened.
fn assert_accessible(browser: &mut Browser, axe: &str, at: &str) {
    browser.value("document.querySelectorAll('details').forEach(d => d.open = true)");
    browser.value(&format!("{axe}; true"));
    let found = browser.value(
        "axe.run(document, {resultTypes: ['violations']}).then(r => r.violations \
         .filter(v => ['serious', 'critical'].includes(v.impact)) \
         .map(v => v.id + ': ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + n.failureSummary).join('; ')))",
    );
    assert_eq!(found, serde_json::json!([]), "{at}");
}

/// Kept where CI collects what is to be looked at, outside the repository.
fn keep(name: &str, content: impl FnOnce() -> Vec<u8>) {
    if let Some(folder) = std::env::var_os("LAB_ARTEFACTS") {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(Path::new(&folder).join(name), content()).unwrap();
    }
}

#[test]
fn a_browser_opens_the_pages_of_false_sharing_a_lock_and_a_shootdown() {
    let _alone = common::alone();
    let runs = [
        ("false_sharing", &["--window", "20ms", "--repetitions", "4"][..]),
        ("mutex", &["--window", "20ms", "--repetitions", "3"]),
        ("tlb_shootdown", &["--window", "80ms", "--repetitions", "3"]),
    ];
    let benches = runs.map(|(name, arguments)| (name, scenario(&format!("{name}.toml")), arguments));
    let pages = benches.each_ref().map(|(name, bench, arguments)| (*name, ran(bench, arguments)));
    let Some(mut browser) = Browser::start() else { return skip("chromium is not installed (Debian's package)") };
    for (name, folder) in pages {
        assert_whole(&page(&folder));
        assert_opens(&mut browser, &folder.join("report.html"), name);
        let tables = browser.value("[...document.querySelectorAll('figure')].every(f => f.querySelector('table'))");
        assert_eq!(tables, true, "{name}: a figure has its values in a table");
        let named = "[...document.querySelectorAll('svg')] \
                     .every(s => document.getElementById(s.getAttribute('aria-labelledby')))";
        assert_eq!(browser.value(named), true, "{name}: a drawing has a name");
    }
}

#[test]
fn markup_in_a_title_is_text() {
    let _alone = common::alone();
    let bench = Bench::new(common::QUICK);
    let mut run = read(&ran(&bench, &[]));
    run.scenario.title = format!("{MARKUP}{REORDERS}odd");
    run.arms[0].name = "<script>alert(2)</script>".to_owned();
    run.diagnosis[0].text = "<b>`<i>`</b>".to_owned();
    let folder = reported(&run);
    let shown = page(folder.path());
    assert_whole(&shown);
    assert!(!shown.contains("<img") && !shown.contains("<i>") && !shown.contains('\u{202e}'));
    let Some(mut browser) = Browser::start() else { return skip("chromium is not installed (Debian's package)") };
    browser.open(&folder.path().join("report.html"), 1280, "light");
    let title = format!("{MARKUP}{}odd", REORDERS.escape_unicode());
    assert_eq!(browser.value("document.title"), title.as_str());
    assert_eq!(browser.value("document.querySelector('h1').textContent"), title.as_str());
    assert_eq!(browser.value("document.querySelectorAll('img, script, h1 *').length"), 0);
    assert_eq!(browser.said().len(), 0, "{:?}", browser.said());
}

/// A run of 20 variants and 128 workers, from a small one: names, places and workers are made up, so that every list of
/// the page is as long as it gets.
fn large(small: &Run) -> Run {
    let first = small.arms.iter().find(|arm| arm.kind == Kind::Variant && !arm.workers.is_empty()).unwrap().clone();
    let mut run = small.clone();
    run.arms = (0..20).map(|nth| many_workers(&first, nth)).collect();
    run.observations = Vec::new();
    run
}

fn many_workers(of: &record::ArmSummary, nth: u32) -> record::ArmSummary {
    let mut arm = of.clone();
    arm.name = format!("variant-with-a-long-name-{nth}@workers=128,think=100ns");
    arm.state = record::ArmState::Measured;
    let figure = |median: f64| Some(record::Interval { median, low: 0.9 * median, high: 1.1 * median });
    (arm.ns_per_op, arm.ratio_to_best) = (figure(10.0 + f64::from(nth)), figure(1.0 + f64::from(nth) / 10.0));
    arm.ops_per_second = figure(1e8 / (1.0 + f64::from(nth)));
    let all: Vec<u32> = (0..128).collect();
    let (worker, row) = (of.workers[0].clone(), of.layout[0].clone());
    let rate = |index: u32| figure(1e6 + f64::from(index));
    arm.workers = all
        .iter()
        .map(|&index| record::WorkerSummary { index, cpu: index, ops_per_second: rate(index), ..worker.clone() })
        .collect();
    let place = |&index: &u32| {
        let offset = u64::from(index) * 32;
        let (line, writers) = (offset / 64, vec![index]);
        record::LayoutRow { element: index, offset, line, writers, readers: all.clone(), ..row.clone() }
    };
    arm.layout = all.iter().map(place).collect();
    arm
}

#[test]
fn a_page_of_128_workers_and_20_variants_stays_small_and_says_what_it_leaves_out() {
    let _alone = common::alone();
    let bench = Bench::new(common::QUICK);
    let run = large(&read(&ran(&bench, &[])));
    let folder = reported(&run);
    let shown = page(folder.path());
    assert_whole(&shown);
    assert!(shown.contains("more are not drawn here"), "what is left out is counted");
    let Some(mut browser) = Browser::start() else { return skip("chromium is not installed (Debian's package)") };
    assert_opens(&mut browser, &folder.path().join("report.html"), "large");
    let elements = browser.value("document.querySelectorAll('*').length").as_u64().unwrap();
    assert!(elements < MOST_ELEMENTS, "{elements} elements");
    browser.open(&folder.path().join("report.html"), 1280, "light");
    let loaded = browser.value("performance.getEntriesByType('navigation')[0].loadEventEnd");
    // Reported, not judged: a busy machine is no fault of the page.
    eprintln!("128 workers, 20 variants: {} bytes, {elements} elements, loaded after {loaded} ms", shown.len());
}

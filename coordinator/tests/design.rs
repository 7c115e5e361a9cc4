//! docs/design.md against the crates as they are, and the files that all pages name against those that are there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace's folder").to_path_buf()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Folder and dependencies of each row of the page's table that says of a crate what it depends on.
fn rows(page: &str) -> Vec<(String, String)> {
    let (_, table) = page.split_once("| folder | what lives there | depends on |").expect("the table of folders");
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [folder, _, depends] = cells.as_slice() else { return None };
        Some((folder.trim_matches(['`', '/']).to_owned(), (*depends).to_owned()))
    };
    table.lines().skip(2).take_while(|line| line.starts_with('|')).filter_map(row).collect()
}

/// Names below `[dependencies]`.
fn dependencies(manifest: &str) -> BTreeSet<&str> {
    let (_, rest) = manifest.split_once("[dependencies]\n").unwrap_or_default();
    let section = rest.lines().take_while(|line| !line.starts_with('['));
    section.filter_map(|line| line.split(['.', ' ', '=']).next()).filter(|name| !name.is_empty()).collect()
}

#[test]
fn the_table_of_folders_says_what_each_crate_depends_on() {
    let top = top();
    let rows = rows(&read(&top.join("docs/design.md")));
    let crates: Vec<_> = rows.iter().filter(|(folder, _)| top.join(folder).join("Cargo.toml").exists()).collect();
    let name = |folder: &str| folder.rsplit('/').next().unwrap_or(folder).to_owned();
    let own: BTreeSet<String> = crates.iter().map(|(folder, _)| name(folder)).collect();
    assert!(own.contains("plan") && own.contains("bench"), "{own:?}");
    for (folder, depends) in crates.into_iter().filter(|(_, depends)| depends != "all") {
        let manifest = read(&top.join(folder).join("Cargo.toml"));
        let wanted: BTreeSet<&str> = dependencies(&manifest).into_iter().filter(|name| own.contains(*name)).collect();
        let told: BTreeSet<&str> = depends.split(", ").filter(|name| !name.is_empty()).collect();
        assert_eq!(told, wanted, "docs/design.md, {folder}");
    }
}

/// Every page below `folder`.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of this repository") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            pages(&path, found);
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// What stands between `open` and `close`, each time.
fn between<'a>(text: &'a str, open: &'a str, close: char) -> impl Iterator<Item = &'a str> {
    text.split(open).skip(1).filter_map(move |rest| rest.split_once(close)).map(|(inside, _)| inside)
}

/// What a page links to, as paths from the page's own folder.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let path = |link: &str| link.split('#').next().unwrap_or_default().len();
    between(text, "](", ')').map(move |link| &link[..path(link)]).filter(|path| !path.is_empty() && !path.contains(':'))
}

/// What a page names in backquotes below one of these folders at the top, as paths from there. What a reader fills in is
/// in capitals.
fn named<'a>(text: &'a str, folders: &'a BTreeSet<String>) -> impl Iterator<Item = &'a str> {
    let path = |name: &&str| {
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
        let filled_in =
            name.split(['/', '.']).any(|part| part.len() > 1 && part.chars().all(|c| c.is_ascii_uppercase()));
        plain && (!filled_in || name.ends_with("README.md"))
    };
    let below = |name: &&str| name.split_once('/').is_some_and(|(folder, _)| folders.contains(folder));
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).filter(path).filter(move |name| below(name))
}

#[test]
fn every_file_that_a_page_names_is_there() {
    let top = top();
    let mut all = Vec::new();
    pages(&top, &mut all);
    // Results are what runs left, and every machine has its own.
    let folders =
        ["coordinator", "worker", "shm-layout", "crates", "scenarios", "docs", "bench"].map(str::to_owned).into();
    let (mut seen, mut missing) = (0, Vec::new());
    for page in &all {
        let text = read(page);
        let beside = page.parent().expect("a page lies in a folder");
        let linked = links(&text).map(|link| beside.join(link));
        for path in linked.chain(named(&text, &folders).map(|name| top.join(name))) {
            seen += 1;
            if !path.exists() {
                missing.push(format!("{}: {}", page.display(), path.display()));
            }
        }
    }
    assert!(all.len() > 20 && seen > 200, "{} pages, {seen} names", all.len());
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

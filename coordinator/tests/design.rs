//! docs/design.md against the crates as they are.

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

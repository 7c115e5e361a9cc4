//! Huge pages: how many are free to be taken.

use crate::root::Root;
use plan::HUGE_PAGE_BYTES;

/// Where the kernel says how many huge pages of [`HUGE_PAGE_BYTES`] nobody has.
pub const FREE_HUGE_PAGES: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";

/// Huge pages of [`HUGE_PAGE_BYTES`] that can be taken: free ones, less those that are promised to somebody; `None`
/// where this kernel has no huge pages of that size, or does not say.
///
/// # References
/// `Documentation/admin-guide/mm/hugetlbpage.rst`.
pub fn free_huge_pages(root: &Root) -> Option<u64> {
    let folder = format!("sys/kernel/mm/hugepages/hugepages-{}kB", HUGE_PAGE_BYTES >> 10);
    let free: u64 = root.number(&format!("{folder}/free_hugepages"))?;
    let promised = root.number(&format!("{folder}/resv_hugepages")).unwrap_or(0);
    Some(free.saturating_sub(promised))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;

    #[test]
    fn free_pages_are_those_that_nobody_is_promised() {
        let folder = "sys/kernel/mm/hugepages/hugepages-2048kB";
        let fixture = Fixture::new().file(&format!("{folder}/free_hugepages"), "12\n");
        assert_eq!(free_huge_pages(&fixture.root()), Some(12));
        let fixture = fixture.file(&format!("{folder}/resv_hugepages"), "5\n");
        assert_eq!(free_huge_pages(&fixture.root()), Some(7));
        assert_eq!(free_huge_pages(&Fixture::new().root()), None);
    }
}

//! Huge pages: how many there are, and how many are free to be taken.

use crate::root::Root;
use plan::HUGE_PAGE_BYTES;

/// Where the kernel says how many huge pages of [`HUGE_PAGE_BYTES`] nobody has.
pub const FREE_HUGE_PAGES: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";

/// The kernel's pool of huge pages of [`HUGE_PAGE_BYTES`].
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct HugePages {
    /// Pages set apart, whoever has them: what `vm.nr_hugepages` sets.
    pub total: u64,
    /// Those of them that can be taken: free ones, less those that are promised to somebody.
    pub free: u64,
}

/// The pool of this machine; `None` where this kernel has no huge pages of that size, or does not say.
///
/// # References
/// `Documentation/admin-guide/mm/hugetlbpage.rst`.
pub fn huge_pages(root: &Root) -> Option<HugePages> {
    let folder = format!("sys/kernel/mm/hugepages/hugepages-{}kB", HUGE_PAGE_BYTES >> 10);
    let number = |name: &str| root.number::<u64>(&format!("{folder}/{name}"));
    let (total, free) = (number("nr_hugepages")?, number("free_hugepages")?);
    Some(HugePages { total, free: free.saturating_sub(number("resv_hugepages").unwrap_or(0)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;

    #[test]
    fn free_pages_are_those_that_nobody_is_promised() {
        let folder = "sys/kernel/mm/hugepages/hugepages-2048kB";
        let fixture = Fixture::new().file(&format!("{folder}/free_hugepages"), "12\n");
        let fixture = fixture.file(&format!("{folder}/nr_hugepages"), "20\n");
        assert_eq!(huge_pages(&fixture.root()), Some(HugePages { total: 20, free: 12 }));
        let fixture = fixture.file(&format!("{folder}/resv_hugepages"), "5\n");
        assert_eq!(huge_pages(&fixture.root()), Some(HugePages { total: 20, free: 7 }));
        assert_eq!(huge_pages(&Fixture::new().root()), None);
    }
}

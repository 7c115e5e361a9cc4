//! Names of the running kernel's functions, by address.

use crate::root::Root;

const FILE: &str = "proc/kallsyms";

/// The kernel's functions by address, ascending; those of modules among them.
#[derive(Clone, Debug)]
pub struct KernelSymbols {
    functions: Vec<(u64, String)>,
}

/// Why the kernel's addresses have no names here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SymbolsError {
    /// The kernel lists none, or the file may not be read.
    #[error("/proc/kallsyms lists no functions here: the kernel was built without, or a container hides them")]
    Absent,
    /// The list is there and its addresses are all 0.
    #[error("the kernel hides its addresses from this process in /proc/kallsyms (kernel.kptr_restrict)")]
    Hidden,
}

impl SymbolsError {
    /// The command that changes it; `None` where none does.
    pub fn cure(&self) -> Option<&'static str> {
        match self {
            SymbolsError::Absent => None,
            SymbolsError::Hidden => {
                Some("run as root, or sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1")
            }
        }
    }
}

impl KernelSymbols {
    /// Reads the whole list: some 200,000 lines, tens of milliseconds.
    ///
    /// # Errors
    /// [`SymbolsError`]: there is none, or its addresses are hidden; [`SymbolsError::cure`] says what helps.
    ///
    /// # References
    /// proc_kallsyms(5); `Documentation/admin-guide/sysctl/kernel.rst`, kptr_restrict.
    pub fn read(root: &Root) -> Result<KernelSymbols, SymbolsError> {
        let text = root.text(FILE).filter(|text| !text.is_empty()).ok_or(SymbolsError::Absent)?;
        let mut functions: Vec<(u64, String)> = text.lines().filter_map(function).collect();
        if functions.is_empty() {
            return Err(SymbolsError::Absent);
        }
        if functions.iter().all(|(address, _)| *address == 0) {
            return Err(SymbolsError::Hidden);
        }
        functions.sort();
        Ok(KernelSymbols { functions })
    }

    /// The function that holds the address; `None` below the first one.
    pub fn name(&self, address: u64) -> Option<&str> {
        let behind = self.functions.partition_point(|(start, _)| *start <= address);
        let (start, _) = self.functions.get(behind.checked_sub(1)?)?;
        // Of several names of one address the first is taken, whichever order the kernel had them in.
        let first = self.functions.partition_point(|(other, _)| other < start);
        self.functions.get(first).map(|(_, name)| name.as_str())
    }
}

/// `ffffffff81000000 T _stext`, and behind a tab the module. Data has no place in a stack.
fn function(line: &str) -> Option<(u64, String)> {
    let mut words = line.split_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let is_text = matches!(words.next()?, "t" | "T" | "w" | "W");
    is_text.then_some((address, words.next()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{KernelSymbols, SymbolsError};
    use crate::fixture::Fixture;

    fn read(text: &str) -> Result<KernelSymbols, SymbolsError> {
        KernelSymbols::read(&Fixture::new().file("proc/kallsyms", text).root())
    }

    #[test]
    fn an_address_belongs_to_the_function_that_begins_last_before_it() {
        let symbols = read(
            "ffffffff81000200 t flush_tlb_func\nffffffff81000100 T do_fallocate\nffffffff81000180 D some_data\n\
             ffffffffc0000000 t in_module\t[ext4]\nffffffff81000200 t alias\n",
        )
        .unwrap();
        let of = |address| symbols.name(address);
        assert_eq!(of(0xffff_ffff_8100_0100), Some("do_fallocate"));
        assert_eq!(of(0xffff_ffff_8100_01ff), Some("do_fallocate"), "data is no function");
        assert_eq!(of(0xffff_ffff_8100_0234), Some("alias"));
        assert_eq!((of(0xffff_ffff_c000_0010), of(0x1000)), (Some("in_module"), None));
    }

    #[test]
    fn a_hidden_list_is_told_from_none() {
        assert_eq!(read("0000000000000000 T _stext\n0000000000000000 t x\n").unwrap_err(), SymbolsError::Hidden);
        assert_eq!(read("").unwrap_err(), SymbolsError::Absent);
        let none = KernelSymbols::read(&Fixture::new().root()).unwrap_err();
        assert_eq!((none.cure(), SymbolsError::Hidden.cure().is_some()), (None, true));
    }
}

//! Which processor a CPU is, by the numbers that its maker gave it.

use crate::named_rows::row;
use crate::root::Root;
use plan::{CpuId, CpuIdentity};

/// Which processor `cpu` is; `None` where `/proc/cpuinfo` is hidden, does not list the CPU, or numbers it otherwise.
///
/// # References
/// proc_cpuinfo(5); `show_cpuinfo` in `arch/x86/kernel/cpu/proc.c` and `c_show` in `arch/arm64/kernel/cpuinfo.c`.
pub fn cpu_identity(root: &Root, cpu: CpuId) -> Option<CpuIdentity> {
    let cpuinfo = root.text("proc/cpuinfo")?;
    let number = cpu.0.to_string();
    let about = cpuinfo.split("\n\n").find(|block| row(block, "processor") == Some(number.as_str()))?;
    x86(about).or_else(|| arm(about))
}

fn x86(about: &str) -> Option<CpuIdentity> {
    Some(CpuIdentity::X86 {
        vendor: row(about, "vendor_id")?.to_owned(),
        family: row(about, "cpu family")?.parse().ok()?,
        model: row(about, "model")?.parse().ok()?,
    })
}

fn arm(about: &str) -> Option<CpuIdentity> {
    let hexadecimal = |key| u32::from_str_radix(row(about, key)?.strip_prefix("0x")?, 16).ok();
    Some(CpuIdentity::Arm { implementer: hexadecimal("CPU implementer")?, part: hexadecimal("CPU part")? })
}

#[cfg(test)]
mod tests {
    use super::cpu_identity;
    use crate::fixture::Fixture;
    use crate::root::Root;
    use plan::{CpuId, CpuIdentity};

    #[test]
    fn each_cpu_has_the_numbers_of_its_own_block() {
        let block = |cpu: u32, part: &str| {
            format!("processor\t: {cpu}\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\nCPU part\t: {part}\n\n")
        };
        let text = block(0, "0xd05") + &block(1, "0xd0a") + &block(11, "0xd49");
        let fixture = Fixture::new().file("proc/cpuinfo", &text);
        let of = |cpu| cpu_identity(&fixture.root(), CpuId(cpu));
        assert_eq!(of(1), Some(CpuIdentity::Arm { implementer: 0x41, part: 0xd0a }));
        assert_eq!(of(11), Some(CpuIdentity::Arm { implementer: 0x41, part: 0xd49 }));
        assert_eq!(of(2), None, "not listed");
    }

    #[test]
    fn x86_numbers_are_decimal_and_the_model_is_not_the_model_s_name() {
        let text = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: Some Xeon\n\
                    stepping\t: 7\n";
        let fixture = Fixture::new().file("proc/cpuinfo", text);
        let seen = cpu_identity(&fixture.root(), CpuId(0)).expect("an identity");
        let wanted = CpuIdentity::X86 { vendor: "GenuineIntel".to_owned(), family: 6, model: 85 };
        assert_eq!(seen, wanted);
        assert_eq!(seen.to_string(), "GenuineIntel family 6 model 0x55");
    }

    #[test]
    fn what_is_not_numbered_so_is_unknown() {
        assert_eq!(cpu_identity(&Fixture::new().root(), CpuId(0)), None);
        let other = Fixture::new().file("proc/cpuinfo", "processor : 0\nisa : rv64imafdc\n");
        assert_eq!(cpu_identity(&other.root(), CpuId(0)), None);
    }

    #[test]
    fn this_machine_s_cpus_have_numbers_where_its_architecture_has() {
        let root = Root::system();
        let Ok(topology) = crate::topology(&root) else {
            return testing::skip("this machine does not list its CPUs");
        };
        let seen: Vec<_> = topology.cpus.iter().filter_map(|cpu| cpu_identity(&root, cpu.id)).collect();
        if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) && root.text("proc/cpuinfo").is_some() {
            assert!(!seen.is_empty(), "no CPU of {topology:?} in /proc/cpuinfo");
        }
    }
}

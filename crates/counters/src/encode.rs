//! From an event as perf spells it to what perf_event_open is asked on one CPU of one machine.

mod terms;
#[cfg(test)]
mod tests;

use crate::event::Attr;
use crate::names::{self, CACHE, Generic, HARDWARE, RAW, TRACEPOINT};
use crate::refusal::{self, no_tracepoint};
use host::{Pmu, Root, TracepointError};
use plan::event::Term;
use plan::{CpuId, EventForm, EventSpec};
use record::Reading;

/// Position of the PMU's type in a generic event's `config` (PERF_PMU_TYPE_SHIFT in `linux/perf_event.h`). If it were
/// wrong, a hybrid machine would refuse the events or count other ones.
const PMU_TYPE_SHIFT: u32 = 32;

/// Why an event is not asked of the kernel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Unencoded {
    /// Its writer is wrong about this machine or about perf: no run should begin with it.
    Mistake {
        /// What is wrong.
        what: String,
        /// What to write instead.
        cure: String,
    },
    /// The machine lacks what it takes, or denies it: its reading for every worker on that CPU.
    Uncounted(Reading),
}

/// What perf_event_open is asked for `spec` by a process on `cpu`.
///
/// # Errors
/// [`Unencoded`], which tells a mistake from what this machine lacks.
///
/// # References
/// perf_event_open(2); perf-list(1); `tools/perf/Documentation/intel-hybrid.txt`.
pub(crate) fn encode(root: &Root, cpu: CpuId, spec: &EventSpec) -> Result<Attr, Unencoded> {
    let here = Here { root, cpu, cores: host::core_pmus(root), spec };
    let attr = match &spec.form {
        EventForm::Named(name) => here.named(name)?,
        EventForm::Raw(config) => numbers(here.raw_kind(), *config),
        EventForm::Terms { pmu, terms } => here.terms(pmu, terms)?,
        EventForm::Tracepoint { system, event } => here.tracepoint(system, event)?,
    };
    in_modes(attr, spec)
}

/// An event by its numbers, in both modes.
fn numbers(kind: u32, config: u64) -> Attr {
    Attr::user(kind, config).with_kernel()
}

/// Leaves out the mode that the modifier leaves out; without one both count, as with perf.
fn in_modes(attr: Attr, spec: &EventSpec) -> Result<Attr, Unencoded> {
    let (user, kernel) = (spec.modes.user, spec.modes.kernel);
    if user == kernel {
        return Ok(attr);
    }
    let text = &spec.text;
    // The kernel judges a tracepoint's mode by registers that some take from the caller and others from the kernel.
    if attr.kind == TRACEPOINT {
        return mistake(
            format!(
                "`{text}`: a tracepoint is passed in the kernel whoever caused it, so a mode would count by accident"
            ),
            "write it without :u and :k",
        );
    }
    if user && names::is_in_kernel_alone(Generic { kind: attr.kind, config: attr.config }) {
        return mistake(
            format!("`{text}` would always be 0: the kernel alone raises this event"),
            "write it without :u",
        );
    }
    Ok(Attr { exclude_user: !user, exclude_kernel: !kernel, ..attr })
}

/// One event to be encoded, for one CPU.
struct Here<'a> {
    root: &'a Root,
    cpu: CpuId,
    cores: Vec<Pmu>,
    spec: &'a EventSpec,
}

impl Here<'_> {
    fn core(&self) -> Option<&Pmu> {
        self.cores.iter().find(|pmu| pmu.serves(self.cpu))
    }

    /// The type number of this CPU's PMU where there is more than one kind of core.
    fn kind_among_many(&self) -> Option<u32> {
        self.core().filter(|_| self.cores.len() > 1).map(|pmu| pmu.kind)
    }

    fn raw_kind(&self) -> u32 {
        self.kind_among_many().unwrap_or(RAW)
    }

    /// perf's names first, then the events that the core's PMU names itself.
    fn named(&self, name: &str) -> Result<Attr, Unencoded> {
        if let Some(generic) = names::generic(name) {
            return Ok(self.generic(generic));
        }
        match self.core() {
            Some(pmu) if pmu.events.contains_key(name) => {
                terms::attr(self.spec, pmu, &[Term { name: name.to_owned(), value: None }])
            }
            _ => self.unknown_name(name),
        }
    }

    /// Without the number of its PMU the kernel picks one kind of core, and an event never runs on the other.
    fn generic(&self, generic: Generic) -> Attr {
        let by_core = matches!(generic.kind, HARDWARE | CACHE);
        let pmu = self.kind_among_many().filter(|_| by_core).map_or(0, |kind| u64::from(kind) << PMU_TYPE_SHIFT);
        numbers(generic.kind, generic.config | pmu)
    }

    /// Where no core has a PMU, a name that is not one of perf's may be one of some PMU's: a scenario that counts it
    /// elsewhere runs here too. A slip is one anywhere, and so is a cache event that perf does not have.
    fn unknown_name(&self, name: &str) -> Result<Attr, Unencoded> {
        let meant_perf_s = || names::is_of_a_cache(name) || plan::slip_of(name, &names::all()).is_some();
        if self.cores.is_empty() && !meant_perf_s() {
            let seen = format!("`{name}` is none of perf's names, so it may be one of a PMU's");
            return unsupported(refusal::no_pmu(&seen, host::hypervisor(self.root).as_ref()));
        }
        let mut known = names::all();
        let own = self.core().map_or(&[][..], |pmu| std::slice::from_ref(pmu));
        known.extend(own.iter().flat_map(|pmu| pmu.events.keys().cloned()));
        let near = match plan::nearest(name, &known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`perf list` shows the names that there are.".to_owned(),
        };
        let owner = match own {
            [] => "perf's names have none such, and this machine has no core PMU with names of its own",
            _ => "neither perf's names nor those of this machine's core PMU have one such",
        };
        mistake(
            format!("no event is called `{name}`: {owner}"),
            format!("{near} An event can be written by its numbers too: cpu/event=0xd1,umask=0x01/"),
        )
    }

    fn terms(&self, name: &str, terms: &[Term]) -> Result<Attr, Unencoded> {
        let pmu = match self.pmu(name)? {
            Named::Core(pmu) => {
                if let Some(generic) = generic_of_core(pmu, terms) {
                    return Ok(self.generic(generic));
                }
                pmu.clone()
            }
            Named::Other(pmu) => pmu,
        };
        terms::attr(self.spec, &pmu, terms)
    }

    /// The PMU that a user means by `name`: on every machine `cpu` is the one of this CPU's kind of core.
    fn pmu(&self, name: &str) -> Result<Named<'_>, Unencoded> {
        let exact = self.cores.iter().find(|pmu| pmu.name == name);
        if let Some(pmu) = exact.or(self.core().filter(|_| name == "cpu")) {
            return match pmu.serves(self.cpu) {
                true => Ok(Named::Core(pmu)),
                false => unsupported(format!(
                    "`{name}` is the PMU of another kind of core: it counts on CPUs {}, and this is CPU {}",
                    pmu.cpus.as_ref().map_or("unknown".to_owned(), host::format_cpu_list),
                    self.cpu.0
                )),
            };
        }
        let Some(pmu) = host::pmu(self.root, name) else { return unsupported(self.no_such_pmu(name)) };
        match pmu.cpumask {
            Some(_) => mistake(
                format!("`{name}` counts what whole CPUs do, and cannot tell one process from another"),
                format!(
                    "take an event of the core's PMU (cpu/…/), or count the whole machine beside the run: sudo perf \
                     stat -a -e {}",
                    self.spec.text
                ),
            ),
            None => Ok(Named::Other(pmu)),
        }
    }

    fn no_such_pmu(&self, name: &str) -> String {
        if host::is_core_pmu(name) {
            if self.cores.is_empty() {
                let seen = format!("no /sys/bus/event_source/devices/{name}");
                return refusal::no_pmu(&seen, host::hypervisor(self.root).as_ref());
            }
            let names: Vec<&str> = self.cores.iter().map(|pmu| pmu.name.as_str()).collect();
            return format!("this machine's cores have no PMU `{name}`; theirs are {}", names.join(", "));
        }
        let names = host::pmu_names(self.root);
        let near = plan::nearest(name, &names).map_or(String::new(), |near| format!("; the nearest is `{near}`"));
        format!("this machine has no PMU `{name}` (no /sys/bus/event_source/devices/{name}){near}")
    }

    fn tracepoint(&self, system: &str, event: &str) -> Result<Attr, Unencoded> {
        match host::tracepoint_id(self.root, system, event) {
            Ok(number) => Ok(numbers(TRACEPOINT, number)),
            Err(TracepointError::Missing(..)) => self.unknown_tracepoint(system, event),
            Err(error) => Err(Unencoded::Uncounted(no_tracepoint(&error))),
        }
    }

    fn unknown_tracepoint(&self, system: &str, event: &str) -> Result<Attr, Unencoded> {
        let systems = host::tracepoints(self.root, None);
        let (list, near) = match systems.iter().any(|known| known == system) {
            true => {
                let events = host::tracepoints(self.root, Some(system));
                (
                    format!("perf list '{system}:*'"),
                    plan::nearest(event, &events).map(|near| format!("{system}:{near}")),
                )
            }
            false => {
                let near = plan::nearest(system, &systems).map(|near| format!("{near}:{event}"));
                ("perf list tracepoint".to_owned(), near)
            }
        };
        let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
        mistake(
            format!("this kernel has no tracepoint `{system}:{event}`"),
            format!("{near}`{list}` shows those that it has"),
        )
    }
}

/// A PMU that a user named.
enum Named<'h> {
    Core(&'h Pmu),
    Other(Pmu),
}

/// `cpu/cycles/`: a generic event that the core's PMU does not list itself, alone between the slashes.
fn generic_of_core(pmu: &Pmu, terms: &[Term]) -> Option<Generic> {
    let [Term { name, value: None }] = terms else { return None };
    let is_own = pmu.events.contains_key(name) || pmu.formats.contains_key(name);
    names::generic(name).filter(|generic| !is_own && matches!(generic.kind, HARDWARE | CACHE))
}

fn mistake<T>(what: impl Into<String>, cure: impl Into<String>) -> Result<T, Unencoded> {
    Err(Unencoded::Mistake { what: what.into(), cure: cure.into() })
}

fn unsupported<T>(why: String) -> Result<T, Unencoded> {
    Err(Unencoded::Uncounted(Reading::Unsupported { why }))
}

//! From an event as perf spells it to what perf_event_open is asked on one CPU of one machine.

use crate::event::Attr;
use crate::names::{self, CACHE, Generic, HARDWARE, RAW, TRACEPOINT};
use host::{Format, NoTracepoint, Pmu, Root, Word};
use plan::event::Term;
use plan::{CpuId, EventForm, EventSpec};
use record::Reading;

/// Position of the PMU's type in a generic event's `config` (PERF_PMU_TYPE_SHIFT in `linux/perf_event.h`). If it were
/// wrong, a hybrid machine would refuse the events or count other ones.
const PMU_TYPE_SHIFT: u32 = 32;

/// Terms that every PMU takes: whole fields.
const WORDS: [(&str, Word); 3] = [("config", Word::Config), ("config1", Word::Config1), ("config2", Word::Config2)];

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
                self.of_pmu(pmu, &[Term { name: name.to_owned(), value: None }])
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

    fn unknown_name(&self, name: &str) -> Result<Attr, Unencoded> {
        let mut known = names::all();
        let own = self.core().map_or(&[][..], |pmu| std::slice::from_ref(pmu));
        known.extend(own.iter().flat_map(|pmu| pmu.events.keys().cloned()));
        let near = match plan::nearest(name, &known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`perf list` shows the names that there are".to_owned(),
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
        self.of_pmu(&pmu, terms)
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
        if name == "cpu" || name.starts_with("cpu_") || name.starts_with("armv") {
            let by = match host::hypervisor(self.root).as_deref() {
                _ if !self.cores.is_empty() => {
                    let names: Vec<&str> = self.cores.iter().map(|pmu| pmu.name.as_str()).collect();
                    return format!("this machine's cores have no PMU `{name}`; theirs are {}", names.join(", "));
                }
                None => String::new(),
                Some("unnamed") => ": its hypervisor passes none through".to_owned(),
                Some(hypervisor) => format!(": its hypervisor, {hypervisor}, passes none through"),
            };
            return format!("this machine exposes no hardware PMU (no /sys/bus/event_source/devices/{name}){by}");
        }
        let names = host::pmu_names(self.root);
        let near = plan::nearest(name, &names).map_or(String::new(), |near| format!("; the nearest is `{near}`"));
        format!("this machine has no PMU `{name}` (no /sys/bus/event_source/devices/{name}){near}")
    }

    /// The numbers of `terms`, where those that are written win over those of an event's name among them.
    fn of_pmu(&self, pmu: &Pmu, terms: &[Term]) -> Result<Attr, Unencoded> {
        let is_event = |term: &&Term| term.value.is_none() && pmu.events.contains_key(&term.name);
        let (events, written): (Vec<&Term>, Vec<&Term>) = terms.iter().partition(is_event);
        let of_event = match events.as_slice() {
            [] => Vec::new(),
            [event] => self.terms_of_event(pmu, &event.name)?,
            [first, second, ..] => {
                let what = format!("`{}` names two events, `{}` and `{}`", self.spec.text, first.name, second.name);
                return mistake(what, "write each as an event of its own");
            }
        };
        let mut attr = numbers(pmu.kind, 0);
        self.put_all(pmu, &of_event.iter().collect::<Vec<_>>(), &mut attr)?;
        self.put_all(pmu, &written, &mut attr)?;
        Ok(attr)
    }

    fn terms_of_event(&self, pmu: &Pmu, event: &str) -> Result<Vec<Term>, Unencoded> {
        let text = &pmu.events[event];
        match format!("{}/{text}/", pmu.name).parse() {
            Ok(EventSpec { form: EventForm::Terms { terms, .. }, .. }) => Ok(terms),
            _ => mistake(
                format!("the event `{event}` of `{}` is given by {text}, which wants values of yours", pmu.name),
                format!("write its terms out: {}/{text}/ with numbers for the question marks", pmu.name),
            ),
        }
    }

    /// Whole fields first, so that terms can change bits of them.
    fn put_all(&self, pmu: &Pmu, terms: &[&Term], attr: &mut Attr) -> Result<(), Unencoded> {
        for (at, term) in terms.iter().enumerate() {
            if terms[..at].iter().any(|earlier| earlier.name == term.name) {
                return mistake(format!("`{}` has the term `{}` twice", self.spec.text, term.name), "keep one");
            }
        }
        let whole = |term: &Term| WORDS.iter().find(|(name, _)| *name == term.name).map(|(_, word)| *word);
        for term in terms {
            if let Some(word) = whole(term) {
                *field(attr, word) = term.value.unwrap_or(1);
            }
        }
        terms.iter().filter(|term| whole(term).is_none()).try_for_each(|term| self.put(pmu, term, attr))
    }

    fn put(&self, pmu: &Pmu, term: &Term, attr: &mut Attr) -> Result<(), Unencoded> {
        let (text, name, value) = (&self.spec.text, &term.name, term.value.unwrap_or(1));
        let Some(format) = pmu.formats.get(name) else { return self.unknown_term(pmu, name) };
        let Format::Bits { word, ranges } = format else {
            let Format::Unknown(place) = format else { unreachable!("a format is known or not") };
            return mistake(
                format!("the term `{name}` of `{text}` lies at {place}, where the lab cannot write"),
                "leave it out: the lab sets config, config1 and config2",
            );
        };
        let width = format.width();
        if width < 64 && value >> width != 0 {
            let most = (1u64 << width) - 1;
            return mistake(
                format!("{value:#x} is too large for `{name}` in `{text}`, which has {width} bits on this machine"),
                format!("write {most:#x} at most"),
            );
        }
        let field = field(attr, *word);
        let places = ranges.iter().flat_map(|(first, last)| *first..=*last);
        for (bit, place) in places.enumerate() {
            *field = *field & !(1 << place) | (value >> bit & 1) << place;
        }
        Ok(())
    }

    fn unknown_term(&self, pmu: &Pmu, name: &str) -> Result<(), Unencoded> {
        if pmu.formats.is_empty() && pmu.events.is_empty() {
            return unsupported(format!(
                "where the term `{name}` goes is unknown: /sys/bus/event_source/devices/{0}/format is empty or hidden; \
                 {0}/config=0x…/ needs no format",
                pmu.name
            ));
        }
        let known: Vec<&str> = pmu.formats.keys().chain(pmu.events.keys()).map(String::as_str).collect();
        let near = plan::nearest(name, &known).map_or(String::new(), |near| format!("did you mean `{near}`? "));
        let formats: Vec<&str> = pmu.formats.keys().map(String::as_str).collect();
        mistake(
            format!("`{}` has no term `{name}`, written in `{}`", pmu.name, self.spec.text),
            format!("{near}its terms are {}, and config, config1, config2", formats.join(", ")),
        )
    }

    fn tracepoint(&self, system: &str, event: &str) -> Result<Attr, Unencoded> {
        let not = match host::tracepoint(self.root, system, event) {
            Ok(number) => return Ok(numbers(TRACEPOINT, number)),
            Err(not) => not,
        };
        let full = format!("{system}:{event}");
        let near = |word: &str, known: &[String]| match plan::nearest(word, known) {
            Some(near) => format!("did you mean `{near}`? "),
            None => String::new(),
        };
        match not {
            NoTracepoint::NoTracefs => unsupported(format!(
                "this kernel has no tracefs, or a container hides it, so the number of `{full}` is unknown"
            )),
            NoTracepoint::NotMounted => denied(
                format!("tracefs is not mounted, so the number of the tracepoint `{full}` is unknown"),
                "sudo mount -t tracefs tracefs /sys/kernel/tracing".to_owned(),
            ),
            NoTracepoint::Closed { folder } => denied(
                format!("{folder} may not be read, so the number of the tracepoint `{full}` is unknown"),
                format!("sudo mount -o remount,mode=755,gid=$(id -g) {folder}"),
            ),
            NoTracepoint::NoSystem(known) => mistake(
                format!("no tracepoint is called `{full}`: this kernel has no system `{system}`"),
                format!("{}`perf list tracepoint` shows them", near(system, &known)),
            ),
            NoTracepoint::NoEvent(known) => mistake(
                format!("no tracepoint is called `{full}`: the system `{system}` has {} others", known.len()),
                format!("{}`perf list {system}:*` shows them", near(event, &known)),
            ),
        }
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

fn field(attr: &mut Attr, word: Word) -> &mut u64 {
    match word {
        Word::Config => &mut attr.config,
        Word::Config1 => &mut attr.config1,
        Word::Config2 => &mut attr.config2,
    }
}

fn mistake<T>(what: impl Into<String>, cure: impl Into<String>) -> Result<T, Unencoded> {
    Err(Unencoded::Mistake { what: what.into(), cure: cure.into() })
}

fn unsupported<T>(why: String) -> Result<T, Unencoded> {
    Err(Unencoded::Uncounted(Reading::Unsupported { why }))
}

fn denied<T>(why: String, cure: String) -> Result<T, Unencoded> {
    Err(Unencoded::Uncounted(Reading::Denied { why, cure }))
}

//! What claims and predictions can name.

use plan::event::countable;
use plan::{Arm, Baseline, EventSpec, Role};

/// The arms, roles, locks and counters of a run, and why some arms are not among them.
pub(crate) struct ClaimScope {
    pub(super) arms: Vec<String>,
    pub(super) roles: Vec<String>,
    pub(super) locks: Vec<String>,
    /// Roles that end their process in every arm.
    pub(super) silent: Vec<String>,
    /// Names of counters: the lab's, and those of the user's events that look like names.
    pub(super) counters: Vec<String>,
    /// Names that look like a baseline's arm, and why there is no such arm.
    pub(super) absent: Vec<(String, String)>,
}

impl ClaimScope {
    /// `roles` and `locks` are all that the scenario declares.
    pub(crate) fn new(
        arms: &[Arm],
        (roles, locks): (&[String], &[String]),
        baselines: Option<&[Baseline]>,
        events: &[EventSpec],
    ) -> ClaimScope {
        let (declared, locks) = (roles, locks.to_vec());
        let mut names: Vec<String> = arms.iter().map(|arm| arm.name.clone()).collect();
        let mut absent = Vec::new();
        let left_out = |baseline| baselines.is_some_and(|chosen| !chosen.contains(&baseline));
        let mut add = |name: String, why: Option<&str>| match why {
            Some(why) => absent.push((name, why.to_owned())),
            None => names.push(name),
        };
        add("control".to_owned(), None);
        let roles = arms.first().map_or(&[][..], |arm| &arm.case.roles);
        for role in roles {
            let why = match () {
                () if left_out(Baseline::Solo) => Some("[measure] baselines leaves `solo` out"),
                () if role.waits() => Some("this role waits for another, so it cannot run alone"),
                () if role.dies() => Some("this role ends its own process, so it leaves no figures"),
                () => None,
            };
            add(format!("solo:{}", role.name), why);
        }
        for (index, variant) in arms.iter().map(|arm| arm.variant.as_str()).collect::<Vec<_>>().iter().enumerate() {
            let why = match () {
                () if left_out(Baseline::Unshared) => Some("[measure] baselines leaves `unshared` out"),
                () if roles.iter().any(Role::waits) => {
                    Some("one role waits for another here, so each needs the other's word")
                }
                () if arms[0].variant != *variant => Some("baselines are made of the first variant alone"),
                () => None,
            };
            if arms[..index].iter().all(|arm| arm.variant != *variant) {
                add(format!("unshared:{variant}"), why);
            }
        }
        // Which of the first variant's arms the references are made of is the machine's to say.
        let first_variant = || arms.iter().filter(|arm| arm.variant == arms[0].variant);
        let why = match () {
            () if left_out(Baseline::Plain) => Some("[measure] baselines leaves `plain` out"),
            () if !first_variant().any(|arm| arm.case.tries_first()) => {
                Some("no lock of the first variant is tried before it is taken, so there is nothing to price")
            }
            () => None,
        };
        add("plain".to_owned(), why);
        let dies = |name: &&String| {
            let of_name = |arm: &Arm| arm.case.roles.iter().any(|role| role.name == **name && role.dies());
            !arms.is_empty() && arms.iter().all(of_name)
        };
        let silent = declared.iter().filter(dies).cloned().collect();
        let mut counters: Vec<String> = Vec::new();
        for name in countable(events) {
            if !counters.iter().any(|known| known == name) {
                counters.push(name.to_owned());
            }
        }
        ClaimScope { arms: names, roles: declared.to_vec(), locks, silent, counters, absent }
    }
}

//! Lock word shares line: what workers touch without the lock, data or another lock, lies in the line of the lock's own
//! bytes, so that each disturbs the other.

use super::cost::{self, Cost};
use super::held::touches;
use super::lines::{element_names, meet};
use super::locks::{self, Finding, Site, measured};
use crate::view::{View, same_work};
use crate::words::{figure, list};
use plan::{BoundArm, CACHE_LINE_BYTES, Placed, Program};
use record::{ArmSummary, Diagnosis, Evidence};
use std::collections::BTreeSet;

/// Elements whose place is given one by one; a sentence's worth.
const MOST_ELEMENTS: usize = 8;

pub(super) fn find(view: &View, arms: &[ArmSummary]) -> Option<(f64, Diagnosis)> {
    let sites = locks::sites(view, arms);
    locks::report("lock_word_shares_line", sites.iter().filter_map(|site| finding(view, &sites, site)).collect())
}

/// The lock's own bytes in the layout.
fn place<'p>(program: &'p Program, lock: &str) -> Option<&'p Placed> {
    program.layout.placed.iter().find(|p| p.lock && p.field == lock)
}

/// What lies on the lock's lines, data or another lock, and some worker touches while it does not hold the lock.
fn beside<'p>(program: &'p Program, lock: &str) -> Vec<&'p Placed> {
    let Some(own) = place(program, lock) else { return Vec::new() };
    let touches = program.workers.iter().flat_map(|worker| touches(program, worker));
    let outside: BTreeSet<u64> = touches.filter(|t| !t.held.contains(lock)).map(|t| t.offset).collect();
    let hit = |p: &&Placed| outside.range(p.offset..p.offset + p.bytes.max(1)).next().is_some();
    program.layout.placed.iter().filter(|p| p.field != lock && meet(p, own, CACHE_LINE_BYTES)).filter(hit).collect()
}

/// The cost is measured or there is none: a shared line that nobody is the faster for parting is no harm.
fn finding<'a>(view: &View<'a>, sites: &[Site<'a>], site: &Site<'a>) -> Option<Finding<'a>> {
    let lock = &site.lock.lock;
    let elements = beside(site.program, lock);
    if elements.is_empty() {
        return None;
    }
    let parted = |other: &&Site| {
        other.name() != site.name()
            && other.lock.lock == *lock
            && other.kind() == site.kind()
            && same_work(other.arm, site.arm)
            && beside(other.program, lock).is_empty()
    };
    let cured: Vec<(&BoundArm, &Program)> = sites.iter().filter(parted).map(|o| (o.arm, o.program)).collect();
    let roles: BTreeSet<&str> = site.program.workers.iter().map(|w| w.role_name.as_str()).collect();
    let cost = cost::worst(roles.iter().map(|role| cost::against_cured(view, site.arm, role, &cured)))?;
    Some(told(site, &elements, cost))
}

fn told<'a>(site: &Site<'a>, elements: &[&Placed], cost: Cost) -> Finding<'a> {
    let (name, lock, Cost { role, against, ratio, gain }) = (site.name(), &site.lock.lock, cost);
    let names = element_names(site.program, elements);
    let layout = |what: &str, offset: u64| {
        let line = offset / CACHE_LINE_BYTES;
        Evidence::new(format!("offset of `{what}` (line {line})"), Some(offset as f64), "bytes", "layout")
    };
    let mut evidence = vec![
        measured(format!("`{role}` in `{name}` over `{against}`"), ratio.median, "times"),
        measured(format!("`{role}` in `{name}` over `{against}`, low end"), ratio.low, "times"),
    ];
    evidence.extend(place(site.program, lock).map(|own| layout(lock, own.offset)));
    evidence.extend(elements.iter().zip(&names).take(MOST_ELEMENTS).map(|(e, name)| layout(name, e.offset)));
    let mut fields: Vec<String> = elements.iter().map(|e| e.field.clone()).collect();
    fields.dedup();
    Finding {
        site: *site,
        cost: ratio.median,
        text: format!(
            "In `{name}`, {} {} in a cache line of `{lock}` itself and {} touched without holding it, so {} the other way \
             round: a pass of `{role}` takes {} times as long as in `{against}`{}.",
            list(&names[..names.len().min(MOST_ELEMENTS)]),
            if names.len() > 1 { "lie" } else { "lies" },
            if names.len() > 1 { "are" } else { "is" },
            match elements.iter().all(|e| e.lock) {
                true => "each attempt at the one lock takes the line from the other, and",
                false => "each attempt at the lock takes the line from the data and",
            },
            figure(ratio.median),
            if site.lock.contended == 0 { ", though nobody ever waits for the lock" } else { "" }
        ),
        fields,
        roles: vec![role],
        evidence,
        cure: format!(
            "Give the lock lines of its own{}: `placement = {{ pad = 64 }}` here, `alignas(64)` on the lock and on what \
             follows it in C and C++. What is touched under it alone may stay beside it.",
            locks::shown(gain.as_ref())
        ),
        gain,
    }
}

//! From gains with intervals to advice.

use record::Interval;

/// A gain whose interval reaches further than this from 1 tells nothing: neither that there is a difference nor that
/// there is none worth the name.
const TOO_WIDE: f64 = 0.5;

/// What an interval says of a gain, that is of the time of a pass before over the time after: above 1 is faster.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Faster by more than the noise.
    Faster,
    /// Slower by more than the noise.
    Slower,
    /// No difference larger than this, as a share.
    NoDifference(f64),
    /// Nothing: too few repetitions, or too much noise.
    Unresolved,
}

/// Judges a gain. `noise` is what the present layout differs from itself by, as a ratio minus 1: a smaller effect was
/// not seen. `None` of either is unresolved.
pub fn verdict(gain: Option<Interval>, noise: Option<f64>) -> Verdict {
    let (Some(gain), Some(noise)) = (gain, noise) else { return Verdict::Unresolved };
    let bound = gain.high.max(1.0 / gain.low) - 1.0;
    match () {
        () if gain.low > 1.0 && gain.median - 1.0 > noise => Verdict::Faster,
        () if gain.high < 1.0 && 1.0 / gain.median - 1.0 > noise => Verdict::Slower,
        () if bound > TOO_WIDE.max(noise) => Verdict::Unresolved,
        () => Verdict::NoDifference(bound.max(noise)),
    }
}

/// One layout held against another: gains of each role's median worker and of its slowest, and of all roles together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Versus {
    /// The geometric mean over the roles.
    pub overall: Option<Interval>,
    /// By role, in the scenario's order.
    pub roles: Vec<RoleVersus>,
}

/// One role's part.
#[derive(Clone, Debug, PartialEq)]
pub struct RoleVersus {
    /// Its name.
    pub role: String,
    /// The median worker's gain.
    pub gain: Option<Interval>,
    /// The slowest worker's.
    pub slowest: Option<Interval>,
}

/// What the present layout differs from itself by, as ratios minus 1: the control arm's intervals' farther ends from 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Noise {
    /// Of all roles together.
    pub overall: Option<f64>,
    /// Of each role: its median worker and its slowest, in the scenario's order.
    pub roles: Vec<(Option<f64>, Option<f64>)>,
}

impl Noise {
    /// From the control arm held against the present one.
    pub fn of(control: &Versus) -> Noise {
        let end = |gain: Option<Interval>| gain.map(|gain| gain.high.max(1.0 / gain.low) - 1.0);
        let roles = control.roles.iter().map(|role| (end(role.gain), end(role.slowest))).collect();
        Noise { overall: end(control.overall), roles }
    }
}

impl Versus {
    /// The verdict over all roles.
    pub fn verdict(&self, noise: &Noise) -> Verdict {
        verdict(self.overall, noise.overall)
    }

    /// Verdicts of a role: its median worker's and its slowest one's.
    pub fn of_role(&self, index: usize, noise: &Noise) -> (Verdict, Verdict) {
        let (median, slowest) = noise.roles.get(index).copied().unwrap_or_default();
        self.roles.get(index).map_or((Verdict::Unresolved, Verdict::Unresolved), |role| {
            (verdict(role.gain, median), verdict(role.slowest, slowest))
        })
    }

    /// The roles that are measured slower, by their median or their slowest worker.
    pub fn slower_roles<'a>(&'a self, noise: &Noise) -> Vec<&'a str> {
        let slower = |index: &usize| {
            let (median, slowest) = self.of_role(*index, noise);
            median == Verdict::Slower || slowest == Verdict::Slower
        };
        (0..self.roles.len()).filter(slower).map(|index| self.roles[index].role.as_str()).collect()
    }
}

/// A layout that was measured. The first is the present one.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Bytes of the struct.
    pub bytes: u64,
    /// Lines that a pass touches, summed over the roles.
    pub lines: f64,
    /// Whether it is a layout alone, and no other program.
    pub is_layout_only: bool,
    /// Against the present one.
    pub gain: Versus,
}

/// What follows.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// Index of the layout to have; 0 is to leave it.
    pub layout: usize,
    /// Why, in a sentence or two.
    pub reason: String,
    /// A layout that takes less room than the present one and is not slower, where nothing gains.
    pub smaller: Option<usize>,
    /// Changed programs that gain beyond the layout above, most first.
    pub code: Vec<usize>,
    /// False where noise hid the answer.
    pub conclusive: bool,
}

/// The layout that gains most without making any role slower; of those that no measurement tells from it, the smallest.
/// `versus(a, b)` holds entry `a` against entry `b`: above 1 where `a` is faster.
pub fn judge(entries: &[Entry], noise: &Noise, versus: impl Fn(usize, usize) -> Versus) -> Advice {
    let layouts: Vec<usize> = (1..entries.len()).filter(|&index| entries[index].is_layout_only).collect();
    let harmless = |index: usize| entries[index].gain.slower_roles(noise).is_empty();
    let gains = |index: usize| entries[index].gain.verdict(noise) == Verdict::Faster && harmless(index);
    let median = |index: usize| entries[index].gain.overall.map_or(0.0, |gain| gain.median);
    let best = layouts.iter().copied().filter(|&index| gains(index)).max_by(|&a, &b| median(a).total_cmp(&median(b)));
    let size = |index: usize| (entries[index].bytes, entries[index].lines);
    let smaller = |&a: &usize, &b: &usize| {
        let ((bytes, lines), (other_bytes, other_lines)) = (size(a), size(b));
        bytes.cmp(&other_bytes).then(lines.total_cmp(&other_lines)).then(median(b).total_cmp(&median(a)))
    };
    let not_told_apart = |index: usize, from: usize| {
        let versus = versus(index, from);
        index == from || (versus.verdict(noise) != Verdict::Slower && versus.slower_roles(noise).is_empty())
    };
    let chosen = best.map(|best| {
        let equals = layouts.iter().copied().filter(|&index| gains(index) && not_told_apart(index, best));
        equals.min_by(smaller).unwrap_or(best)
    });
    let layout = chosen.unwrap_or(0);
    let mut code: Vec<usize> = (1..entries.len())
        .filter(|&index| !entries[index].is_layout_only && versus(index, layout).verdict(noise) == Verdict::Faster)
        .collect();
    code.sort_by(|&a, &b| median(b).total_cmp(&median(a)));
    let spare = layouts.iter().copied().filter(|&index| {
        let gain = &entries[index].gain;
        let same = matches!(gain.verdict(noise), Verdict::NoDifference(_) | Verdict::Faster);
        entries[index].bytes < entries[0].bytes && same && harmless(index)
    });
    let resolved = |&index: &usize| entries[index].gain.verdict(noise) != Verdict::Unresolved;
    Advice {
        layout,
        reason: match (chosen, best) {
            (Some(chosen), Some(best)) => reason(entries, chosen, best),
            _ => left(entries, noise, &layouts),
        },
        smaller: if chosen.is_none() { spare.min_by(smaller) } else { None },
        code,
        conclusive: noise.overall.is_some() && (chosen.is_some() || layouts.iter().all(resolved)),
    }
}

fn reason(entries: &[Entry], chosen: usize, best: usize) -> String {
    let Entry { name, bytes, gain, .. } = &entries[chosen];
    let times = gain.overall.map_or(String::new(), |gain| shown(&gain));
    let more = *bytes as i64 - entries[0].bytes as i64;
    let memory = match more {
        0 => "in as many bytes".to_owned(),
        more if more > 0 => format!("for {more} bytes more"),
        less => format!("in {} bytes less", -less),
    };
    let smallest = match best == chosen {
        true => String::new(),
        false => format!(
            "; `{}` read {} in {} bytes, which the measurement does not tell from it",
            entries[best].name,
            entries[best].gain.overall.map_or(String::new(), |gain| shown(&gain)),
            entries[best].bytes
        ),
    };
    format!("`{name}` is {times} times as fast over all roles, {memory}, and no role is slower{smallest}")
}

fn left(entries: &[Entry], noise: &Noise, layouts: &[usize]) -> String {
    let Some(seen) = noise.overall else {
        return "the present layout was not measured well enough to hold anything against it".to_owned();
    };
    let unresolved: Vec<String> = layouts
        .iter()
        .filter(|&&index| entries[index].gain.verdict(noise) == Verdict::Unresolved)
        .map(|&index| format!("`{}`", entries[index].name))
        .collect();
    if !unresolved.is_empty() {
        return format!("noise hides whether {} would gain anything", unresolved.join(", "));
    }
    let harmful = |&&index: &&usize| {
        entries[index].gain.verdict(noise) == Verdict::Faster && !entries[index].gain.slower_roles(noise).is_empty()
    };
    let harm: Vec<String> = layouts
        .iter()
        .filter(harmful)
        .map(|&index| {
            let slower = entries[index].gain.slower_roles(noise).join(", ");
            format!("`{}` gains for some and makes {slower} slower", entries[index].name)
        })
        .collect();
    let tail = if harm.is_empty() { String::new() } else { format!("; {}", harm.join("; ")) };
    format!("no layout gains more than the noise ({:.1} %) for every role: leave it{tail}", seen * 100.0)
}

/// `3.12 (3.05–3.20)`.
fn shown(gain: &Interval) -> String {
    format!("{:.2} ({:.2}–{:.2})", gain.median, gain.low, gain.high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(median: f64) -> Option<Interval> {
        Some(Interval { median, low: median * 0.98, high: median * 1.02 })
    }

    fn entry(name: &str, bytes: u64, gains: [f64; 2]) -> Entry {
        let role = |(role, gain): (&str, f64)| RoleVersus {
            role: role.to_owned(),
            gain: interval(gain),
            slowest: interval(gain),
        };
        let roles = ["a", "b"].into_iter().zip(gains).map(role).collect();
        let gain = Versus { overall: interval((gains[0] * gains[1]).sqrt()), roles };
        Entry { name: name.to_owned(), bytes, lines: 1.0, is_layout_only: true, gain }
    }

    fn noise() -> Noise {
        Noise { overall: Some(0.03), roles: vec![(Some(0.03), Some(0.03)); 2] }
    }

    /// Judged as if the gains against the present one were all there is to know.
    fn judged(entries: &[Entry]) -> Advice {
        judge(entries, &noise(), |a, b| {
            let part = |a: Option<Interval>, b: Option<Interval>| interval(a.unwrap().median / b.unwrap().median);
            let (one, other) = (&entries[a].gain, &entries[b].gain);
            let roles = one.roles.iter().zip(&other.roles).map(|(x, y)| RoleVersus {
                role: x.role.clone(),
                gain: part(x.gain, y.gain),
                slowest: part(x.slowest, y.slowest),
            });
            Versus { overall: part(one.overall, other.overall), roles: roles.collect() }
        })
    }

    #[test]
    fn verdicts_need_the_interval_and_the_noise() {
        assert_eq!(verdict(interval(1.5), Some(0.1)), Verdict::Faster);
        assert_eq!(verdict(interval(0.5), Some(0.1)), Verdict::Slower);
        assert_eq!(verdict(interval(1.05), Some(0.1)), Verdict::NoDifference(0.1));
        assert_eq!(verdict(interval(1.5), None), Verdict::Unresolved);
        assert_eq!(verdict(None, Some(0.1)), Verdict::Unresolved);
        let wide = Interval { median: 1.2, low: 0.5, high: 3.0 };
        assert_eq!(verdict(Some(wide), Some(0.1)), Verdict::Unresolved);
    }

    #[test]
    fn of_equals_the_smallest_is_advised() {
        let advice = judged(&[
            entry("present", 16, [1.0, 1.0]),
            entry("padded-128", 256, [5.02, 5.02]),
            entry("padded-64", 128, [5.0, 5.0]),
            entry("packed", 16, [1.2, 1.2]),
        ]);
        assert_eq!((advice.layout, advice.conclusive, advice.smaller), (2, true, None));
        assert!(
            advice.reason.contains("112 bytes more") && advice.reason.contains("`padded-128`"),
            "{}",
            advice.reason
        );
    }

    #[test]
    fn what_makes_a_role_slower_is_not_advised() {
        let advice = judged(&[entry("present", 16, [1.0, 1.0]), entry("apart", 128, [9.0, 0.8])]);
        assert_eq!(advice.layout, 0);
        assert!(advice.reason.contains("makes b slower"), "{}", advice.reason);
    }

    #[test]
    fn where_nothing_gains_it_is_left_and_less_room_is_told() {
        let advice = judged(&[entry("present", 256, [1.0, 1.0]), entry("padded-64", 128, [1.0, 1.01])]);
        assert_eq!((advice.layout, advice.smaller, advice.conclusive), (0, Some(1), true));
        assert!(advice.reason.contains("leave it"));
    }

    #[test]
    fn a_changed_program_stands_beside_the_layout() {
        let code = Entry { is_layout_only: false, ..entry("sharded", 128, [20.0, 0.9]) };
        let advice = judged(&[entry("present", 8, [1.0, 1.0]), entry("padded-64", 64, [1.0, 1.0]), code]);
        assert_eq!((advice.layout, advice.code), (0, vec![2]));
    }

    #[test]
    fn noise_that_hides_the_answer_is_said() {
        let mut noisy = entry("padded-64", 64, [1.0, 1.0]);
        noisy.gain.overall = Some(Interval { median: 1.3, low: 0.6, high: 2.5 });
        let advice = judged(&[entry("present", 8, [1.0, 1.0]), noisy]);
        assert!(!advice.conclusive && advice.reason.contains("noise hides"), "{}", advice.reason);
    }
}

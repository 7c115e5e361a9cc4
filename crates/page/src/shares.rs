//! Who gets how much: a bar of pieces, one a worker.

use crate::limits::SHARES;
use figures::percent;
use maud::{Markup, html};
use record::{ArmSummary, WorkerSummary};

/// Least part of a bar that has room for a worker's number.
const ROOM: f64 = 0.08;

/// The workers of an arm's headline role, each with its part of what they do together; `None` where there is no rate of
/// two.
pub(crate) fn of(arm: &ArmSummary) -> Option<Vec<(u32, f64)>> {
    let own = |worker: &&WorkerSummary| worker.role == arm.headline_role;
    let rates: Vec<(u32, f64)> =
        arm.workers.iter().filter(own).filter_map(|w| Some((w.index, w.ops_per_second?.median))).collect();
    let all: f64 = rates.iter().map(|(_, rate)| rate).sum();
    let sound = rates.len() > 1 && all.is_finite() && all > 0.0;
    sound.then(|| rates.into_iter().map(|(index, rate)| (index, rate / all)).collect())
}

/// The bar. Its text says what its widths do.
pub(crate) fn bar(shares: &[(u32, f64)]) -> Markup {
    let shown = &shares[..shares.len().min(SHARES)];
    let rest: f64 = shares[shown.len()..].iter().map(|(_, share)| share).sum();
    let label = in_words(shares);
    html! {
        div .bar role="img" aria-label=(label) title=(label) {
            @for (worker, share) in shown { (piece(&worker.to_string(), *share)) }
            @if rest > 0.0 { (piece(&format!("{} more", shares.len() - shown.len()), rest)) }
        }
    }
}

fn piece(name: &str, share: f64) -> Markup {
    html! { span style=(format!("width:{:.2}%", share * 100.0)) { @if share >= ROOM { (name) } } }
}

/// `worker 0 51 %, worker 1 49 %`; of many the ends.
pub(crate) fn in_words(shares: &[(u32, f64)]) -> String {
    let one = |(worker, share): &(u32, f64)| format!("worker {worker} {}", percent(*share));
    if shares.len() <= 4 {
        return shares.iter().map(one).collect::<Vec<_>>().join(", ");
    }
    let by_share = |a: &&(u32, f64), b: &&(u32, f64)| a.1.total_cmp(&b.1);
    let (least, most) = (shares.iter().min_by(by_share), shares.iter().max_by(by_share));
    let said = |end: Option<&(u32, f64)>| end.map(one).unwrap_or_default();
    format!("of {}: least {}, most {}", shares.len(), said(least), said(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_says_what_its_widths_say() {
        let two = bar(&[(0, 0.75), (1, 0.25)]).into_string();
        assert!(two.contains("width:75.00%") && two.contains(">1</span>"), "{two}");
        assert!(two.contains("worker 0 75\u{a0}%, worker 1 25\u{a0}%"), "{two}");
        let many: Vec<(u32, f64)> = (0..128).map(|n| (n, if n == 5 { 0.1 } else { 0.9 / 127.0 })).collect();
        let bar = bar(&many).into_string();
        assert_eq!(bar.matches("<span").count(), SHARES + 1);
        assert!(bar.contains("96 more") && bar.contains("most worker 5 10\u{a0}%"), "{bar}");
    }
}

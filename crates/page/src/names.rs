//! The arms as the page names them: a letter and a name, the same everywhere, so that no colour has to be told apart.

use maud::{Markup, html};
use record::{ArmState, ArmSummary, Kind, Run};

/// Longest name in a chart, characters; a table has all of it.
const CHART_NAME: usize = 22;

/// The variants of a run, at each point of its sweep, in the run's order.
pub(crate) struct Arms<'a> {
    all: Vec<Arm<'a>>,
}

/// A variant with its letter.
#[derive(Copy, Clone)]
pub(crate) struct Arm<'a> {
    /// Its place among the variants.
    pub(crate) index: usize,
    /// Its figures.
    pub(crate) summary: &'a ArmSummary,
}

impl<'a> Arms<'a> {
    pub(crate) fn of(run: &'a Run) -> Arms<'a> {
        let variants = run.arms.iter().filter(|arm| arm.kind == Kind::Variant);
        Arms { all: variants.enumerate().map(|(index, summary)| Arm { index, summary }).collect() }
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[Arm<'a>] {
        &self.all
    }

    /// Those with figures.
    pub(crate) fn measured(&self) -> Vec<Arm<'a>> {
        self.all.iter().filter(|arm| arm.summary.state == ArmState::Measured).copied().collect()
    }
}

impl Arm<'_> {
    /// `A`, …, `Z`, `AA`, ….
    pub(crate) fn letter(&self) -> String {
        let digit = |n: usize| char::from(b'A' + (n % 26) as u8);
        match self.index {
            index @ 0..26 => digit(index).to_string(),
            index => format!("{}{}", digit(index / 26 - 1), digit(index)),
        }
    }

    /// Letter and name, for a table.
    pub(crate) fn label(&self) -> Markup {
        html! { span .arm { b .letter { (self.letter()) } " " (self.summary.name) } }
    }

    /// Letter and name, for a chart.
    pub(crate) fn in_chart(&self) -> String {
        format!("{} {}", self.letter(), clipped(&self.summary.name, CHART_NAME))
    }

    /// Why it has no figures.
    pub(crate) fn reason(&self) -> String {
        let why = self.summary.why.as_deref();
        match self.summary.state {
            ArmState::NotApplicable => format!("not applicable here: {}", why.unwrap_or("this host cannot place it")),
            _ => format!("unresolved: {}", why.unwrap_or("too few repetitions kept")),
        }
    }
}

/// `text` in at most `most` characters, its middle left out: the ends of `variant@workers=4` tell most.
pub(crate) fn clipped(text: &str, most: usize) -> String {
    let all: Vec<char> = text.chars().collect();
    if all.len() <= most {
        return text.to_owned();
    }
    let head = most.div_ceil(2);
    let tail = most - head - 1;
    let ends = all[..head].iter().chain(['…'].iter()).chain(&all[all.len() - tail..]);
    ends.collect()
}

/// `0, 2–5`: numbers in ascending order, runs of three and more drawn together.
pub(crate) fn ranges(numbers: impl IntoIterator<Item = u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let shown = runs.into_iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}–{last}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// `worker 0`, `workers 0–3`.
pub(crate) fn workers(numbers: &[u32]) -> String {
    let noun = if numbers.len() == 1 { "worker" } else { "workers" };
    format!("{noun} {}", ranges(numbers.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::{clipped, ranges};

    #[test]
    fn a_long_name_keeps_both_ends() {
        assert_eq!(clipped("together@rest=2us", 22), "together@rest=2us");
        assert_eq!(clipped("0123456789abcdefghij", 9), "01234…hij");
        assert_eq!(clipped("共有メモリの名前", 5), "共有メ…前");
    }

    #[test]
    fn neighbouring_numbers_are_drawn_together() {
        assert_eq!(ranges([0, 2, 3, 4, 5, 9]), "0, 2–5, 9");
        assert_eq!(ranges([0, 1]), "0, 1");
        assert_eq!(ranges([]), "");
    }
}

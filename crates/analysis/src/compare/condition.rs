//! The conditions of `compare --fail-if`: read, and judged on intervals.
//!
//! ```text
//! ARM [ROLE] slower|faster N%
//! ```
//! `ARM` is an arm as the rows name it, or a variant, which stands for all its points of a sweep; without `ROLE` every
//! role of it is meant. `slower 5%` speaks of a pass that takes more than 1.05 times as long as the base's; `faster 5%`
//! of a base's that takes more than 1.05 times as long. A condition *fails* where the whole interval says what it
//! speaks of, *passes* where the whole interval says otherwise, and is *undecided* else.

use crate::words::{interval, list};
use record::{Asks, CompareRow, Comparison, ConditionOutcome, ConditionRow, ConditionState, Verdict};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt;

/// One condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// As written.
    text: String,
    arm: String,
    role: Option<String>,
    direction: Direction,
    /// The ratio beyond which it fails.
    limit: f64,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Direction {
    Slower,
    Faster,
}

/// Why a condition cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionError {
    /// It does not read as one.
    Grammar {
        /// As written.
        text: String,
        /// What is wrong.
        why: String,
    },
    /// It speaks of nothing that was compared.
    Nothing {
        /// As written.
        text: String,
        /// The arm or role that was not compared.
        name: String,
        /// Those that were.
        known: Vec<String>,
    },
}

impl std::error::Error for ConditionError {}

impl fmt::Display for ConditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConditionError::Grammar { text, why } => {
                write!(f, "--fail-if '{text}': {why}; write ARM [ROLE] slower|faster N%, as in 'padded-64 slower 5%'")
            }
            ConditionError::Nothing { text, name, known } => {
                let near = plan::nearest(name, known).map(|near| format!("; did you mean `{near}`?"));
                let near = near.unwrap_or_default();
                write!(f, "--fail-if '{text}': `{name}` is not among what was compared: {}{near}", list(known))
            }
        }
    }
}

impl Condition {
    /// Reads a condition.
    ///
    /// # Errors
    /// [`ConditionError::Grammar`].
    pub fn parse(text: &str) -> Result<Condition, ConditionError> {
        let wrong = |why: &str| ConditionError::Grammar { text: text.to_owned(), why: why.to_owned() };
        let words: Vec<&str> = text.split_whitespace().collect();
        let at = words.iter().rposition(|word| matches!(*word, "slower" | "faster"));
        let at = at.ok_or_else(|| wrong("it says neither slower nor faster"))?;
        let direction = if words[at] == "slower" { Direction::Slower } else { Direction::Faster };
        let (arm, role) = match words[..at] {
            [arm] => (arm, None),
            [arm, role] => (arm, Some(role.to_owned())),
            [] => return Err(wrong("it names no arm")),
            _ => return Err(wrong("an arm and a role are all that may stand before the verdict")),
        };
        let percent = words[at + 1..].concat();
        let number = percent.strip_suffix('%').ok_or_else(|| wrong("it does not end in a percentage"))?;
        let number: f64 = number.parse().map_err(|_| wrong(&format!("`{number}` is no number")))?;
        if !(0.0..=1e6).contains(&number) {
            return Err(wrong("the percentage is not between 0 and 1000000"));
        }
        Ok(Condition { text: text.to_owned(), arm: arm.to_owned(), role, direction, limit: 1.0 + number / 100.0 })
    }

    fn is_about(&self, row: &CompareRow) -> bool {
        self.is_arm_of(row) && self.role.as_ref().is_none_or(|role| *role == row.role)
    }

    fn is_arm_of(&self, row: &CompareRow) -> bool {
        let variant = row.variant.split('@').next().unwrap_or_default();
        self.arm == row.variant || self.arm == variant
    }

    fn judged(&self, place: usize, row: &CompareRow) -> ConditionRow {
        let outcome = |state, why| ConditionRow { row: place, state, why };
        let Some(ratio) = row.ratio else {
            return outcome(ConditionState::Undecided, row.why.clone().unwrap_or_default());
        };
        let (near, far, verdict) = match self.direction {
            Direction::Slower => (ratio.low, ratio.high, Verdict::Slower),
            Direction::Faster => (1.0 / ratio.high, 1.0 / ratio.low, Verdict::Faster),
        };
        let seen = format!("{} times as long", interval(ratio));
        let state = match (near > self.limit, far <= self.limit) {
            (true, _) if row.verdict == verdict => ConditionState::Fails,
            (_, true) => ConditionState::Passes,
            _ => ConditionState::Undecided,
        };
        let doubt = row.why.as_ref().filter(|_| state == ConditionState::Undecided);
        outcome(state, doubt.map_or(seen.clone(), |why| format!("{seen}; {why}")))
    }
}

/// Holds the conditions against the rows. Where runs of one host, or variants of one run, were compared, rows that
/// compare hosts are left out.
///
/// # Errors
/// [`ConditionError::Nothing`]: a condition speaks of no row.
pub fn judge(comparison: &mut Comparison, conditions: &[Condition]) -> Result<(), ConditionError> {
    let asks = |row: &CompareRow| {
        comparison.pairs.iter().find(|pair| (pair.run, pair.base) == (row.run, row.base)).map(|pair| pair.asks)
    };
    let changes = comparison.rows.iter().any(|row| asks(row) != Some(Asks::Hosts));
    let rows: Vec<(usize, &CompareRow)> =
        comparison.rows.iter().enumerate().filter(|(_, row)| !changes || asks(row) != Some(Asks::Hosts)).collect();
    let outcomes: Result<Vec<ConditionOutcome>, ConditionError> =
        conditions.iter().map(|condition| outcome(condition, &rows)).collect();
    comparison.conditions = outcomes?;
    Ok(())
}

fn outcome(condition: &Condition, rows: &[(usize, &CompareRow)]) -> Result<ConditionOutcome, ConditionError> {
    let about = rows.iter().filter(|(_, row)| condition.is_about(row));
    let mut judged: Vec<ConditionRow> = about.map(|(place, row)| condition.judged(*place, row)).collect();
    if judged.is_empty() {
        let of_arm = rows.iter().filter(|(_, row)| condition.is_arm_of(row));
        let roles: BTreeSet<&str> = of_arm.map(|(_, row)| row.role.as_str()).collect();
        let arms: BTreeSet<&str> = rows.iter().map(|(_, row)| row.variant.as_str()).collect();
        let (name, known) = match &condition.role {
            Some(role) if !roles.is_empty() => (role, roles),
            _ => (&condition.arm, arms),
        };
        let known = known.into_iter().map(str::to_owned).collect();
        return Err(ConditionError::Nothing { text: condition.text.clone(), name: name.clone(), known });
    }
    judged.sort_by_key(|row| (Reverse(row.state), row.row));
    Ok(ConditionOutcome { condition: condition.text.clone(), state: judged[0].state, rows: judged })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_read_as_written() {
        let read = |text: &str| Condition::parse(text).unwrap();
        let one = read("padded-64 slower 5%");
        assert_eq!((one.arm.as_str(), one.role.as_deref(), one.direction), ("padded-64", None, Direction::Slower));
        assert!((one.limit - 1.05).abs() < 1e-12);
        let two = read("  packed@workers=2   reader  faster 12.5 % ");
        assert_eq!((two.arm.as_str(), two.role.as_deref()), ("packed@workers=2", Some("reader")));
        assert_eq!((two.direction, two.limit), (Direction::Faster, 1.125));
        assert_eq!(read("slower faster 0%").arm, "slower", "the last verdict is the verdict");
    }

    #[test]
    fn what_is_no_condition_says_why_and_how_to_write_one() {
        for (text, why) in [
            ("", "neither slower nor faster"),
            ("padded 5%", "neither slower nor faster"),
            ("slower 5%", "names no arm"),
            ("a b c slower 5%", "an arm and a role"),
            ("a slower", "does not end in a percentage"),
            ("a slower 5", "does not end in a percentage"),
            ("a slower five%", "`five` is no number"),
            ("a slower -5%", "not between"),
            ("a slower NaN%", "not between"),
        ] {
            let said = Condition::parse(text).unwrap_err().to_string();
            assert!(said.contains(why) && said.contains("ARM [ROLE] slower|faster N%"), "{text}: {said}");
        }
    }
}

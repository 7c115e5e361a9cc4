//! `[[expect]]`: claims on the outcome, and the conditions under which they are made. Predictions are written in the
//! same words, and are read here too.

mod scope;

pub(crate) use scope::ClaimScope;

use crate::context::{Context, Place};
use crate::document::{Node, Table, quoted};
use crate::refusal::Problem;
use crate::{read, words};
use plan::expect::{Against, Expect, HostFact, Metric, Quantity, Relation, Subject, Term, When};
use std::ops::Range;

/// What is read: what messages call it, and how it is written.
struct Grammar {
    name: &'static str,
    reads: &'static str,
}

const CLAIM: Grammar =
    Grammar { name: "claim", reads: "a claim reads: metric(arm) >= 3 * metric(arm), or metric(arm) <= 100" };

const PREDICTION: Grammar = Grammar {
    name: "prediction",
    reads: "a prediction reads: metric(arm) / metric(arm) = 5, or metric(arm) = 100; without `=` the number is asked for",
};

/// Reads every `[[expect]]`.
pub(crate) fn read(context: &mut Context, root: &Table, scope: &ClaimScope) -> Vec<Expect> {
    root.listed("expect").filter_map(|(node, table)| expect(context, node, table, scope)).collect()
}

fn expect(context: &mut Context, header: &Node, table: &Table, scope: &ClaimScope) -> Option<Expect> {
    let when = table.get("when").map(|node| when(context, node));
    let Some(node) = table.get("claim") else {
        let problem = Problem::at(&header.place, "an [[expect]] without a claim").label("`claim` is missing");
        context.refuse(problem.cure(CLAIM.reads));
        return None;
    };
    let text =
        read::string(context, node, "claim", "a claim in quotes", "\"ns_per_op(packed) >= 3 * ns_per_op(padded)\"")?;
    let mut reader = ClaimReader { context, node, text, at: 0, scope, grammar: &CLAIM };
    let left = reader.term()?;
    let op = reader.relation()?;
    let right = reader.right()?;
    reader.end()?;
    let when = match when {
        Some(when) => Some(when?),
        None => None,
    };
    Some(Expect { text: words::squeezed(text), left, op, right, when })
}

/// Reads `text`, the value of `node`, as a prediction: of what, and the number if it has one.
pub(crate) fn prediction(
    context: &mut Context,
    node: &Node,
    text: &str,
    scope: &ClaimScope,
) -> Option<(Quantity, Option<f64>)> {
    let mut reader = ClaimReader { context, node, text, at: 0, scope, grammar: &PREDICTION };
    let term = reader.term()?;
    let over = if reader.takes('/') { Some(reader.term()?) } else { None };
    let of = Quantity { text: words::squeezed(&text[..reader.at]), term, over };
    let predicted = if reader.takes('=') { Some(reader.number()?) } else { None };
    reader.end()?;
    Some((of, predicted))
}

/// What stands behind the arm's comma, and where.
type Suffix = (String, Range<usize>);

/// Reads a claim or a prediction from left to right.
struct ClaimReader<'a> {
    context: &'a mut Context,
    node: &'a Node,
    text: &'a str,
    at: usize,
    scope: &'a ClaimScope,
    grammar: &'static Grammar,
}

impl<'a> ClaimReader<'a> {
    fn place(&self, range: Range<usize>) -> Place {
        self.context.texts.within(self.node, self.text, range)
    }

    fn refuse<T>(&mut self, range: Range<usize>, what: String, label: &str, cure: &str) -> Option<T> {
        let problem = Problem::at(&self.place(range), what).label(label).cure(cure);
        self.context.refuse(problem);
        None
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Takes characters while `fits`.
    fn take_while(&mut self, fits: impl Fn(char) -> bool) -> (&'a str, Range<usize>) {
        self.skip_space();
        let rest = self.rest();
        let length = rest.find(|c| !fits(c)).unwrap_or(rest.len());
        let range = self.at..self.at + length;
        self.at = range.end;
        (&rest[..length], range)
    }

    /// `metric(arm[, role or lock])`.
    fn term(&mut self) -> Option<Term> {
        let (name, range) = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            let end = self.text.len();
            return self.refuse(
                range.start..end,
                format!("a {} needs a metric here", self.grammar.name),
                "expected a metric",
                self.grammar.reads,
            );
        }
        let metric = self.metric(name, range)?;
        self.skip_space();
        if !self.rest().starts_with('(') {
            let at = self.at;
            let what = format!("`{name}` lacks its arm");
            return self.refuse(at..at, what, "expected (arm)", &format!("write {name}(ARM)"));
        }
        let open = self.at + 1;
        let Some(length) = closing(&self.text[open..]) else {
            let end = self.text.len();
            return self.refuse(open - 1..end, "this bracket is not closed".to_owned(), "no `)`", self.grammar.reads);
        };
        self.at = open + length + 1;
        let (arm, of) = self.arm(open..open + length)?;
        let of = self.of(&metric, name, of, open..open + length)?;
        Some(Term { metric, arm, of })
    }

    fn metric(&mut self, name: &str, range: Range<usize>) -> Option<Metric> {
        let counters = &self.scope.counters;
        if let Some(metric) = name.parse().ok().filter(|metric| has_counter(metric, counters)) {
            return Some(metric);
        }
        let of_counters = counters.iter().flat_map(|name| [format!("{name}_per_op"), format!("{name}_per_second")]);
        let of = |subject| Metric::names(subject).collect::<Vec<_>>();
        let named = [of(Subject::Role), of(Subject::Lock), of(Subject::Layout)].concat();
        let known: Vec<String> = named.iter().map(|name| (*name).to_owned()).chain(of_counters).collect();
        let label = match words::nearest(name, &known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "not a metric".to_owned(),
        };
        let cure = format!(
            "the metrics are {}, and COUNTER_per_op or COUNTER_per_second with a counter of {}",
            named.join(", "),
            counters.join(", "),
        );
        self.refuse(range, format!("unknown metric {}", quoted(name)), &label, &cure)
    }

    /// The arm in the brackets, and what stands behind its last comma. Arms of sweeps have commas of their own, so
    /// the whole text is tried first.
    fn arm(&mut self, inside: Range<usize>) -> Option<(String, Option<Suffix>)> {
        let text = &self.text[inside.clone()];
        if let Some(arm) = self.known_arm(text) {
            return Some((arm, None));
        }
        if let Some((arm, of)) = text.rsplit_once(',')
            && (self.known_arm(arm).is_some() || !of.contains('='))
        {
            let start = inside.start + arm.len() + 1;
            let arm = self.resolve_arm(arm, inside.start..inside.start + arm.len())?;
            return Some((arm, Some((of.trim().to_owned(), trimmed(self.text, start..inside.end)))));
        }
        self.resolve_arm(text, inside).map(|arm| (arm, None))
    }

    fn known_arm(&self, text: &str) -> Option<String> {
        let bare = |text: &str| text.split_whitespace().collect::<String>();
        let wanted = bare(text);
        self.scope.arms.iter().find(|arm| bare(arm) == wanted).cloned()
    }

    fn resolve_arm(&mut self, text: &str, range: Range<usize>) -> Option<String> {
        if let Some(arm) = self.known_arm(text) {
            return Some(arm);
        }
        let range = trimmed(self.text, range);
        let name = text.trim();
        if let Some((_, why)) = self.scope.absent.iter().find(|(absent, _)| absent == name) {
            let why = why.clone();
            return self.refuse(range, format!("there will be no arm {}", quoted(name)), &why, &self.arms_cure());
        }
        let label = match words::nearest(name, &self.scope.arms) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "not an arm of this run".to_owned(),
        };
        let cure = self.arms_cure();
        self.refuse(range, format!("no arm is named {}", quoted(name)), &label, &cure)
    }

    fn arms_cure(&self) -> String {
        format!("the arms are {}", words::listed(&self.scope.arms))
    }

    /// The role or lock that the metric is of.
    fn of(&mut self, metric: &Metric, name: &str, of: Option<Suffix>, inside: Range<usize>) -> Option<Option<String>> {
        let of_lock = metric.subject() == Subject::Lock;
        let (what, known) = if of_lock { ("lock", &self.scope.locks) } else { ("role", &self.scope.roles) };
        let known = known.clone();
        let Some((of, range)) = of else {
            if !of_lock || known.len() == 1 {
                return Some(None);
            }
            let label = format!("this scenario has {}", words::counted(known.len() as u64, "lock"));
            let cure = match known.first() {
                None => "declare one with [lock.NAME], or claim something else".to_owned(),
                Some(first) => format!("name the lock behind a comma, as in {name}(ARM, {first})"),
            };
            return self.refuse(inside, format!("`{name}` is a metric of a lock"), &label, &cure);
        };
        if *metric == Metric::Bytes {
            let what = "`bytes` is of the whole layout".to_owned();
            return self.refuse(range, what, "no role or lock", "write bytes(ARM)");
        }
        if !of_lock && self.scope.silent.contains(&of) {
            let what = format!("role {} ends its own process", quoted(&of));
            let label = "its workers leave no figures";
            return self.refuse(range, what, label, "claim what becomes of the others");
        }
        if known.contains(&of) {
            return Some(Some(of));
        }
        let label = match words::nearest(&of, &known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("`{name}` is a metric of a {what}"),
        };
        let cure = format!("the {what}s are {}", words::listed(&known));
        self.refuse(range, format!("no {what} is named {}", quoted(&of)), &label, &cure)
    }

    fn relation(&mut self) -> Option<Relation> {
        let (text, range) = self.take_while(|c| "<>=!~≥≤".contains(c));
        match text.parse() {
            Ok(op) => Some(op),
            Err(_) => {
                let what = if text.is_empty() {
                    "this claim lacks its relation".to_owned()
                } else {
                    format!("unknown relation {}", quoted(text))
                };
                let cure = "it is one of >= <= > <; equality is never claimed, since figures are intervals";
                self.refuse(range, what, "expected a relation", cure)
            }
        }
    }

    /// A number, `number * term`, or a term.
    fn right(&mut self) -> Option<Against> {
        self.skip_space();
        if !self.rest().starts_with(|c: char| c.is_ascii_digit() || "-+.".contains(c)) {
            return self.term().map(|term| Against::Scaled { factor: 1.0, term });
        }
        let number = self.number()?;
        match self.takes('*') {
            false => Some(Against::Number(number)),
            true => self.term().map(|term| Against::Scaled { factor: number, term }),
        }
    }

    /// A number of 0 or more.
    fn number(&mut self) -> Option<f64> {
        let (text, range) = self.take_while(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
        if number.is_none() {
            let cure = "write a number of 0 or more, such as 3, 0.95 or 1e6, in the metric's own unit";
            return self.refuse(range, format!("{} is no number to compare with", quoted(text)), "not a number", cure);
        }
        number
    }

    /// Whether `sign` comes next; it is taken.
    fn takes(&mut self, sign: char) -> bool {
        self.skip_space();
        let comes = self.rest().starts_with(sign);
        self.at += if comes { sign.len_utf8() } else { 0 };
        comes
    }

    fn end(&mut self) -> Option<()> {
        self.skip_space();
        if self.rest().is_empty() {
            return Some(());
        }
        let (at, end) = (self.at, self.text.len());
        let Grammar { name, reads } = *self.grammar;
        let what = format!("unexpected {} behind the {name}", quoted(self.rest()));
        let cure = match name {
            "claim" => "write the factor first: 3 * metric(arm); one claim an [[expect]]",
            _ => reads,
        };
        self.refuse(at..end, what, &format!("the {name} ends before it"), cure)
    }
}

/// The range without white space at its ends.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let inside = &text[range.clone()];
    let start = range.start + (inside.len() - inside.trim_start().len());
    start..start + inside.trim().len()
}

/// The length of the text up to the bracket that closes one opened before it.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Whether a metric of a counter names one that there is.
fn has_counter(metric: &Metric, counters: &[String]) -> bool {
    match metric {
        Metric::CounterPerOp(counter) | Metric::CounterPerSecond(counter) => counters.contains(counter),
        _ => true,
    }
}

/// `llc_groups >= 2`.
fn when(context: &mut Context, node: &Node) -> Option<When> {
    let text = words::squeezed(read::string(context, node, "when", "a condition in quotes", "\"llc_groups >= 2\"")?);
    let is_op = |c: char| "<>=!".contains(c);
    let start = text.find(is_op).unwrap_or(text.len());
    let end = text[start..].find(|c| !is_op(c)).map_or(text.len(), |length| start + length);
    let (fact, op, number) = (text[..start].trim(), &text[start..end], text[end..].trim());
    let cure = "a condition reads: llc_groups >= 2, with cpus, llc_groups, sockets or nodes, of >= <= > <";
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    match (fact.parse().ok(), op.parse().ok(), number.parse::<u64>().ok().filter(|_| digits)) {
        (Some(fact), Some(op), Some(number)) => {
            return Some(When { text, fact, op, number });
        }
        (None, ..) => {
            let problem = Problem::at(&node.place, format!("unknown fact {} of the host", quoted(fact)));
            let problem = match words::nearest(fact, &HostFact::ALL.map(|(name, _)| name)) {
                Some(near) => problem.label(format!("did you mean `{near}`?")),
                None => problem.label("not a fact"),
            };
            context.refuse(problem.cure(cure));
        }
        (_, None, _) => {
            let problem = Problem::at(&node.place, "this condition lacks its relation").label("expected >= <= > or <");
            context.refuse(problem.cure(cure));
        }
        (.., None) => {
            let problem = Problem::at(&node.place, format!("{} is no number to compare with", quoted(number)));
            context.refuse(problem.label("expected a whole number").cure(cure));
        }
    }
    None
}

//! One step's text: `every 64 add hits[me]`.

mod memory;

use crate::context::{Context, Place};
use crate::document::{Node, Value, quoted};
use crate::quantity::parse_duration;
use crate::refusal::Problem;
use crate::scope::Memory;
use crate::{read, schema, words};
use plan::{Action, Count, Element, MemoryVerb, Nanos, Step, Target};
use std::ops::Range;

/// What stands behind a verb.
#[derive(Copy, Clone, Debug)]
pub enum Operand {
    /// A field's element, or several: `hits[all]`.
    Elements(fn(Target) -> Action),
    /// Exactly one element of a field.
    OneElement(fn(Target) -> Action),
    /// A lock to take, and perhaps `timeout` and a duration.
    Acquire(fn(usize, Option<Nanos>) -> Action),
    /// A lock to release.
    Release(fn(usize) -> Action),
    /// A region, and perhaps a size, `chunk` and a size, `pause` and a duration.
    Region(MemoryVerb),
    /// A duration within bounds.
    Duration((Nanos, Nanos), fn(Nanos) -> Action),
    /// Nothing.
    Nothing(fn() -> Action),
}

/// A verb of the steps.
#[derive(Copy, Clone, Debug)]
pub struct Verb {
    /// As written.
    pub name: &'static str,
    /// What stands behind it.
    pub operand: Operand,
}

const fn verb(name: &'static str, operand: Operand) -> Verb {
    Verb { name, operand }
}

/// Every verb, in the order in which messages list them.
pub const VERBS: &[Verb] = &[
    verb("load", Operand::Elements(Action::Load)),
    verb("store", Operand::Elements(Action::Store)),
    verb("bump", Operand::Elements(Action::Bump)),
    verb("add", Operand::Elements(Action::Add)),
    verb("swap", Operand::Elements(Action::Swap)),
    verb("cas", Operand::Elements(Action::Cas)),
    verb("post", Operand::OneElement(Action::Post)),
    verb("wait", Operand::OneElement(Action::Wait)),
    verb("flush", Operand::Elements(Action::Flush)),
    verb("lock", Operand::Acquire(|lock, timeout| Action::Lock { lock, shared: false, timeout })),
    verb("unlock", Operand::Release(|lock| Action::Unlock { lock, shared: false })),
    verb("rlock", Operand::Acquire(|lock, timeout| Action::Lock { lock, shared: true, timeout })),
    verb("runlock", Operand::Release(|lock| Action::Unlock { lock, shared: true })),
    verb("touch", Operand::Region(MemoryVerb::Touch)),
    verb("reuse", Operand::Region(MemoryVerb::Reuse)),
    verb("punch", Operand::Region(MemoryVerb::Punch)),
    verb("remove", Operand::Region(MemoryVerb::Remove)),
    verb("dontneed", Operand::Region(MemoryVerb::DontNeed)),
    verb("protect", Operand::Region(MemoryVerb::Protect)),
    verb("map", Operand::Region(MemoryVerb::Map)),
    verb("unmap", Operand::Region(MemoryVerb::Unmap)),
    verb("free", Operand::Region(MemoryVerb::Free)),
    verb("work", Operand::Duration(schema::WORK, Action::Work)),
    verb("sleep", Operand::Duration(schema::SLEEP, Action::Sleep)),
    verb("pause", Operand::Nothing(|| Action::Pause)),
    verb("fence", Operand::Nothing(|| Action::Fence)),
    verb("yield", Operand::Nothing(|| Action::Yield)),
    verb("die", Operand::Nothing(|| Action::Die)),
];

/// A word of a step, or a bracket.
struct Token {
    text: String,
    /// Where the text stands: in the step, or, for the value of a placeholder, where that is listed.
    place: Place,
    /// The placeholder's place in the step.
    fills: Option<Place>,
}

/// Reads one step, or refuses it.
pub(crate) fn read(context: &mut Context, node: &Node, memory: &Memory<'_>) -> Option<Step> {
    let text = read::string(context, node, "loop", "a step in quotes", "[\"add hits[me]\"]")?;
    let tokens = tokens(context, node, text, memory)?;
    let mut reader = StepReader { context, memory, node, tokens: &tokens, next: 0 };
    let every = reader.every()?;
    let action = reader.action()?;
    reader.end()?;
    Some(Step { every, action, text: canonical(&tokens) })
}

/// The step on one line, with single spaces and tight brackets.
fn canonical(tokens: &[Token]) -> String {
    let mut text = String::new();
    for token in tokens {
        let tight = text.is_empty() || text.ends_with('[') || matches!(token.text.as_str(), "[" | "]");
        if !tight {
            text.push(' ');
        }
        text.push_str(&token.text);
    }
    text
}

/// Words and brackets, and where each stands.
fn split(text: &str) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut open = false;
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        match c {
            _ if c.is_whitespace() => open = false,
            '[' | ']' => {
                ranges.push(at..end);
                open = false;
            }
            _ if open => ranges.last_mut().into_iter().for_each(|range| range.end = end),
            _ => {
                ranges.push(at..end);
                open = true;
            }
        }
    }
    ranges
}

fn tokens(context: &mut Context, node: &Node, text: &str, memory: &Memory<'_>) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    for range in split(text) {
        let place = context.texts.within(node, text, range.clone());
        let word = &text[range];
        tokens.push(match word.strip_prefix('$') {
            Some(name) => expansion(context, place, name, memory)?,
            None => Token { text: word.to_owned(), place, fills: None },
        });
    }
    Some(tokens)
}

/// The value of `$name`.
fn expansion(context: &mut Context, place: Place, name: &str, memory: &Memory<'_>) -> Option<Token> {
    if schema::BARE_PATHS.contains(&name) {
        // `outline` has refused the name.
        return None;
    }
    if name.is_empty() || read::placeholder_name(name) != name {
        let cure = "a placeholder is a `$` and a name of a-z, 0-9 and `_`, and a whole word: \"work $think\"";
        context.refuse(Problem::at(&place, format!("{} is no placeholder", quoted(&format!("${name}")))).cure(cure));
        return None;
    }
    let Some(node) = memory.placeholders.get(name) else {
        context.refuse(
            Problem::at(&place, format!("`${name}` has no value"))
                .label("a placeholder that nothing fills")
                .cure(format!("list its values under [sweep]: {name} = [\"10ns\", \"100ns\"]")),
        );
        return None;
    };
    let text = match &node.value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        _ => {
            read::wrong_type(context, node, name, "a string or a whole number", "[\"10ns\", \"100ns\"]");
            return None;
        }
    };
    if !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || "[]$".contains(c)) {
        return Some(Token { text, place: node.place.clone(), fills: Some(place) });
    }
    context.refuse(
        Problem::at(&node.place, format!("{} cannot stand for `${name}`", quoted(&text)))
            .label("not one plain word")
            .cure("a placeholder stands for one word of a step; sweep \"role.NAME.loop\" to change whole steps"),
    );
    None
}

/// Reads tokens from left to right.
struct StepReader<'a> {
    context: &'a mut Context,
    memory: &'a Memory<'a>,
    node: &'a Node,
    tokens: &'a [Token],
    next: usize,
}

impl<'a> StepReader<'a> {
    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.next)
    }

    fn take(&mut self) -> Option<&'a Token> {
        let token = self.peek();
        self.next += 1;
        token
    }

    /// The next token, or a refusal that says what is missing.
    fn expect(&mut self, missing: &str, cure: &str) -> Option<&'a Token> {
        let token = self.take();
        if token.is_none() {
            self.context.refuse(Problem::at(&self.node.place, format!("this step lacks {missing}")).cure(cure));
        }
        token
    }

    fn refuse<T>(&mut self, problem: Problem) -> Option<T> {
        let blamed = self.tokens.iter().find(|token| problem.is_at(&token.place));
        let problem = match blamed.and_then(|token| token.fills.as_ref()) {
            Some(place) => problem.also(place, "the step that it fills"),
            None => problem,
        };
        self.context.refuse(problem);
        None
    }

    fn every(&mut self) -> Option<u32> {
        const CURE: &str = "write \"every 64 add hits[me]\": the step runs in one pass of 64";
        if self.peek().is_none_or(|token| token.text != "every") {
            return Some(1);
        }
        self.take();
        let number = self.expect("the number behind `every`", CURE)?;
        let (low, high) = schema::EVERY;
        match number.text.parse::<u64>() {
            Ok(every) if (low..=high).contains(&every) => Some(every as u32),
            Ok(_) => {
                let what = format!("`every` cannot be {}", words::shown(&number.text));
                let problem = Problem::at(&number.place, what).label(format!("not within {low} to {high}"));
                self.refuse(problem.cure("write a number of passes; a larger one might not come up within a window"))
            }
            Err(_) => {
                let what = format!("{} is no number of passes", quoted(&number.text));
                self.refuse(Problem::at(&number.place, what).label("expected a whole number").cure(CURE))
            }
        }
    }

    fn action(&mut self) -> Option<Action> {
        let cure = format!("a step is a verb and its target, such as \"add hits[me]\"; the verbs are {}", verbs());
        let word = self.expect("a verb", &cure)?;
        let Some(verb) = VERBS.iter().find(|verb| verb.name == word.text) else {
            let names: Vec<&str> = VERBS.iter().map(|verb| verb.name).collect();
            let problem = Problem::at(&word.place, format!("unknown step {}", quoted(&word.text)));
            let problem = match words::nearest(&word.text, &names) {
                Some(near) => problem.label(format!("did you mean `{near}`?")),
                None => problem.label("not a verb"),
            };
            return self.refuse(problem.cure(format!("the verbs are {}", verbs())));
        };
        match verb.operand {
            Operand::Nothing(make) => Some(make()),
            Operand::Duration(bounds, make) => {
                let why = "a worker looks at the stop word between steps, so none may last longer than a second";
                self.duration(verb.name, &format!("{} 100ns", verb.name), bounds, why).map(make)
            }
            Operand::Acquire(make) => {
                let lock = self.lock(verb.name)?;
                Some(make(lock, self.timeout(verb.name)?))
            }
            Operand::Release(make) => self.lock(verb.name).map(make),
            Operand::Region(verb) => self.memory(verb).map(Action::Memory),
            Operand::Elements(make) => self.target(verb.name).map(|(target, _)| make(target)),
            Operand::OneElement(make) => {
                let (target, place) = self.target(verb.name)?;
                if matches!(target.element, Element::Any | Element::All) {
                    let what = format!("`{}` needs one element, always the same", verb.name);
                    let cure = "write `[me]`, `[next]` or a number: a wait must know which word it waits for";
                    return self.refuse(Problem::at(&place, what).label("stands for several").cure(cure));
                }
                Some(make(target))
            }
        }
    }

    /// `timeout 1ms` where it is written.
    fn timeout(&mut self, verb: &str) -> Option<Option<Nanos>> {
        const WORD: &str = "timeout";
        let Some(word) = self.peek() else { return Some(None) };
        if word.text == WORD {
            self.next += 1;
            let why =
                "a shorter wait would be over before the clock could tell, a longer one would hold up the run's end";
            return self.duration(WORD, &format!("{verb} NAME {WORD} 1ms"), schema::TIMEOUT, why).map(Some);
        }
        match words::nearest(&word.text, &[WORD]) {
            None => Some(None),
            Some(near) => {
                let problem = Problem::at(&word.place, format!("unexpected {} behind the lock", quoted(&word.text)));
                let problem = problem.label(format!("did you mean `{near}`?"));
                self.refuse(problem.cure(format!("write \"{verb} NAME {WORD} 1ms\", or nothing behind the lock")))
            }
        }
    }

    /// The duration of `what`: a verb, or `timeout`.
    fn duration(&mut self, what: &str, example: &str, (low, high): (Nanos, Nanos), why: &str) -> Option<Nanos> {
        let cure = format!("write \"{example}\"");
        let word = self.expect("a duration", &cure)?;
        match parse_duration(&word.text) {
            Ok(length) if (low..=high).contains(&length) => Some(length),
            Ok(length) => {
                let problem = Problem::at(&word.place, format!("`{what}` cannot take {length}"));
                self.refuse(problem.label(format!("not within {low} to {high}")).cure(why))
            }
            Err(why) => {
                let problem = Problem::at(&word.place, format!("{} is no duration", quoted(&word.text)));
                self.refuse(problem.label(why).cure(cure))
            }
        }
    }

    fn lock(&mut self, verb: &str) -> Option<usize> {
        let locks: Vec<&str> = self.memory.locks.iter().map(|lock| lock.name.as_str()).collect();
        let word = self.expect("a lock", &format!("write \"{verb} NAME\" with a lock declared as [lock.NAME]"))?;
        if let Some(index) = locks.iter().position(|lock| *lock == word.text) {
            return Some(index);
        }
        if let Some(other) = self.memory.kind_of(&word.text) {
            let problem = Problem::at(&word.place, format!("{} is {other}, not a lock", quoted(&word.text)));
            let cure = match other {
                "a field" => "declare a lock with [lock.NAME]; fields take `load`, `store`, `add` and the like",
                _ => "declare a lock with [lock.NAME]; regions take `touch`, `punch` and the like",
            };
            return self.refuse(problem.label(format!("`{verb}` needs a lock")).cure(cure));
        }
        let problem = Problem::at(&word.place, format!("no lock is named {}", quoted(&word.text)));
        let problem = match words::nearest(&word.text, &locks) {
            Some(near) => problem.label(format!("did you mean `{near}`?")),
            None => problem.label("not declared"),
        };
        self.refuse(problem.cure(format!("the locks are {}; declare one with [lock.NAME]", words::listed(&locks))))
    }

    fn region(&mut self, verb: &str) -> Option<usize> {
        let regions: Vec<&str> = self.memory.regions.iter().map(|region| region.name.as_str()).collect();
        let word =
            self.expect("a region", &format!("write \"{verb} NAME\" with a region declared as [region.NAME]"))?;
        if let Some(index) = regions.iter().position(|region| *region == word.text) {
            return Some(index);
        }
        if let Some(other) = self.memory.kind_of(&word.text) {
            let problem = Problem::at(&word.place, format!("{} is {other}, not a region", quoted(&word.text)));
            let cure = "declare a region, memory in pages, with [region.NAME]";
            return self.refuse(problem.label(format!("`{verb}` needs a region")).cure(cure));
        }
        let problem = Problem::at(&word.place, format!("no region is named {}", quoted(&word.text)));
        let problem = match words::nearest(&word.text, &regions) {
            Some(near) => problem.label(format!("did you mean `{near}`?")),
            None => problem.label("not declared"),
        };
        let cure = format!("the regions are {}; declare one with [region.NAME]", words::listed(&regions));
        self.refuse(problem.cure(cure))
    }

    /// A field and its element, and the element's place.
    fn target(&mut self, verb: &str) -> Option<(Target, Place)> {
        let word = self.expect("a target", &format!("write \"{verb} NAME\" with a field declared as [field.NAME]"))?;
        let Some(field) = self.memory.fields.iter().position(|field| field.name == word.text) else {
            return self.no_field(verb, word);
        };
        let count = self.memory.fields[field].count;
        let name = words::shown(&word.text);
        if self.peek().is_none_or(|token| token.text != "[") {
            if count == Count::One {
                return Some((Target { field, element: Element::Only }, word.place.clone()));
            }
            let cure = format!("write {name}[me], {name}[next], {name}[any], {name}[all] or {name}[0]");
            let problem = Problem::at(&word.place, format!("`{name}` is an array")).label("which element?");
            return self.refuse(problem.cure(cure));
        }
        self.take();
        let cure = format!("write {name}[me]");
        let inner = self.expect("an element in its brackets", &cure)?;
        if inner.text == "]" {
            let problem = Problem::at(&inner.place, "empty brackets").label("which element?");
            return self.refuse(problem.cure(cure));
        }
        if self.expect("the closing bracket", &cure)?.text != "]" {
            let problem = Problem::at(&inner.place, "the brackets do not close behind one element");
            return self.refuse(problem.cure(cure));
        }
        if count == Count::One {
            let problem = Problem::at(&inner.place, format!("`{name}` is a single value")).label("it has no elements");
            let cure = format!("write \"{verb} {name}\", or make it an array with each = \"worker\" or count = 4");
            return self.refuse(problem.cure(cure));
        }
        let element = self.element(inner, &name, count)?;
        Some((Target { field, element }, inner.place.clone()))
    }

    fn no_field<T>(&mut self, verb: &str, word: &Token) -> Option<T> {
        if let Some(other) = self.memory.kind_of(&word.text) {
            let name = words::shown(&word.text);
            let problem = Problem::at(&word.place, format!("`{name}` is {other}, not a field"));
            let cure = match other {
                "a lock" => format!("write \"lock {name}\" and later \"unlock {name}\", or declare a field"),
                _ => format!("write \"touch {name}\", or declare a field"),
            };
            return self.refuse(problem.label(format!("`{verb}` needs a field")).cure(cure));
        }
        let fields: Vec<&str> = self.memory.fields.iter().map(|field| field.name.as_str()).collect();
        let problem = Problem::at(&word.place, format!("no field is named {}", quoted(&word.text)));
        let problem = match words::nearest(&word.text, &fields) {
            Some(near) => problem.label(format!("did you mean `{near}`?")),
            None => problem.label("not declared"),
        };
        self.refuse(problem.cure(format!("the fields are {}; declare one with [field.NAME]", words::listed(&fields))))
    }

    fn element(&mut self, word: &Token, name: &str, count: Count) -> Option<Element> {
        let (workers, own) = (self.memory.workers, &self.memory.indices);
        let elements = count.elements(workers);
        match word.text.as_str() {
            "next" => return Some(Element::Next),
            "any" => return Some(Element::Any),
            "all" => return Some(Element::All),
            "me" if own.end <= elements => return Some(Element::Me),
            "me" => {
                let last = own.end.saturating_sub(1);
                let what = format!("worker {last} has no element in `{name}`");
                let label = format!("`{name}` has {}", words::counted(u64::from(elements), "element"));
                let cure = "write each = \"worker\" in place of count, or a larger count";
                return self.refuse(Problem::at(&word.place, what).label(label).cure(cure));
            }
            _ => {}
        }
        let digits = word.text.bytes().all(|byte| byte.is_ascii_digit());
        match word.text.parse::<u32>().ok().filter(|_| digits) {
            Some(index) if index < elements => Some(Element::At(index)),
            Some(index) => {
                let what = format!("`{name}` has no element {index}");
                let label = format!("it has {}, from 0", words::counted(u64::from(elements), "element"));
                let cure = match count {
                    Count::PerWorker => "elements are as many as workers of all roles: use a smaller number",
                    _ => "use a smaller number, or a larger count",
                };
                self.refuse(Problem::at(&word.place, what).label(label).cure(cure))
            }
            None => {
                let problem = Problem::at(&word.place, format!("unknown element {}", quoted(&word.text)));
                let problem = match words::nearest(&word.text, schema::ELEMENTS) {
                    Some(near) => problem.label(format!("did you mean `{near}`?")),
                    None => problem.label("not an element"),
                };
                self.refuse(problem.cure("an element is `me`, `next`, `any`, `all` or a number from 0"))
            }
        }
    }

    fn end(&mut self) -> Option<()> {
        let Some(word) = self.peek() else {
            return Some(());
        };
        let problem = Problem::at(&word.place, format!("unexpected {} behind the step", quoted(&word.text)));
        let cure = match (word.text.as_str(), self.next.checked_sub(1).and_then(|at| self.tokens.get(at))) {
            ("[", Some(target)) if self.memory.kind_of(&target.text).is_some() => {
                format!("only fields have elements: leave the brackets off `{}`", words::shown(&target.text))
            }
            ("timeout", _) => "only `lock` and `rlock` wait, so only they take `timeout`".to_owned(),
            _ => "write each step as a string of its own".to_owned(),
        };
        self.refuse(problem.label("the step ends before it").cure(cure))
    }
}

fn verbs() -> String {
    let names: Vec<&str> = VERBS.iter().map(|verb| verb.name).collect();
    names.join(", ")
}

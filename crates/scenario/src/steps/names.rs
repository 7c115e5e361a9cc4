//! What a step names: a lock, a region, or an element of a field.

use super::{StepReader, Token};
use crate::context::Place;
use crate::document::quoted;
use crate::refusal::Problem;
use crate::{schema, words};
use plan::{Count, Element, Target};

impl<'a> StepReader<'a> {
    /// The lock that comes next, by its index.
    pub(super) fn lock(&mut self, verb: &str) -> Option<usize> {
        let locks: Vec<&str> = self.scope.locks.iter().map(|lock| lock.name.as_str()).collect();
        self.declared(verb, "lock", &locks, |other| {
            let take = match other {
                "a field" => "fields take `load`, `store`, `add` and the like",
                _ => "regions take `touch`, `punch` and the like",
            };
            format!("declare a lock with [lock.NAME]; {take}")
        })
    }

    /// The region that comes next, by its index.
    pub(super) fn region(&mut self, verb: &str) -> Option<usize> {
        let regions: Vec<&str> = self.scope.regions.iter().map(|region| region.name.as_str()).collect();
        let cure = "declare a region, memory in pages, with [region.NAME]";
        self.declared(verb, "region", &regions, |_| cure.to_owned())
    }

    /// One of `names`, each of which is a `kind`. `instead` is the cure where the name is that of something else.
    fn declared(&mut self, verb: &str, kind: &str, names: &[&str], instead: impl Fn(&str) -> String) -> Option<usize> {
        let cure = format!("write \"{verb} NAME\" with a {kind} declared as [{kind}.NAME]");
        let word = self.expect(&format!("a {kind}"), &cure)?;
        match names.iter().position(|name| *name == word.text) {
            Some(index) => Some(index),
            None => self.undeclared(verb, word, kind, names, instead),
        }
    }

    fn undeclared<T>(
        &mut self,
        verb: &str,
        word: &Token,
        kind: &str,
        names: &[&str],
        instead: impl Fn(&str) -> String,
    ) -> Option<T> {
        let name = quoted(&word.text);
        if let Some(other) = self.scope.kind_of(&word.text) {
            let problem = Problem::at(&word.place, format!("{name} is {other}, not a {kind}"));
            return self.refuse(problem.label(format!("`{verb}` needs a {kind}")).cure(instead(other)));
        }
        let problem = Problem::at(&word.place, format!("no {kind} is named {name}"));
        let problem = match words::nearest(&word.text, names) {
            Some(near) => problem.label(format!("did you mean `{near}`?")),
            None => problem.label("not declared"),
        };
        let known = words::listed(names);
        self.refuse(problem.cure(format!("the {kind}s are {known}; declare one with [{kind}.NAME]")))
    }

    /// A field and its element, and the element's place.
    pub(super) fn target(&mut self, verb: &str) -> Option<(Target, Place)> {
        let word = self.expect("a target", &format!("write \"{verb} NAME\" with a field declared as [field.NAME]"))?;
        let Some(field) = self.scope.fields.iter().position(|field| field.name == word.text) else {
            let fields: Vec<&str> = self.scope.fields.iter().map(|field| field.name.as_str()).collect();
            let name = words::shown(&word.text);
            return self.undeclared(verb, word, "field", &fields, |other| match other {
                "a lock" => format!("write \"lock {name}\" and later \"unlock {name}\", or declare a field"),
                _ => format!("write \"touch {name}\", or declare a field"),
            });
        };
        let count = self.scope.fields[field].count;
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

    fn element(&mut self, word: &Token, name: &str, count: Count) -> Option<Element> {
        let (workers, own) = (self.scope.workers, &self.scope.indices);
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
}

//! From an instruction to the step of a scenario that does the same to memory.

use record::TouchingInstruction;

/// A step on a field.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verb {
    Load,
    Store,
    Bump,
    Add,
    Swap,
    Cas,
}

impl Verb {
    /// The step for an instruction: by what it is, and where that cannot be read, by what it was seen to do.
    pub(super) fn of(at: &TouchingInstruction) -> Verb {
        match at.text.as_deref().map(operation) {
            Some((_, name)) if name.starts_with("xchg") => Verb::Swap,
            Some((_, name)) if name.starts_with("cmpxchg") => Verb::Cas,
            Some((true, _)) => Verb::Add,
            _ if at.reads && at.writes => Verb::Bump,
            _ if at.writes => Verb::Store,
            _ => Verb::Load,
        }
    }

    /// As scenarios spell it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Verb::Load => "load",
            Verb::Store => "store",
            Verb::Bump => "bump",
            Verb::Add => "add",
            Verb::Swap => "swap",
            Verb::Cas => "cas",
        }
    }

    /// Whether it writes.
    pub(super) fn writes(self) -> bool {
        self != Verb::Load
    }
}

/// Whether it has the `lock` prefix, and its name without prefixes.
fn operation(text: &str) -> (bool, &str) {
    const PREFIXES: [&str; 7] = ["lock", "xacquire", "xrelease", "rep", "repe", "repne", "notrack"];
    let mut words = text.split_ascii_whitespace().peekable();
    let mut locked = false;
    while let Some(prefix) = words.next_if(|word| PREFIXES.contains(word)) {
        locked |= prefix == "lock";
    }
    (locked, words.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::Verb;
    use record::TouchingInstruction;

    fn at(text: Option<&str>, does: &str) -> TouchingInstruction {
        TouchingInstruction {
            pid: 1,
            address: 0x1000,
            text: text.map(str::to_owned),
            symbol: None,
            object: None,
            source: None,
            writes: does.contains('w'),
            reads: does.contains('r'),
            hits: 4,
            samples: 0,
            per_second: None,
            at_least: false,
            threads: 1,
            tids: vec![1],
        }
    }

    #[test]
    fn an_instruction_is_the_step_that_does_the_same() {
        let cases = [
            (Some("mov (%rdi),%rax"), "r", Verb::Load),
            (Some("mov %rax,(%rdi)"), "w", Verb::Store),
            (Some("addq $1,(%rdi)"), "rw", Verb::Bump),
            (Some("lock addq $1,(%rdi)"), "rw", Verb::Add),
            (Some("lock xadd %eax,(%rdi)"), "rw", Verb::Add),
            (Some("lock decl (%rdi)"), "rw", Verb::Add),
            (Some("xchg %eax,(%rdi)"), "rw", Verb::Swap),
            (Some("xacquire lock xchg %eax,(%rdi)"), "rw", Verb::Swap),
            (Some("lock cmpxchg %edx,(%rdi)"), "rw", Verb::Cas),
            (None, "rw", Verb::Bump),
            (None, "w", Verb::Store),
            (None, "r", Verb::Load),
        ];
        for (text, does, verb) in cases {
            assert_eq!(Verb::of(&at(text, does)), verb, "{text:?} {does}");
        }
    }
}

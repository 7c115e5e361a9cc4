//! A struct as `import` shows it: its declaration, and beside each member where it lies; lines, holes and members that
//! straddle lines are marked between.

use crate::report::style::{Style, Tone};
use crate::report::text::{columns, escaped, wrapped};
use plan::CACHE_LINE_BYTES;
use std::collections::BTreeMap;
use std::path::Path;
use structs::{Hole, Keyword, Kind, Language, Member, Struct, line_of};

/// Columns of what stands beside a member.
const BESIDE: usize = 33;
/// Columns that a declaration takes at the least where that stands beside it.
const LEAST_LEFT: usize = 24;
const INDENT: usize = 4;

/// The struct; with `expand` the members of nested structs, too. `written` is where its scenario went.
pub(crate) fn render(of: &Struct, expand: bool, written: Option<&Path>, style: &Style) -> String {
    let mut page = Page::new(of, expand, style);
    page.head();
    page.members(&of.members, 1, None);
    page.tail();
    if let Some(file) = written {
        let told = format!(
            "Written as a scenario to {0}: say there who writes and who reads which field, then `coordinator check \
             {0}` and `coordinator run {0}`.",
            file.display()
        );
        page.text.push('\n');
        page.prose(&told, "", Tone::Strong);
    }
    page.text
}

struct Page<'a> {
    of: &'a Struct,
    expand: bool,
    style: &'a Style,
    text: String,
    /// Holes that have not been shown, by the path that they are within and by offset.
    holes: BTreeMap<(Option<String>, u64), Hole>,
    line: u64,
}

impl<'a> Page<'a> {
    fn new(of: &'a Struct, expand: bool, style: &'a Style) -> Page<'a> {
        let holes = of.holes().into_iter().map(|hole| ((hole.within.clone(), hole.offset), hole)).collect();
        Page { of, expand, style, text: String::new(), holes, line: 0 }
    }

    fn head(&mut self) {
        if let Some(source) = &self.of.source {
            self.prose(&format!("{}: {source}", self.of.language.name()), "", Tone::Faint);
        }
        let begin = format!("{} {} {{", self.of.keyword.word(), escaped(&self.of.name));
        let beside = format!("{:>9} {:>8} {:>8}", "offset", "bytes", "line");
        self.beside(&begin, &beside);
    }

    fn tail(&mut self) {
        self.holes_before(u64::MAX, 1, None);
        if self.of.tail_padding() > 0 {
            self.remark(&format!("padding at the end: {} bytes", self.of.tail_padding()), 1, Tone::Caution);
        }
        for base in &self.of.virtual_bases {
            let told = format!("virtual base {}: {} bytes, where an object's table says", base.type_name, base.bytes);
            self.remark(&told, 1, Tone::Faint);
        }
        self.text.push_str("}\n");
        self.prose(&self.summary(), "", Tone::Strong);
        if !self.of.align.is_multiple_of(CACHE_LINE_BYTES) {
            let told = format!(
                "Lines are counted from the struct's begin, which need not lie at a multiple of {CACHE_LINE_BYTES}."
            );
            self.prose(&told, "", Tone::Faint);
        }
    }

    fn summary(&self) -> String {
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        let (bytes, lines, align) = (self.of.bytes, self.of.lines(), self.of.align);
        let mut told =
            format!("{bytes} bytes on {lines} line{} of {CACHE_LINE_BYTES}, aligned to {align}", plural(lines));
        if !self.of.align_declared {
            told.push_str(", as its members ask for");
        }
        let holes = self.of.holes();
        if !holes.is_empty() {
            let bytes: u64 = holes.iter().map(|hole| hole.bytes).sum();
            told.push_str(&format!("; {bytes} bytes in {} hole{}", holes.len(), plural(holes.len() as u64)));
        }
        if !self.holes.is_empty() {
            told.push_str(", those inside nested structs counted");
        }
        if self.of.packed {
            told.push_str("; packed");
        }
        told
    }

    /// Members of the struct, or of the one at the path `within`.
    fn members(&mut self, members: &[Member], depth: usize, within: Option<&str>) {
        let mut members: Vec<&Member> = members.iter().collect();
        // Rust puts members where they fit, and a base class may come before what lies in front of it.
        members.sort_by_key(|member| (member.offset, member.bits.map(|bits| bits.offset)));
        for member in members {
            self.holes_before(member.offset, depth, within);
            self.line_mark(member.offset, depth);
            self.member(member, depth, within);
        }
    }

    fn holes_before(&mut self, offset: u64, depth: usize, within: Option<&str>) {
        let within = within.map(str::to_owned);
        let due: Vec<_> = self.holes.range((within.clone(), 0)..(within, offset)).map(|(key, _)| key.clone()).collect();
        for hole in due.iter().filter_map(|key| self.holes.remove(key)).collect::<Vec<_>>() {
            self.remark(&format!("hole: {} bytes from {} on", hole.bytes, hole.offset), depth, Tone::Caution);
        }
    }

    fn line_mark(&mut self, offset: u64, depth: usize) {
        if line_of(offset) > self.line {
            self.line = line_of(offset);
            self.remark(
                &format!("──── line {}, from {} on", self.line, self.line * CACHE_LINE_BYTES),
                depth,
                Tone::Faint,
            );
        }
    }

    fn member(&mut self, member: &Member, depth: usize, within: Option<&str>) {
        let indent = " ".repeat(INDENT * depth);
        if self.opens(member) {
            self.beside(&format!("{indent}{} {{", self.opening(member)), &place(member));
            let path = match (within, member.name.as_str()) {
                // The holes of a base class are found with its heir's.
                (within, _) if matches!(member.kind, Kind::Base | Kind::Variant) => within.map(str::to_owned),
                (within, "") => within.map(str::to_owned),
                (Some(within), name) => Some(format!("{within}.{name}")),
                (None, name) => Some(name.to_owned()),
            };
            self.members(&member.members, depth + 1, path.as_deref());
            if path.as_deref() != within {
                self.holes_before(u64::MAX, depth + 1, path.as_deref());
            }
            self.prose(&format!("}}{}", self.closing(member)), &indent, Tone::Strong);
        } else {
            self.beside(&format!("{indent}{}", self.declaration(member)), &place(member));
        }
        if member.straddles() && member.bits.is_none() {
            let needed = member.bytes.div_ceil(CACHE_LINE_BYTES);
            let told = format!("straddles lines {} to {}, and needs {needed}", member.first_line(), member.last_line());
            self.remark(&told, depth, Tone::Caution);
        }
    }

    /// Whether its members are shown: they have no other place to be seen in, or it was asked for.
    fn opens(&self, member: &Member) -> bool {
        let only_here = match member.kind {
            Kind::Nested(_) => member.name.is_empty() || member.type_name.ends_with("{...}"),
            Kind::Base | Kind::Variant => true,
            _ => false,
        };
        !member.members.is_empty() && (only_here || self.expand)
    }

    fn opening(&self, member: &Member) -> String {
        match (&member.kind, self.of.language) {
            (Kind::Base, _) => format!("inherits {}", escaped(&member.type_name)),
            (Kind::Variant, _) => format!("variant {}", escaped(&member.name)),
            (Kind::Nested(_), Language::Rust) => format!("{}: {}", escaped(&member.name), escaped(&member.type_name)),
            _ => escaped(member.type_name.trim_end_matches(" {...}")),
        }
    }

    fn closing(&self, member: &Member) -> String {
        match (&member.kind, self.of.language) {
            (Kind::Nested(_), language) if language != Language::Rust && !member.name.is_empty() => {
                format!(" {};", escaped(&member.name))
            }
            (_, Language::Rust) => ",".to_owned(),
            _ => ";".to_owned(),
        }
    }

    fn declaration(&self, member: &Member) -> String {
        let (name, of) = (escaped(&member.name), escaped(&member.type_name));
        let bits = member.bits.map_or_else(String::new, |bits| format!(":{}", bits.count));
        match (&member.kind, self.of.language) {
            (Kind::Base, _) => format!("inherits {of};"),
            (Kind::Variant, _) => format!("variant {name},"),
            (_, Language::Rust) => format!("{name}: {of},"),
            (Kind::Array { element, .. }, _) => match of.strip_prefix(escaped(element).as_str()) {
                Some(dimensions) if dimensions.starts_with('[') => format!("{} {name}{dimensions};", escaped(element)),
                _ => format!("{of} {name};"),
            },
            (Kind::Pointer, _) if of.contains("*)(") => format!("{};", of.replacen("*)(", &format!("*{name})("), 1)),
            (Kind::Pointer, _) if of.ends_with('*') => format!("{of}{name};"),
            (Kind::Nested(Keyword::Struct | Keyword::Class | Keyword::Union), _) if name.is_empty() => format!("{of};"),
            _ => format!("{of} {name}{bits};"),
        }
    }

    /// A declaration, and where it lies beside it, or below it where there is no room.
    fn beside(&mut self, left: &str, right: &str) {
        let room = self.style.width().saturating_sub(BESIDE);
        if room < LEAST_LEFT {
            self.lines(left, self.style.width());
            let told = right.split_whitespace().collect::<Vec<_>>().join(" ");
            self.prose(&told, "        ", Tone::Faint);
            return;
        }
        let lines = self.broken(left, room - 1);
        let last = lines.len() - 1;
        for (index, line) in lines.into_iter().enumerate() {
            let gap = " ".repeat(room.saturating_sub(columns(&line)));
            self.text.push_str(&line);
            if index == last {
                self.text.push_str(&format!("{gap}{}", self.style.paint(Tone::Faint, &format!("/* {right} */"))));
            }
            self.text.push('\n');
        }
    }

    fn lines(&mut self, text: &str, width: usize) {
        for line in self.broken(text, width) {
            self.text.push_str(&line);
            self.text.push('\n');
        }
    }

    /// In lines of so many columns, each indented as the first; that in turn at most to half of them.
    fn broken(&self, text: &str, width: usize) -> Vec<String> {
        let indent = text.chars().take_while(|c| *c == ' ').count().min(width / 2);
        let (first, rest) = (" ".repeat(indent), " ".repeat((indent + 2).min(width / 2)));
        wrapped(text.trim_start(), width, &first, &rest)
    }

    fn remark(&mut self, told: &str, depth: usize, tone: Tone) {
        let indent = " ".repeat((INDENT * depth).min(self.style.width() / 2));
        self.prose(&format!("/* {told} */"), &indent, tone);
    }

    fn prose(&mut self, told: &str, indent: &str, tone: Tone) {
        for line in wrapped(told, self.style.width(), indent, &format!("{indent}  ")) {
            self.text.push_str(&self.style.paint(tone, &line));
            self.text.push('\n');
        }
    }
}

fn place(member: &Member) -> String {
    let offset = match member.bits {
        Some(bits) => format!("{}:{}", member.offset, bits.offset),
        None => member.offset.to_string(),
    };
    let line = match (member.first_line(), member.last_line()) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}-{last}"),
    };
    format!("{offset:>9} {:>8} {line:>8}", member.bytes)
}

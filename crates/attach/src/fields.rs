//! Names of the segment's words, where a struct was named.

use structs::{Kind, Member, Struct};

/// A struct that lies in the segment, once or as often as an array has it.
#[derive(Clone, Debug)]
pub struct Fields {
    of: Struct,
    base: u64,
    count: u64,
}

impl Fields {
    /// `count` structs one behind the other from offset `base` of the segment on, bytes.
    pub fn new(of: Struct, base: u64, count: u64) -> Fields {
        Fields { of, base, count }
    }

    /// The path of the field that holds the byte at that offset of the segment (`stats.hits`, `slots[3].head`; of one
    /// of several structs `[2].head`). `None` where none does.
    pub fn name(&self, offset: u64) -> Option<String> {
        let within = offset.checked_sub(self.base)?;
        let size = self.of.bytes.max(1);
        let index = within / size;
        if index >= self.count {
            return None;
        }
        let path = inside(&self.of.members, within % size)?;
        Some(if self.count > 1 { format!("[{index}].{path}") } else { path })
    }
}

/// The deepest member that holds the byte.
fn inside(members: &[Member], at: u64) -> Option<String> {
    let holds = |one: &&Member| (one.offset..one.offset.saturating_add(one.bytes)).contains(&at);
    members.iter().filter(holds).find_map(|member| {
        let own = match &member.kind {
            Kind::Array { element_bytes, .. } if *element_bytes > 0 => {
                format!("{}[{}]", member.name, (at - member.offset) / element_bytes)
            }
            _ => member.name.clone(),
        };
        let deeper = inside(&member.members, at);
        match (own.is_empty(), deeper) {
            (true, deeper) => deeper,
            (false, Some(deeper)) => Some(format!("{own}.{deeper}")),
            (false, None) => Some(own),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::Fields;
    use structs::{Keyword, Kind, Language, Member, Struct};

    fn member(name: &str, offset: u64, bytes: u64, kind: Kind, members: Vec<Member>) -> Member {
        Member { name: name.into(), type_name: "t".into(), offset, bytes, align: 8, bits: None, kind, members }
    }

    #[test]
    fn an_offset_is_a_path_an_element_or_nothing() {
        let inner = vec![member("a", 16, 8, Kind::Scalar, vec![]), member("b", 24, 8, Kind::Scalar, vec![])];
        let array = Kind::Array { element: "u32".into(), element_bytes: 4, count: 2 };
        let members = vec![
            member("hits", 0, 8, Kind::Scalar, vec![]),
            member("pair", 16, 16, Kind::Nested(Keyword::Struct), inner),
            member("slots", 32, 8, array, vec![]),
        ];
        let of = Struct {
            name: "s".into(),
            keyword: Keyword::Struct,
            language: Language::C,
            bytes: 40,
            align: 8,
            align_declared: false,
            packed: false,
            source: None,
            members,
            virtual_bases: vec![],
        };
        let one = Fields::new(of.clone(), 64, 1);
        let names = [64, 71, 88, 96, 100, 72, 63, 104].map(|offset| one.name(offset));
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(names[..5], ["hits", "hits", "pair.b", "slots[0]", "slots[1]"].map(some));
        assert_eq!(names[5..], [None, None, None], "padding, before it, behind it");
        assert_eq!(Fields::new(of, 0, 3).name(2 * 40 + 16), some("[2].pair.a"));
    }
}

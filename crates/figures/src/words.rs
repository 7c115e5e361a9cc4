//! Names of the JSON as a reader meets them.

/// A name with spaces for its underscores: `false sharing`, `TLB shootdown`.
pub fn in_words(name: &str) -> String {
    let words = name.split('_').map(|word| if word == "tlb" { "TLB" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::in_words;

    #[test]
    fn what_is_short_for_words_keeps_its_capitals() {
        assert_eq!(in_words("tlb_shootdown"), "TLB shootdown");
        assert_eq!(in_words("false_sharing"), "false sharing");
    }
}

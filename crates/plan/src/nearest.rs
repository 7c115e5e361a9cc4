//! What a typing error most likely meant.

/// The known name nearest to `word`, letters' case aside, where at most one letter in three differs: for the cure of an
/// error about an unknown name. `None` where none is near.
pub fn nearest<'a, S: AsRef<str>>(word: &str, known: &'a [S]) -> Option<&'a str> {
    const WORD_BYTES_MAX: usize = 200;
    if word.len() > WORD_BYTES_MAX {
        return None;
    }
    let lower = word.to_lowercase();
    let distance = |name: &str| strsim::damerau_levenshtein(&lower, &name.to_lowercase());
    let distances = known.iter().map(|name| (distance(name.as_ref()), name.as_ref()));
    let (distance, name) = distances.min_by_key(|(distance, _)| *distance)?;
    let allowed = (lower.chars().count().max(name.chars().count()) / 3).max(1);
    (distance <= allowed && distance < name.chars().count()).then_some(name)
}

/// The known name that `word` is but for one or two letters, letters' case aside: a slip of the pen, where
/// [`nearest`] may be a likeness of two long words. `None` where there is none.
pub fn slip_of<'a, S: AsRef<str>>(word: &str, known: &'a [S]) -> Option<&'a str> {
    const LETTERS_MAX: usize = 2;
    let near = nearest(word, known)?;
    let distance = strsim::damerau_levenshtein(&word.to_lowercase(), &near.to_lowercase());
    (distance <= LETTERS_MAX).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::{nearest, slip_of};

    #[test]
    fn two_letters_are_a_slip_and_three_are_another_word() {
        let known = ["cache-misses", "node-stores"];
        assert_eq!(slip_of("cahce-mises", &known), Some("cache-misses"));
        assert_eq!((nearest("node-scopes", &known), slip_of("cab-mises", &known)), (Some("node-stores"), None));
    }

    #[test]
    fn slips_are_mended_and_strangers_are_not() {
        let known = ["cache-misses", "cache-references", "L1-dcache-loads", "cs"];
        assert_eq!(nearest("cache-mises", &known), Some("cache-misses"));
        assert_eq!(nearest("l1-dcache-load", &known), Some("L1-dcache-loads"));
        assert_eq!((nearest("uops_issued", &known), nearest("ab", &known), nearest("x", &[""; 0])), (None, None, None));
    }
}

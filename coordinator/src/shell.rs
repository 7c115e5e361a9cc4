//! Words as a shell takes them.

/// The word as a POSIX shell reads it back, quoted only where it must be.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@+%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_that_a_shell_would_take_apart_are_quoted() {
        assert_eq!(quoted("scenarios/a.toml"), "scenarios/a.toml");
        assert_eq!(quoted("it's a"), r"'it'\''s a'");
        assert_eq!(quoted(""), "''");
    }
}

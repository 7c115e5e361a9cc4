//! What says whose a point is.

/// A name and a word.
pub(crate) type Tag = (String, String);

/// One of them.
pub(super) fn tag(name: &str, value: impl ToString) -> Tag {
    (name.to_owned(), value.to_string())
}

/// `tags` and what is more closely said.
pub(super) fn with<const N: usize>(tags: &[Tag], more: [Tag; N]) -> Vec<Tag> {
    tags.iter().cloned().chain(more).collect()
}

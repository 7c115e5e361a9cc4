//! Waits come to an end, one way or the other.

use std::process::{Command, Stdio};
use std::time::Duration;
use testing::{A_LONG_TIME, Lines, within};

#[test]
fn a_wait_gives_what_was_found() {
    let mut asked = 0;
    let found = within(A_LONG_TIME, "the third time", || {
        asked += 1;
        (asked == 3).then_some("found")
    });
    assert_eq!((found, asked), ("found", 3));
}

#[test]
#[should_panic(expected = "not within 5ms: what never is")]
fn a_wait_for_what_never_is_fails_and_says_for_what() {
    within(Duration::from_millis(5), "what never is", || None::<()>);
}

#[test]
fn lines_come_one_by_one_up_to_the_last() {
    let mut child = Command::new("printf").arg("one\\ntwo three").stdout(Stdio::piped()).spawn().unwrap();
    let lines = Lines::of(child.stdout.take().unwrap());
    assert_eq!(lines.hear().as_deref(), Some("one"));
    assert_eq!([lines.hear(), lines.hear()], [Some("two three".to_owned()), None]);
    assert_eq!(lines.heard().count(), 0);
    child.wait().unwrap();
}

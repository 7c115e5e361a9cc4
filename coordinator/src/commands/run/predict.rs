//! Predictions whose number was left out are asked for, before anything runs.

use crate::exit::CommandError;
use crate::report::text::escaped;
use plan::expect::{Prediction, Quantity};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;

/// How often a number is asked for before whoever answers is told how to write it.
const ASKED_MAX: usize = 3;

/// Longest answer: what is longer is no number that somebody typed.
const ANSWER_BYTES_MAX: usize = 200;

/// The predictions, each with its number: asked for on standard error and read from standard input where it was left
/// out.
///
/// # Errors
/// [`CommandError::Usage`] where no number is given; [`CommandError::Failed`] where standard input cannot be read.
pub(super) fn ask(read: Vec<(Quantity, Option<f64>)>) -> Result<Vec<Prediction>, CommandError> {
    if read.iter().all(|(_, number)| number.is_some()) {
        return Ok(read.into_iter().filter_map(|(of, number)| Some(Prediction { of, predicted: number? })).collect());
    }
    // Without a buffer: lines behind the answers are those of `--hold`.
    let mut input = File::from(std::io::stdin().as_fd().try_clone_to_owned().map_err(|error| unreadable(&error))?);
    let ask = |(of, number): (Quantity, Option<f64>)| -> Result<Prediction, CommandError> {
        let predicted = match number {
            Some(number) => number,
            None => answer(&of, &mut input, &mut std::io::stderr())?,
        };
        Ok(Prediction { of, predicted })
    };
    read.into_iter().map(ask).collect()
}

fn answer(of: &Quantity, input: &mut impl Read, out: &mut impl Write) -> Result<f64, CommandError> {
    for _ in 0..ASKED_MAX {
        // Nobody is left to ask where standard error is closed; the answer may stand in a file all the same.
        let _ = write!(out, "What do you predict? {} = ", escaped(&of.text)).and_then(|()| out.flush());
        let Some(line) = line(input)? else { break };
        match line.trim().parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => return Ok(number),
            _ => {
                let _ = writeln!(out, "write a number of 0 or more, such as 3, 0.95 or 1e6; a guess will do");
            }
        }
    }
    let text = escaped(&of.text);
    Err(CommandError::Usage(format!("--predict '{text}': no number was given: write --predict '{text} = 5'")))
}

/// The next line without its end; `None` at the end of the input.
fn line(input: &mut impl Read) -> Result<Option<String>, CommandError> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    loop {
        match input.read(&mut byte) {
            Ok(0) if line.is_empty() => return Ok(None),
            Ok(0) => break,
            Ok(_) if byte == [b'\n'] => break,
            Ok(_) if line.len() < ANSWER_BYTES_MAX => line.push(byte[0]),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(&error)),
        }
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

fn unreadable(error: &std::io::Error) -> CommandError {
    CommandError::Failed(format!(
        "standard input, where the number of a prediction is read, cannot be read: {error}; give it with --predict \
         'FIGURE = NUMBER'"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::expect::{Metric, Term};

    fn asked(input: &str) -> (Result<f64, String>, String, String) {
        let term = Term { metric: Metric::NsPerOp, arm: "packed".to_owned(), of: None };
        let of = Quantity { text: "ns_per_op(packed)".to_owned(), term, over: None };
        let (mut input, mut out) = (input.as_bytes(), Vec::new());
        let answer = answer(&of, &mut input, &mut out).map_err(|error| format!("{error:?}"));
        (answer, String::from_utf8(out).unwrap(), String::from_utf8(input.to_vec()).unwrap())
    }

    #[test]
    fn a_number_is_asked_for_and_what_stands_behind_its_line_is_left() {
        let (answer, said, rest) = asked(" 2.5 \nnext\n");
        assert_eq!((answer, rest.as_str()), (Ok(2.5), "next\n"));
        assert_eq!(said, "What do you predict? ns_per_op(packed) = ");
        assert_eq!(asked("7").0, Ok(7.0), "the end of the input ends a line");
    }

    #[test]
    fn what_is_no_number_is_asked_again_and_not_for_ever() {
        let (answer, said, _) = asked("five\n-1\n4\n");
        assert_eq!((answer, said.matches("write a number").count()), (Ok(4.0), 2));
        for input in ["", "\n\n\n4\n", "nan\ninf\nx\n"] {
            let answer = asked(input).0.unwrap_err();
            assert!(answer.contains("write --predict 'ns_per_op(packed) = 5'"), "{answer}");
        }
    }
}

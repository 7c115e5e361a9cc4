//! Whether there is colour, and how wide a line may be: decided once, before anything is printed.

use std::io::IsTerminal;

/// Columns where neither the terminal nor `COLUMNS` says otherwise.
const DEFAULT_WIDTH: usize = 80;

/// Narrowest width that is honoured: below it not even stacked blocks can be read, and lines may be longer.
const LEAST_WIDTH: usize = 24;

/// The `--color` flag.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum ColourChoice {
    /// Colour on a terminal that has it, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Colour, wherever the output goes.
    Always,
    /// No colour.
    Never,
}

/// Whether messages have colour where one answer must do for both outputs: as for a [`Style`], and with
/// [`ColourChoice::Auto`] only where standard output and standard error are both terminals.
pub(crate) fn colour(choice: ColourChoice) -> bool {
    let is_terminal = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
    has_colour(choice, &|name| std::env::var(name).ok(), is_terminal)
}

/// The flag over a non-empty `NO_COLOR` (no-color.org) over `TERM=dumb` over not being a terminal.
fn has_colour(choice: ColourChoice, variable: &impl Fn(&str) -> Option<String>, is_terminal: bool) -> bool {
    match choice {
        ColourChoice::Always => true,
        ColourChoice::Never => false,
        ColourChoice::Auto => {
            variable("NO_COLOR").is_none_or(|value| value.is_empty())
                && variable("TERM").as_deref() != Some("dumb")
                && is_terminal
        }
    }
}

/// What a piece of text is, for those who see colour. Its words say the same without it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// A heading.
    Strong,
    /// What can be skipped: rules, legends.
    Faint,
    /// As hoped.
    Good,
    /// To be looked at.
    Caution,
    /// Wrong.
    Bad,
}

/// How text is laid out on one output.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    colour: bool,
    width: usize,
}

impl Style {
    /// The style for standard output: `choice` over a non-empty `NO_COLOR` over `TERM=dumb` over not being a terminal;
    /// the width is `width`, else `COLUMNS`, else 80.
    pub(crate) fn for_stdout(choice: ColourChoice, width: Option<u16>) -> Style {
        Style::decide(choice, width, |name| std::env::var(name).ok(), std::io::stdout().is_terminal())
    }

    /// The same for standard error.
    pub(crate) fn for_stderr(choice: ColourChoice, width: Option<u16>) -> Style {
        Style::decide(choice, width, |name| std::env::var(name).ok(), std::io::stderr().is_terminal())
    }

    /// The decision on a given environment.
    pub(crate) fn decide(
        choice: ColourChoice,
        width: Option<u16>,
        variable: impl Fn(&str) -> Option<String>,
        is_terminal: bool,
    ) -> Style {
        let colour = has_colour(choice, &variable, is_terminal);
        let columns = || variable("COLUMNS").and_then(|text| text.parse::<u16>().ok());
        let width = width.or_else(columns).filter(|&w| w > 0).map_or(DEFAULT_WIDTH, usize::from);
        Style { colour, width: width.max(LEAST_WIDTH) }
    }

    /// No colour, so many columns.
    #[cfg(test)]
    pub(crate) fn plain(width: usize) -> Style {
        Style { colour: false, width }
    }

    /// Whether there is colour.
    pub(crate) fn has_colour(&self) -> bool {
        self.colour
    }

    /// Columns a line may take.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// `text` in the colour of `tone`, or as it is without colour. `text` must not hold escapes itself.
    pub(crate) fn paint(&self, tone: Tone, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Strong => "1",
            Tone::Faint => "2",
            Tone::Good => "32",
            Tone::Caution => "33",
            Tone::Bad => "1;31",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::{ColourChoice, Style, Tone};

    fn coloured(choice: ColourChoice, environment: &[(&str, &str)], is_terminal: bool) -> bool {
        decide(choice, None, environment, is_terminal).colour
    }

    fn decide(choice: ColourChoice, width: Option<u16>, environment: &[(&str, &str)], is_terminal: bool) -> Style {
        let variable =
            |name: &str| environment.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Style::decide(choice, width, variable, is_terminal)
    }

    #[test]
    fn the_flag_outranks_no_color_which_outranks_the_terminal() {
        assert!(coloured(ColourChoice::Auto, &[], true));
        assert!(!coloured(ColourChoice::Auto, &[], false));
        assert!(!coloured(ColourChoice::Auto, &[("NO_COLOR", "1")], true));
        assert!(coloured(ColourChoice::Auto, &[("NO_COLOR", "")], true), "an empty NO_COLOR says nothing");
        assert!(!coloured(ColourChoice::Auto, &[("TERM", "dumb")], true));
        assert!(coloured(ColourChoice::Auto, &[("TERM", "xterm")], true));
        assert!(coloured(ColourChoice::Always, &[("NO_COLOR", "1"), ("TERM", "dumb")], false));
        assert!(!coloured(ColourChoice::Never, &[], true));
    }

    #[test]
    fn the_width_is_the_given_one_then_columns_then_eighty() {
        let width = |given, environment: &[(&str, &str)]| decide(ColourChoice::Auto, given, environment, true).width();
        assert_eq!(width(Some(100), &[("COLUMNS", "60")]), 100);
        assert_eq!(width(None, &[("COLUMNS", "60")]), 60);
        assert_eq!(width(None, &[("COLUMNS", "wide")]), 80);
        assert_eq!(width(None, &[]), 80);
        assert_eq!(width(Some(0), &[]), 80, "a terminal that does not know its size says 0");
        assert_eq!(width(Some(3), &[]), super::LEAST_WIDTH);
    }

    #[test]
    fn paint_adds_nothing_without_colour() {
        assert_eq!(Style::plain(80).paint(Tone::Bad, "fails"), "fails");
        let colourful = Style { colour: true, width: 80 };
        assert_eq!(colourful.paint(Tone::Bad, "fails"), "\u{1b}[1;31mfails\u{1b}[0m");
    }
}

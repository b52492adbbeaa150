//! What tones look like on a terminal.

use anstyle::{AnsiColor, Style};
use landfall_results::view::Tone;

/// What is read first.
pub const STRONG: Style = Style::new().bold();
/// What is read last.
pub const FAINT: Style = Style::new().dimmed();
/// What may be relied upon.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// What must not be.
pub const BAD: Style = AnsiColor::Red.on_default();
/// What is not known.
pub const DOUBT: Style = AnsiColor::Yellow.on_default();

/// `text` in a style.
pub fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// `text` in the style of a tone.
pub(crate) fn toned(tone: Tone, text: &str) -> String {
    match tone {
        Tone::Plain => text.to_owned(),
        Tone::Strong => styled(STRONG, text),
        Tone::Good => styled(GOOD, text),
        Tone::Bad => styled(BAD, text),
        Tone::Doubt => styled(DOUBT, text),
        Tone::Faint => styled(FAINT, text),
    }
}

//! Colours, and whether to use them.

use std::io::Write;

use anstyle::{AnsiColor, Style};

pub const STRONG: Style = Style::new().bold();
pub const FAINT: Style = Style::new().dimmed();
pub const GOOD: Style = AnsiColor::Green.on_default();
pub const BAD: Style = AnsiColor::Red.on_default();
pub const DOUBT: Style = AnsiColor::Yellow.on_default();

/// Colours are used on terminals, unless the user or NO_COLOR says otherwise.
pub fn set_color(never: bool) {
    if never {
        anstream::ColorChoice::Never.write_global();
    }
}

/// `text` in a style.
pub fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Says on standard error what went wrong.
pub fn complain(text: &str) {
    let label = styled(BAD.bold(), "landfall:");
    // If standard error is gone there is nobody to tell.
    let _ = writeln!(anstream::stderr(), "{label} {text}");
}

/// Says on standard error what is being done.
pub fn remark(text: &str) {
    // If standard error is gone there is nobody to tell.
    let _ = writeln!(anstream::stderr(), "{}", styled(FAINT, text));
}

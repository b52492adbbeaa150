//! Colours, and whether to use them.

use std::io::Write;

use landfall_report::style::{BAD, FAINT, styled};
use landfall_report::text::plain_lines;

/// Colours are used on terminals, unless the user or NO_COLOR says otherwise.
pub fn set_color(never: bool) {
    if never {
        anstream::ColorChoice::Never.write_global();
    }
}

/// Says on standard error what went wrong.
pub fn complain(text: &str) {
    let label = styled(BAD.bold(), "landfall:");
    // If standard error is gone there is nobody to tell.
    let _ = writeln!(anstream::stderr(), "{label} {}", plain_lines(text));
}

/// Says on standard error what is being done.
pub fn remark(text: &str) {
    // If standard error is gone there is nobody to tell.
    let _ = writeln!(anstream::stderr(), "{}", styled(FAINT, &plain_lines(text)));
}

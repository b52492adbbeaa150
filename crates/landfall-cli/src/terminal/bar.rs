//! The progress bar: on standard error, drawn between trials only, so that it costs them nothing.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use landfall_os::humanize::duration_text;

/// A progress bar, or nothing when standard error is no terminal or the user wants quiet.
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar for this many trials.
    pub fn new(quiet: bool, trials: usize) -> Bar {
        // A hidden target is also what indicatif makes of a stream that is no terminal.
        let target = if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(Some(trials as u64), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg}") {
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        }
        Bar(bar)
    }

    /// Shows what is being done and the time left.
    pub fn show(&self, what: &str, done: usize, total: usize, left: Duration) {
        self.0.set_length(total as u64);
        self.0.set_position(done as u64);
        self.0.set_message(format!(
            "{} left · {what}",
            duration_text(left.as_secs_f64())
        ));
        self.0.force_draw();
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

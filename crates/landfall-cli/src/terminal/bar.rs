//! The progress bar: on standard error, drawn between trials only, so that it costs them nothing.

use std::collections::VecDeque;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use landfall_os::humanize::duration_text;
use landfall_results::Row;
use landfall_results::metric::METRICS;

/// Figures that stand below the bar.
const LATEST: usize = 5;

/// A progress bar with the latest figures below it, or nothing when standard error is no terminal or the user wants quiet.
pub struct Bar {
    bar: ProgressBar,
    doing: String,
    latest: VecDeque<String>,
}

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
        if let Ok(style) = ProgressStyle::with_template("{bar:16} {pos}/{len} {msg}") {
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        }
        Bar {
            bar,
            doing: String::new(),
            latest: VecDeque::new(),
        }
    }

    /// Shows what is being done and the time left.
    pub fn show(&mut self, what: &str, done: usize, total: usize, left: Duration) {
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
        self.doing = format!("{} left · {what}", duration_text(left.as_secs_f64()));
        self.draw();
    }

    /// Shows what a trial found, until some others have.
    pub fn measured(&mut self, row: &Row<'_>) {
        let mut compared = METRICS.iter().filter(|one| one.is_compared);
        let first = compared.find_map(|one| Some((one, row.trial.get(one.metric)?)));
        let Some((metric, value)) = first else {
            return;
        };
        if self.latest.len() == LATEST {
            self.latest.pop_front();
        }
        let value = (metric.print)(value);
        self.latest
            .push_back(format!("{value:>10} {}  {}", metric.label, row.series));
        self.draw();
    }

    fn draw(&self) {
        let lines = self.latest.iter().map(String::as_str);
        let lines: Vec<&str> = [self.doing.as_str()].into_iter().chain(lines).collect();
        self.bar.set_message(lines.join("\n"));
        self.bar.force_draw();
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

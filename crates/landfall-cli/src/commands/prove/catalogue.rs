//! `landfall prove --catalogue`: how soon known faults are caught.

use std::path::Path;

use landfall_prove::catalogue::{Entry, STATES, faults, median, run as try_all};
use landfall_prove::{Stop, subjects};
use landfall_report::text::plain;

use super::Display;
use crate::commands::print_bytes;
use crate::exit::{Code, Failure};
use crate::terminal::Bar;

/// Tries them, and prints a line for each as soon as it is known. It has failed if one was not caught by the usual order.
pub fn run(
    subject: Option<&str>,
    seeds: u64,
    directory: Option<&Path>,
    quiet: bool,
    stop: &Stop,
) -> Result<Code, Failure> {
    if let Some(name) = subject
        && !faults().any(|case| case.subject == name)
    {
        // One that there is not is told from one without known faults.
        let known = subjects::list().any(|known| known.name == name);
        return Err(Failure::new(
            Code::Usage,
            if known {
                format!("no fault of subject '{name}' is in the catalogue")
            } else {
                format!("no subject is called '{name}'; landfall prove --list says what there is")
            },
        ));
    }
    let mut display = Display(Bar::new(quiet, STATES));
    let heading = format!(
        "Crash states until the first that shows the fault: median (range) of {seeds} seeds, at most {STATES}.\n\n{:>16} {:>16}  fault\n",
        "representative", "epochs"
    );
    print_bytes(heading.as_bytes())?;
    let mut printed = Ok(Code::Measured);
    let tried = try_all(
        subject,
        seeds,
        directory,
        stop,
        &mut display,
        &mut |entry| {
            let line = print_bytes(line(entry).as_bytes());
            if printed.is_ok() {
                printed = line;
            }
        },
    );
    display.0.finish();
    printed?;
    let entries = tried.map_err(Failure::from)?;
    print_bytes(summary(&entries).as_bytes())?;
    let is_missed = |entry: &Entry| {
        entry
            .tried
            .as_ref()
            .is_ok_and(|places| median(&places.representative).is_none())
    };
    Ok(if entries.iter().any(is_missed) {
        Code::Failed
    } else {
        Code::Measured
    })
}

fn line(entry: &Entry) -> String {
    let fault = entry.case.command();
    let fault = fault.trim_start_matches("landfall prove ");
    match &entry.tried {
        Ok(places) => format!(
            "{:>16} {:>16}  {fault}\n",
            text(&places.representative),
            text(&places.epochs)
        ),
        Err(why) => format!("{:>33}  {fault}: {}\n", "not tried", plain(why)),
    }
}

/// `3 (1–7)`; `– (5–)`, if more than half of the seeds did not catch it.
fn text(places: &[Option<u64>]) -> String {
    let number =
        |place: Option<u64>| place.map_or_else(|| "–".to_owned(), |place| place.to_string());
    let first = places.iter().flatten().min().copied();
    let last = if places.contains(&None) {
        None
    } else {
        places.iter().flatten().max().copied()
    };
    let middle = median(places);
    if first.is_none() || (first == middle && last == middle) {
        return number(middle);
    }
    format!(
        "{} ({}–{})",
        number(middle),
        number(first),
        last.map_or_else(String::new, |last| last.to_string())
    )
}

fn summary(entries: &[Entry]) -> String {
    let tried: Vec<_> = entries
        .iter()
        .filter_map(|entry| entry.tried.as_ref().ok())
        .collect();
    let representative: Vec<Option<u64>> = tried
        .iter()
        .map(|places| median(&places.representative))
        .collect();
    let epochs: Vec<Option<u64>> = tried.iter().map(|places| median(&places.epochs)).collect();
    let caught = |places: &[Option<u64>]| places.iter().flatten().count();
    let is_later = |(new, old): &(&Option<u64>, &Option<u64>)| match (new, old) {
        (Some(new), Some(old)) => new > old,
        (None, old) => old.is_some(),
        (Some(_), None) => false,
    };
    let later = representative.iter().zip(&epochs).filter(is_later).count();
    let middle = |places: &[Option<u64>]| {
        median(places).map_or_else(|| "–".to_owned(), |place| place.to_string())
    };
    format!(
        "\nOf {} faults that were tried, {} were caught in representative order and {} in the order of the recording; the median of them \
         was caught in state {} and {}. {later} were caught later in representative order.\n",
        tried.len(),
        caught(&representative),
        caught(&epochs),
        middle(&representative),
        middle(&epochs),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_said_with_their_range() {
        assert_eq!(text(&[Some(3), Some(1), Some(7)]), "3 (1–7)");
        assert_eq!(text(&[Some(2), Some(2), Some(2)]), "2");
        assert_eq!(text(&[Some(5), None, None]), "– (5–)");
        assert_eq!(text(&[Some(5), None, Some(4)]), "5 (4–)");
        assert_eq!(text(&[None, None, None]), "–");
    }
}

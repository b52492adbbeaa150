//! The `landfall` program: arguments in, tables and files out.
//!
//! Results go to standard output, progress and complaints to standard error. Exit codes are those
//! of [`exit::Code`] and documented in `docs/reference/exit-codes.md`.

mod args;
mod commands;
mod exit;
mod terminal;

use clap::Parser;
use clap::error::ErrorKind;

use args::{Arguments, Command};

fn main() -> std::process::ExitCode {
    landfall_prove::uml::init();
    landfall_prove::check_process::init();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refuse(args::with_hint(error)),
    };
    terminal::set_color(arguments.no_color);
    let outcome = match arguments.command {
        Command::Lab(lab) => commands::lab::run(*lab, arguments.quiet),
        Command::Prove(prove) => commands::prove::run(*prove, arguments.quiet),
        Command::Advise(advise) => commands::advise::run(&advise, arguments.quiet),
        Command::Campaign(campaign) => commands::campaign::run(campaign, arguments.quiet),
        Command::Witness(witness) => commands::witness::run(witness, arguments.quiet),
        Command::Subjects(subjects) => commands::subjects::run(&subjects),
        Command::Clean(clean) => commands::clean::run(clean),
        Command::Log(log) => commands::log::run(&log),
        Command::State(state) => commands::state::run(&state),
        Command::Store(store) => commands::store::run(&store),
        Command::Inspect(inspect) => commands::inspect::run(&inspect),
        Command::Show(show) => commands::show::run(&show),
        Command::Compare(compare) => commands::compare::run(&compare),
        Command::Completions { shell } => commands::completions(shell),
        Command::Man { directory } => commands::man(directory.as_deref()),
    };
    match outcome {
        Ok(code) => code.into(),
        Err(failure) => {
            terminal::complain(&failure.text);
            failure.code.into()
        }
    }
}

/// Help and version are results; everything else that clap returns is a usage error.
fn refuse(error: clap::Error) -> std::process::ExitCode {
    // Nothing can be done about a closed terminal.
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => exit::Code::Measured.into(),
        _ => exit::Code::Usage.into(),
    }
}

//! `landfall show`: a run again, from its results document.

use std::path::Path;

use landfall_lab::advice::{Scope, advise};
use landfall_lab::export;
use landfall_report::markdown::markdown;

use crate::args::Show;
use crate::commands::compare::read;
use crate::commands::documents::{
    PAGE, check_files, is_stdout, prepare_directory, report_files, shown, write_report,
};
use crate::commands::files::write_file;
use crate::commands::history::NEWEST;
use crate::commands::{first_failure, print_bytes};
use crate::exit::{Code, Failure};
use crate::terminal::table;

pub fn run(arguments: &Show) -> Result<Code, Failure> {
    let outputs = [&arguments.markdown, &arguments.csv];
    // The other files may be in it.
    let prepared = arguments.report.as_deref().map(prepare_directory);
    let _unless_written = prepared.transpose()?;
    let mut taken = vec![("FILE", arguments.file.clone())];
    taken.extend(arguments.report.iter().flat_map(|one| report_files(one)));
    let named = [
        ("--markdown", arguments.markdown.as_deref()),
        ("--csv", arguments.csv.as_deref()),
    ];
    check_files(&taken, named)?;
    if arguments.tables && outputs.into_iter().any(is_stdout) {
        let text = "only one of --markdown -, --csv - and --tables can have standard output";
        return Err(Failure::new(Code::Usage, text));
    }
    let results = read(&arguments.file)?;
    // Each whatever became of the others.
    let reported = arguments.report.as_ref().map_or(Ok(()), |report| {
        let advice = advise(&results, &report.display().to_string(), None);
        write_report(report, &results, &advice, &Scope::here())
    });
    let text = |path: &Option<_>, text: &dyn Fn() -> String| -> Result<(), Failure> {
        match path.as_deref() {
            None => Ok(()),
            Some(path) if path == Path::new("-") => print_bytes(text().as_bytes()).map(drop),
            Some(path) => write_file(path, text().as_bytes()),
        }
    };
    let tabulated = text(&arguments.markdown, &|| markdown(&table::results(&results)));
    let listed = text(&arguments.csv, &|| export::csv(&results));
    first_failure([reported, tabulated, listed])?;
    if outputs.into_iter().any(is_stdout) {
        return Ok(Code::Measured);
    }
    // One that was written with the document lies beside it.
    let report = arguments.report.as_deref();
    let beside = || {
        arguments
            .file
            .parent()
            .filter(|_| arguments.file.ends_with(NEWEST))
    };
    let page = report.or_else(beside).map(|report| report.join(PAGE));
    let page = page.filter(|page| page.exists());
    let text = shown(
        &results,
        arguments.tables,
        Some(&arguments.file),
        page.as_deref(),
    );
    print_bytes(text.as_bytes())
}

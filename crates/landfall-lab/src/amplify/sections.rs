//! The configurations as the terminal and the report show them, part by part.

use landfall_results::Series;

use super::AmplifyResults;
use super::catalogue::{NO_DOUBLEWRITE, PAGES_4, PAGES_8, PAGES_16, Part, WRITE_OPTIMISED};
use landfall_os::humanize::bytes_text;

/// A part of the experiment with its configurations.
#[derive(Debug)]
pub struct Section<'a> {
    /// Which part.
    pub part: Part,
    /// What is compared.
    pub title: String,
    /// The configurations, in plan order.
    pub rows: Vec<&'a Series>,
}

/// Configurations of other parts that a part is held against, where they were measured.
fn beside(part: Part) -> &'static [&'static str] {
    match part {
        Part::Buffer | Part::Databases => &[PAGES_16, WRITE_OPTIMISED],
        Part::Landfall => &[PAGES_16, PAGES_8, PAGES_4, NO_DOUBLEWRITE],
        Part::Pages | Part::Knobs | Part::Curve | Part::CurveZipf => &[],
    }
}

/// Every part that something was measured of, with what it is held against.
pub fn sections(amplify: &AmplifyResults) -> Vec<Section<'_>> {
    let pool = bytes_text(amplify.pool_bytes);
    let section = |wanted: Part| {
        let all = amplify.measurements.series.iter();
        let own = |one: &&Series| one.axes.part.as_deref() == Some(wanted.name());
        let is_of = |one: &&Series| {
            let case = one.axes.case.as_deref();
            own(one) || case.is_some_and(|case| beside(wanted).contains(&case))
        };
        let rows: Vec<&Series> = all.filter(is_of).collect();
        rows.iter().any(own).then(|| {
            let title = match wanted {
                Part::Pages => format!("Page size and compression, {pool} of memory for more data"),
                Part::Landfall => {
                    format!("Landfall's own store by page size, {pool} of memory for more data")
                }
                Part::Buffer => {
                    format!("Landfall's own store by its buffer, {pool} of memory for more data")
                }
                Part::Curve => {
                    format!("Rows updated at random, by buffer, {pool} of memory for more data")
                }
                Part::CurveZipf => {
                    format!(
                        "Some rows updated more often, by buffer, {pool} of memory for more data"
                    )
                }
                Part::Databases => format!("Databases, {pool} of memory for more data"),
                Part::Knobs => "Settings, with data that fits into memory".to_owned(),
            };
            Section {
                part: wanted,
                title,
                rows,
            }
        })
    };
    [
        Part::Pages,
        Part::Landfall,
        Part::Buffer,
        Part::Curve,
        Part::CurveZipf,
        Part::Databases,
        Part::Knobs,
    ]
    .into_iter()
    .filter_map(section)
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{measured, results, updated};
    use super::*;

    #[test]
    fn each_part_has_its_configurations_and_those_it_is_held_against() {
        let found = results(vec![
            measured("innodb 16k", 48.0, 150),
            measured("innodb 8k", 24.0, 150),
            measured("myrocks zstd", 4.0, 70),
            measured("landfall 8k doublewrite", 22.0, 130),
            measured("landfall buffer 0%", 12.0, 80),
            measured("landfall buffer 11%", 5.0, 85),
            updated("uniform buffer 0%", 16.0, 15.0),
            updated("uniform sqlite", 40.0, None),
            measured("sqlite", 9.0, 120),
            measured("innodb in pool", 9.0, 120),
        ]);
        let names = |section: &Section<'_>| -> Vec<String> {
            section.rows.iter().map(|one| one.name()).collect()
        };
        let all = sections(&found);
        let parts: Vec<Part> = all.iter().map(|section| section.part).collect();
        assert_eq!(
            parts,
            [
                Part::Pages,
                Part::Landfall,
                Part::Buffer,
                Part::Curve,
                Part::Databases,
                Part::Knobs
            ]
        );
        assert_eq!(names(&all[0]), ["innodb 16k", "innodb 8k", "myrocks zstd"]);
        assert_eq!(
            names(&all[1]),
            ["innodb 16k", "innodb 8k", "landfall 8k doublewrite"]
        );
        assert_eq!(
            names(&all[2]),
            [
                "innodb 16k",
                "myrocks zstd",
                "landfall buffer 0%",
                "landfall buffer 11%"
            ]
        );
        assert_eq!(
            all[2].title,
            "Landfall's own store by its buffer, 10 MiB of memory for more data"
        );
        assert_eq!(names(&all[3]), ["uniform buffer 0%", "uniform sqlite"]);
        assert_eq!(names(&all[4]), ["innodb 16k", "myrocks zstd", "sqlite"]);
        assert_eq!(names(&all[5]), ["innodb in pool"]);
        let pages = results(vec![measured("innodb 16k", 48.0, 150)]);
        assert_eq!(sections(&pages).len(), 1);
    }
}

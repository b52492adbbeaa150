//! What is shown of the experiment: sentences, tables for a terminal, and its part of the page.

use landfall_results::view::chart::{Chart, Drawing, MOST_ROWS, Rate, Rates, is_wide};
use landfall_results::view::{
    Block, Chapter, Figure, Part, SeriesColumn, Table, or_nothing, series_table, with_interval,
};
use landfall_results::{Metric, Series, SeriesProof};

use super::{RenameResults, Way};
use crate::facts::{dangerous_option, is_in_memory, may_lose_new_files};
use crate::numbers::{thousands, two};
use crate::views::{self, device_costs};

impl RenameResults {
    /// What was measured of a way on a site.
    fn find(&self, site: &str, way: Way) -> Option<&Series> {
        let axes = way.axes(site.to_owned(), self.size);
        self.series.iter().find(|one| one.axes == axes)
    }

    fn way(&self, one: &Series) -> Option<Way> {
        let site = one.axes.site.clone()?;
        Way::ALL
            .into_iter()
            .find(|way| way.axes(site.clone(), self.size) == one.axes)
    }

    /// Sites with what was measured there.
    fn by_site(&self) -> impl Iterator<Item = (&str, &[Series])> {
        self.series
            .chunk_by(|a, b| a.axes.site == b.axes.site)
            .filter_map(|here| Some((here.first()?.axes.site.as_deref()?, here)))
    }
}

/// What was found, site by site; and which ways lost something where the whole of it did not.
pub(super) fn sentences(found: &RenameResults) -> Vec<String> {
    let sites = found.by_site();
    let mut sentences: Vec<String> = sites
        .filter_map(|(site, _)| sentence(found, site))
        .collect();
    let losing = Way::ALL.into_iter().filter(|way| {
        let mut sites = found.by_site();
        sites.any(|(site, _)| {
            let is = |way, so: fn(&Series) -> bool| found.find(site, way).is_some_and(so);
            is(Way::FileRenameDirectory, lost_nothing) && is(*way, has_lost)
        })
    });
    let names: Vec<&str> = losing.map(Way::name).collect();
    if !names.is_empty() {
        let text = "Where that loses nothing, a power cut takes what was acknowledged after";
        sentences.push(format!("{text} {}.", names.join(", ")));
    }
    sentences
}

fn has_lost(one: &Series) -> bool {
    one.proof.as_ref().is_some_and(|proof| proof.losing > 0)
}

fn lost_nothing(one: &Series) -> bool {
    one.proof.as_ref().is_some_and(SeriesProof::lost_nothing)
}

/// What a power cut does on a site where syncing does not help.
fn danger(found: &RenameResults, site: &str) -> Option<String> {
    let site = found.sites.iter().find(|one| one.key == site)?;
    let filesystem = site.filesystem.as_ref()?;
    if is_in_memory(filesystem) {
        return Some("Here a power cut takes both: this is main memory.".to_owned());
    }
    if let Some(option) = dangerous_option(filesystem.storage()) {
        return Some(format!(
            "Here a power cut may take both: with {option} a sync does not flush the disk's cache."
        ));
    }
    may_lose_new_files(filesystem).then(|| {
        "Here a power cut may take both: without a journal a renamed file can be lost, synced or not."
            .to_owned()
    })
}

fn sentence(found: &RenameResults, site: &str) -> Option<String> {
    let whole = found.find(site, Way::FileRenameDirectory)?;
    if let Some(proof) = whole.proof.as_ref().filter(|proof| proof.losing > 0) {
        let is = |so: fn(&Series) -> bool| move |way| found.find(site, way).is_some_and(so);
        let mut ways = Way::ALL.into_iter();
        let no_way = match () {
            () if ways.clone().any(is(lost_nothing)) => "not even the most careful way",
            () if ways.all(is(has_lost)) => "no way",
            () => "no way that was proven",
        };
        return Some(format!(
            "On {site} {no_way} keeps what was acknowledged: syncing the file, renaming it and syncing the directory lost it in {} of {} crash states.",
            thousands(proof.losing as f64),
            thousands(proof.states as f64)
        ));
    }
    let rate = whole.median(Metric::OpsPerSecond)?;
    let flushes = whole.median(Metric::Flushes);
    let flushes = flushes.map_or(String::new(), |count| {
        format!(", with {} flushes each", two(count))
    });
    let plain = found.find(site, Way::Truncate);
    let ratio = plain.and_then(|plain| plain.ratio(whole, Metric::OpsPerSecond));
    let ratio = ratio.map_or(String::new(), |ratio| {
        let ratio = two(ratio.median);
        format!("; truncating it and writing it again, which may leave it empty, is {ratio} times as fast")
    });
    let danger = danger(found, site);
    let leaves = if danger.is_none() && lost_nothing(whole) {
        "so that a power cut leaves the old content or the new"
    } else {
        "in a way that is meant to leave the old content or the new after a power cut"
    };
    let danger = danger.map_or(String::new(), |danger| format!(" {danger}"));
    Some(format!(
        "On {site} a file is replaced {} times a second {leaves}{flushes}{ratio}.{danger}",
        thousands(rate)
    ))
}

/// In how many crash states the last acknowledged content was gone.
fn lost_in() -> SeriesColumn {
    SeriesColumn::new("lost in", |one: &Series| {
        or_nothing(one.proof.as_ref().map(|proof| match &proof.not_proven {
            Some(_) => "not proven".to_owned(),
            None => format!(
                "{} of {}",
                thousands(proof.losing as f64),
                thousands(proof.states as f64)
            ),
        }))
    })
}

fn of_site(site: &str, series: &[Series]) -> Table {
    let mut columns = Vec::from(with_interval(Metric::OpsPerSecond));
    columns.extend(
        [
            Metric::P50Us,
            Metric::P99Us,
            Metric::Flushes,
            Metric::Kib,
            Metric::WriteRequests,
        ]
        .map(SeriesColumn::median),
    );
    if series.iter().any(|one| one.proof.is_some()) {
        columns.push(lost_in());
    }
    let rows = series.iter().map(|one| (one.name(), one));
    let caption = format!("Replacing a file on {site}");
    series_table(caption, "Way", columns, rows)
}

/// What a terminal shows, without claims and notices.
pub(super) fn brief(found: &RenameResults) -> Vec<Block> {
    let mut blocks: Vec<Block> = Block::prose(0, sentences(found)).into_iter().collect();
    for (site, series) in found.by_site() {
        blocks.extend(Block::titled(of_site(site, series)));
    }
    blocks
}

/// Its part of the page.
pub(super) fn part(found: &RenameResults) -> Part {
    let rates = "Replacements per second";
    let costs = "What a replacement costs the device";
    let mut of_rates = Vec::new();
    let mut of_costs = Vec::new();
    for (index, (site, series)) in found.by_site().enumerate() {
        let table = || of_site(site, series);
        of_rates.extend(rates_chart(found, index, site, series).map(|chart| {
            Figure::new(
                site,
                chart,
                "A hollow dot is not durable: a power cut may take what was acknowledged.",
                table(),
            )
        }));
        let names: Vec<String> = series.iter().map(Series::name).collect();
        let rows = names.iter().map(String::as_str).zip(series);
        let metrics = [Metric::Flushes, Metric::Kib, Metric::WriteRequests];
        let chart = device_costs(format!("rename-{index}-cost"), rows, &metrics);
        of_costs.extend(chart.map(|chart| Figure::new(site, chart, "", table())));
    }
    Part {
        title: "What replacing a file costs".to_owned(),
        sentences: sentences(found),
        front: None,
        chapters: [
            Chapter::of_figures(
                rates,
                "One file replaced again and again, by how it is replaced and what is synced. A dot is the median over the rounds, a bar its 95% interval.",
                of_rates,
            ),
            Chapter::of_figures(
                costs,
                "Counted by the kernel at the device, per replacement, until nothing of it was left in the page cache.",
                of_costs,
            ),
        ]
        .into_iter()
        .flatten()
        .collect(),
        unmeasured: views::unmeasured(&found.series),
        run: None,
        preparation: views::preparation("Bytes written and seconds taken to make filesystems", views::images(&found.sites)),
    }
}

fn rates_chart(
    found: &RenameResults,
    index: usize,
    site: &str,
    series: &[Series],
) -> Option<Chart> {
    let is_kept = danger(found, site).is_none();
    let rows: Vec<Rate> = series
        .iter()
        .take(MOST_ROWS)
        .map(|one| {
            let is_durable = match &one.proof {
                Some(proof) if proof.not_proven.is_none() => proof.lost_nothing(),
                _ => found.way(one).is_some_and(Way::is_durable),
            };
            let rate = one.estimate(Metric::OpsPerSecond);
            Rate::of(one.name(), is_kept && is_durable, rate, thousands)
        })
        .collect();
    let drawing = Drawing::Rates(Rates {
        unit: Metric::OpsPerSecond.description().label.into(),
        reference: None,
        log: is_wide(rows.iter().filter_map(|row| row.value)),
        rows,
    });
    Chart::new(format!("rename-{index}"), drawing).if_any()
}

#[cfg(test)]
mod tests {
    use landfall_os::{Filesystem, Medium};

    use super::*;
    use crate::advice::fixtures::recorded;
    use crate::sync::fixtures::{filesystem, trial};
    use crate::{PlanKind, Preparation, SiteDescription, SiteResult};

    fn found(losing_of_whole: u64) -> RenameResults {
        let series = Way::ALL.into_iter().map(|way| {
            let losing = match way {
                Way::FileRenameDirectory => losing_of_whole,
                Way::Truncate => 0,
                _ => 9,
            };
            Series {
                proof: Some(SeriesProof {
                    filesystem_spec: "ext4".parse().unwrap(),
                    states: 100,
                    losing,
                    worst_lost: losing,
                    not_proven: None,
                }),
                ..Series::new(way.axes("loop:ext4".to_owned(), 4096))
            }
        });
        RenameResults {
            plan: PlanKind::Standard,
            rounds: 5,
            seconds_per_trial: 0.5,
            size: 4096,
            sites: Vec::new(),
            series: series.collect(),
            claims: Vec::new(),
        }
    }

    #[test]
    fn what_lost_something_is_named() {
        let said = sentences(&found(0)).join(" ");
        assert!(
            said.ends_with("after rename, rename+directory, fdatasync+rename."),
            "{said}"
        );
        let mut found = found(3);
        let said = sentences(&found).join(" ");
        let careful = "On loop:ext4 not even the most careful way keeps";
        assert!(said.contains(careful), "{said}");
        assert!(said.contains("in 3 of 100 crash states"), "{said}");
        assert!(!said.contains("after rename"), "{said}");
        found.series[0].proof.as_mut().unwrap().losing = 1;
        let said = sentences(&found).join(" ");
        assert!(said.contains("On loop:ext4 no way keeps"), "{said}");
        found.series[1].proof = None;
        let said = sentences(&found).join(" ");
        assert!(said.contains("no way that was proven keeps"), "{said}");
    }

    /// All ways, measured and proven, where the most careful one lost nothing.
    fn measured_on(filesystem: Filesystem) -> RenameResults {
        let mut found = found(0);
        for one in &mut found.series {
            let trials = (1..=5).map(|round| trial(round, 1_000.0, 1.0, 4.0));
            one.trials = trials.collect();
            one.summarize();
        }
        found.sites.push(SiteResult {
            key: "loop:ext4".to_owned(),
            label: "ext4".to_owned(),
            description: SiteDescription::default(),
            filesystem: Some(filesystem),
            refused: None,
            preparation: Preparation::default(),
        });
        found
    }

    #[test]
    fn nothing_is_called_kept_where_a_power_cut_takes_it_or_nobody_knows() {
        let kept = "so that a power cut leaves the old content or the new";
        let meant = "meant to leave the old content or the new after a power cut";
        let mut without_journal = filesystem("ext4", Medium::Device);
        without_journal.journal = Some(false);
        for (filesystem, why) in [
            (recorded("memory").filesystem, "takes both: this is main"),
            (recorded("no-barrier").filesystem, "with nobarrier a sync"),
            (without_journal, "without a journal a renamed file"),
        ] {
            let found = measured_on(filesystem);
            let said = sentences(&found).join(" ");
            assert!(said.contains(meant) && said.contains(why), "{said}");
            assert!(!said.contains(kept), "{said}");
            let chart = rates_chart(&found, 0, "loop:ext4", &found.series);
            let Some(Drawing::Rates(rates)) = chart.map(|chart| chart.drawing) else {
                panic!("no rates");
            };
            assert!(rates.rows.iter().all(|row| !row.durable));
        }
        let mut found = measured_on(filesystem("ext4", Medium::Device));
        let said = sentences(&found).join(" ");
        assert!(said.contains(kept), "{said}");
        for one in &mut found.series {
            one.proof = None;
        }
        let said = sentences(&found).join(" ");
        assert!(said.contains(meant) && !said.contains(kept), "{said}");
    }
}

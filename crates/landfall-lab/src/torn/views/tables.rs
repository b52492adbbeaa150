//! The tables of experiment `torn`: of proofs, and those of a terminal.

use landfall_results::view::{Block, Cell, Column, Row, Table, Tone, or_nothing};
use landfall_results::{Metric, Series};

use crate::configuration::views::tables::{from_to, preparation};
use crate::numbers::{NOTHING, interval, short, thousands, two};
use crate::stats::Estimate;
use crate::torn::{
    Protection, Sides, StoreProtection, TornProof, TornResults, base, conditions, disk_text, disks,
    sections, stores, summary_text,
};
use crate::views;

/// What power cuts did, in full.
pub(super) fn proofs(torn: &TornResults) -> Table {
    let mut columns = columns_of_proofs();
    columns.extend(["The first that did not said", "Made again by"].map(Column::text));
    let rows = torn.proofs.iter().map(|proof| {
        let mut row = row(proof);
        if let Row::Cells { cells, .. } = &mut row {
            let said = proof.said.clone().unwrap_or(NOTHING.to_owned());
            cells.extend([said.into(), proof.again.as_str().into()]);
        }
        row
    });
    let caption = "What power cuts did to each setting, with pages torn at 512 bytes";
    let mut table = Table::new(caption, "Setting", columns).with_rows(rows);
    table.note("Crash states, of those that were tried. What survived them all is not proven to survive all that there are.");
    table
}

fn columns_of_proofs() -> Vec<Column> {
    [
        "Filesystem",
        "Model",
        "Did not recover",
        "Recovered wrong",
        "Lost some transaction",
    ]
    .map(Column::text)
    .into()
}

fn row(proof: &TornProof) -> Row {
    let name = summary_text::text(proof);
    if let Some(why) = &proof.not_proven {
        return Row::without(name, format!("not proven: {why}"));
    }
    let of_states = |count: u64, least: &str| {
        let states = thousands(proof.states as f64);
        match count {
            0 => Cell::toned(Tone::Good, format!("0 of {states}")),
            _ => {
                let count = thousands(count as f64);
                Cell::toned(Tone::Bad, format!("{least}{count} of {states}"))
            }
        }
    };
    let least = proof.least_text();
    let cells = [
        proof.filesystem_spec.to_string().into(),
        proof.model.as_str().into(),
        of_states(proof.damaged, least),
        of_states(proof.wrong, least),
        of_states(proof.losing, ""),
    ];
    Row::of(name, cells)
}

/// What a terminal shows of the experiment, without its claims.
pub(crate) fn brief(torn: &TornResults) -> Vec<Block> {
    let mut blocks: Vec<Block> = Block::prose(0, summary_text::sentences(torn))
        .into_iter()
        .collect();
    let caption = "MariaDB: who protects pages from being torn, and what that costs, disk by disk";
    let table = of_disks(caption, &disks(torn), Protection::text);
    blocks.extend(Block::titled(table));
    let disk = base(torn).map_or("", disk_text);
    let pairs = conditions(torn);
    let pairs = pairs
        .iter()
        .map(|pair| (pair.label.as_str(), pair.usual, pair.cure, pair.gain));
    blocks.extend(Block::titled(of_pairs(
        format!("data=journal over the doublewrite buffer, on {disk} but for one condition"),
        ["doublewrite tps", "data=journal tps", "gain"],
        pairs,
    )));
    let both = sections(torn);
    let both = both
        .iter()
        .map(|one| (disk_text(one.disk), one.on, one.off, one.gain));
    let caption = "PostgreSQL: full_page_writes on and off".to_owned();
    let table = of_pairs(caption, ["on tps", "off tps", "off/on"], both);
    blocks.extend(Block::titled(table));
    let caption = "Landfall's store: each protection in one engine, disk by disk";
    let mut table = of_disks(caption, &stores(torn), StoreProtection::text);
    table.note("puts of 200 bytes, in leaves of 16 KiB; rates of different engines are not comparable; no atomic writes: ext4 on a recorder promises none");
    blocks.extend(Block::titled(table));
    blocks.extend(of_proofs(&torn.proofs));
    blocks.extend(views::preparation_sentence(preparation(&torn.measurements)));
    blocks
}

/// A row for each protection of one engine on each disk.
fn of_disks<P: Copy>(
    caption: &'static str,
    disks: &[Sides<'_, P>],
    text: fn(P) -> &'static str,
) -> Table {
    let mut rows = Vec::new();
    for sides in disks {
        let disk = disk_text(sides.disk);
        rows.push(Row::Group(disk.into()));
        for side in &sides.protections {
            let (label, one) = (text(side.protection), side.series);
            if let Some(reason) = &one.unsupported {
                rows.push(Row::without(format!("{disk}, {label}"), reason));
            }
            if !one.is_measured() {
                continue;
            }
            let rate = one.estimate(Metric::RequestsPerSecond);
            let milliseconds = |metric| or_nothing(one.median(metric).map(|us| short(us / 1e3)));
            rows.push(Row::of(
                label,
                [
                    one.text(Metric::RequestsPerSecond),
                    or_nothing(rate.map(|rate| interval(&rate, thousands))),
                    milliseconds(Metric::P50Us),
                    milliseconds(Metric::P99Us),
                    one.text(Metric::Flushes),
                    one.writes_text(),
                    one.text(Metric::Kib),
                    or_nothing(side.over.map(|over| two(over.median))),
                ],
            ));
        }
    }
    let columns = [
        "tps",
        "95% interval",
        "p50 ms",
        "p99 ms",
        "flushes",
        "writes",
        "KiB",
        "over doublewrite",
    ];
    Table::new(caption, "", columns.map(Column::new).into()).with_rows(rows)
}

/// Two settings side by side, and the rate of the second over the first.
fn of_pairs<'a>(
    caption: String,
    [first, second, ratio]: [&'static str; 3],
    pairs: impl Iterator<Item = (&'a str, &'a Series, &'a Series, Option<Estimate>)>,
) -> Table {
    let mut rows = Vec::new();
    for (label, one, other, gain) in pairs {
        for one in [one, other] {
            if let Some(reason) = &one.unsupported {
                rows.push(Row::without(label, reason));
            }
        }
        if !one.is_measured() && !other.is_measured() {
            continue;
        }
        rows.push(Row::of(
            label,
            [
                one.text(Metric::RequestsPerSecond),
                other.text(Metric::RequestsPerSecond),
                or_nothing(gain.map(|gain| two(gain.median))),
                or_nothing(gain.map(|gain| interval(&gain, two))),
                from_to(one, other, Metric::Flushes),
                from_to(one, other, Metric::Kib),
            ],
        ));
    }
    let columns = [first, second, ratio, "95% interval", "flushes", "KiB"];
    Table::new(caption, "", columns.map(Column::new).into()).with_rows(rows)
}

fn of_proofs(proofs: &[TornProof]) -> Vec<Block> {
    let caption = "What power cuts did, with torn pages";
    let mut table = Table::new(caption, "", columns_of_proofs()).with_rows(proofs.iter().map(row));
    table.note("crash states with pages torn at 512 bytes, of those tried; what survived them is not proven to survive all");
    for proof in proofs.iter().filter(|proof| !proof.is_whole()) {
        table.note(format!("{}: {}", summary_text::text(proof), proof.again));
    }
    Block::titled(table)
}

//! `landfall campaign report`: the page of a campaign, with the document that it is made from, and one screen.

use landfall_campaign::fleet::report::{Missing, Proofs, Report, page, screen};
use landfall_campaign::fleet::{Fleet, Member};
use landfall_campaign::{Campaign, FailedTask, Location, Plan};
use landfall_report::html;
use landfall_report::text::{self, plain};
use landfall_results::numbers::thousands;
use landfall_results::proof::{Outcome, ProofResults, Shard, summary_text};
use landfall_results::view::{Cell, Column, Page, Row, Table, Tone};

use super::show;
use crate::args::CampaignReport;
use crate::commands::documents::{PAGE, command_line, prepare_directory};
use crate::commands::files::replace;
use crate::commands::print_bytes;
use crate::exit::{Code, Failure};

/// What the page is made from.
const DOCUMENT: &str = "campaign.json";
/// What its machines have in common, and which differ.
const FLEET: &str = "fleet.json";

pub fn run(arguments: &CampaignReport) -> Result<Code, Failure> {
    let location = &arguments.campaign;
    let (plan, merged) = super::merged(location)?;
    let _unless_written = prepare_directory(&arguments.report)?;
    let machines = merged.measured.iter().map(|one| plain(&one.machine));
    let machines: Vec<String> = machines.collect();
    let members: Vec<Member<'_>> = machines
        .iter()
        .zip(&merged.measured)
        .map(|(machine, measured)| Member {
            machine,
            results: &measured.results,
        })
        .collect();
    let fleet = Fleet::of(&members);
    let proofs = (!merged.proofs.is_empty()).then(|| proofs(&plan, &merged, location));
    let missing = missing(&merged, location);
    let (command, when) = (command_line(), merged.when());
    let report = Report {
        name: &merged.name,
        fleet: &fleet,
        proofs: proofs.as_ref(),
        missing: &missing,
        when: when.as_deref(),
        command: &command,
        document: DOCUMENT,
    };
    let page = Page {
        schema: merged.schema.clone(),
        ..page(&report)
    };
    let rendered =
        html::render(&page).map_err(|error| Failure::new(Code::Failed, error.to_string()))?;
    replace(
        &arguments.report.join(DOCUMENT),
        merged.to_json().as_bytes(),
    )?;
    if !members.is_empty() {
        replace(&arguments.report.join(FLEET), fleet.to_json().as_bytes())?;
    }
    let path = arguments.report.join(PAGE);
    replace(&path, rendered.as_bytes())?;
    let shown = text::text(&screen(&report));
    print_bytes(format!("{shown}\nThe page: {}\n", path.display()).as_bytes())
}

/// What is missing, a line for each, with the command that mends it.
fn missing(campaign: &Campaign, location: &Location) -> Missing {
    let failed = |failed: &FailedTask| {
        let FailedTask {
            shard,
            machine,
            command,
            why,
        } = failed;
        plain(&format!("shard {shard} on {machine}: {command}: {why}"))
    };
    let again = |shard: &Shard| show::again(location, *shard);
    Missing {
        shards: campaign.missing.iter().map(again).collect(),
        tasks: campaign.failed.iter().map(failed).collect(),
        unreadable: campaign.unreadable.iter().map(|one| plain(one)).collect(),
    }
}

/// What was proven, a row for each proof.
fn proofs(plan: &Plan, campaign: &Campaign, location: &Location) -> Proofs {
    let outcome = campaign.outcome();
    let tone = match outcome {
        Outcome::LostNothing => Tone::Good,
        Outcome::LostSomething | Outcome::NotProven => Tone::Bad,
    };
    let results = || {
        campaign
            .proofs
            .iter()
            .filter_map(|proof| proof.results.as_ref())
    };
    let sum = |of: fn(&ProofResults) -> u64| {
        thousands(results().map(of).fold(0, u64::saturating_add) as f64)
    };
    let checked = sum(|proof| proof.coverage.checked);
    let verdict = match outcome {
        Outcome::LostNothing => format!("Of {checked} crash states none lost anything."),
        Outcome::LostSomething if results().all(|proof| proof.failing_states == 0) => {
            "Something was lost, in another proof than that of most shards.".to_owned()
        }
        Outcome::LostSomething => {
            format!(
                "Of {checked} crash states {} lost something, or broke another promise.",
                sum(|proof| proof.failing_states)
            )
        }
        Outcome::NotProven if campaign.missing.is_empty() => {
            "Not every part of the proofs could be done: nothing is proven.".to_owned()
        }
        Outcome::NotProven => {
            format!(
                "Of {checked} crash states none lost anything, but shards are missing: nothing is proven."
            )
        }
    };
    let columns = vec![
        Column::text("filesystem"),
        Column::new("shards"),
        Column::new("states"),
        Column::new("lost"),
        Column::text("verdict"),
    ];
    let rows = campaign.proofs.iter().map(|proof| {
        let Some(results) = &proof.results else {
            return Row::without(proof.command.clone(), "no shard has done its part");
        };
        let tone = match results.outcome() {
            Outcome::LostNothing if proof.odd_losses.is_empty() => Tone::Good,
            _ => Tone::Bad,
        };
        let cells = [
            Cell::from(results.filesystem_spec.to_string()),
            Cell::from(format!("{} of {}", proof.shards, campaign.shards)),
            Cell::from(thousands(results.coverage.checked as f64)),
            Cell::from(thousands(results.failing_states as f64)),
            Cell::toned(tone, summary_text::short_verdict(results)),
        ];
        Row::of(plain(&summary_text::full_subject(results)), cells)
    });
    let sentences = plan
        .proofs()
        .zip(&campaign.proofs)
        .flat_map(|(task, proof)| {
            let again = show::commands(task, proof, location).map(|[fetch, again]| {
                format!("To see its shortest failing state again: {fetch}, then {again}")
            });
            show::sentences(campaign, proof).into_iter().chain(again)
        });
    Proofs {
        verdict: Cell::toned(tone, verdict),
        sentences: sentences.collect(),
        table: Table::new("What power cuts took", "subject", columns).with_rows(rows),
    }
}

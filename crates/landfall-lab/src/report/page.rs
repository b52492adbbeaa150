//! The page of a results document, as data.

use super::advice::advised;
use super::{effort, prose, prove, runs};
use crate::advice::{Advice, Scope};
use crate::{Findings, Found, Results, facts};
use landfall_os::humanize::{bytes_text, duration_text};
use landfall_results::proof::ProofResults;
use landfall_results::view::{Cell, Chapter, Claims, Page, Part};

/// The page of these results, with what is advised on them; on systems out of scope it is folded.
pub fn page(results: &Results, advice: &Advice, scope: &Scope) -> Page {
    let mut parts = Vec::new();
    for name in Found::EXPERIMENTS {
        let runs: Vec<&dyn Findings> = runs(results, name).collect();
        for (index, run) in runs.iter().enumerate() {
            let mut part = run.part(results);
            if runs.len() > 1 {
                part.number(index + 1, runs.len());
            }
            parts.push(part);
        }
    }
    let proofs: Vec<&ProofResults> = results.proofs().collect();
    if !proofs.is_empty() {
        parts.push(prove::part(&proofs));
    }
    let sentences = prose::verdict(results, &mut parts);
    let front = first_picture(&mut parts);
    let has_only_proofs = results.has_only_proofs();
    let heading = if has_only_proofs {
        prove::prose::heading(&proofs)
    } else {
        Cell::from(heading(&parts))
    };
    let (subject, place) = match (has_only_proofs, proofs.as_slice()) {
        (true, [proof]) => (proof.subject.to_string(), recorder(proof)),
        (true, several) => (String::new(), format!("{} recorded devices", several.len())),
        (false, _) => (results.directory.clone(), facts::place(&results.filesystem)),
    };
    let effort = (!has_only_proofs).then(|| effort(results));
    let made = results.site.text().filter(|_| !has_only_proofs);
    let foundation = match (has_only_proofs, proofs.len()) {
        (true, 1) => "The filesystem that was made",
        (true, _) => "The filesystem that was made first",
        (false, _) => "The disk and filesystem underneath",
    };
    Page {
        title: if has_only_proofs {
            heading.text.clone()
        } else {
            format!("{}: {}", heading.text, results.directory)
        },
        heading,
        subject,
        circumstances: made
            .into_iter()
            .chain([place, when(results)])
            .chain(effort)
            .collect(),
        plans: plans(results),
        sentences,
        front,
        claims: Claims::of(results.claims()),
        advised: advised(advice, scope),
        notices: results.notices.clone(),
        parts,
        foundation: foundation.to_owned(),
        facts: facts::facts(&results.host, &results.filesystem),
        command: results.command.clone(),
        version: results.version.clone(),
        schema: results.schema.clone(),
        document: (
            "results.json".into(),
            if has_only_proofs {
                "everything that was found".into()
            } else {
                "every trial".into()
            },
        ),
    }
}

/// The picture that belongs to the verdict. Those of other parts stand with their chapters.
fn first_picture(parts: &mut [Part]) -> Option<Chapter> {
    let mut pictures = parts.iter_mut().filter(|part| part.front.is_some());
    let first = pictures.next()?.front.take();
    for part in pictures {
        let own = part.front.take();
        part.chapters.splice(0..0, own);
    }
    first
}

fn recorder(proof: &ProofResults) -> String {
    let bytes = bytes_text(proof.device_bytes);
    format!("{} on a recorded device of {bytes}", proof.filesystem_spec)
}

fn heading(parts: &[Part]) -> String {
    match parts {
        [] => "What a durable write costs".to_owned(),
        [only] => only.title.clone(),
        _ => "What it costs to make data durable".to_owned(),
    }
}

fn when(results: &Results) -> String {
    let time = results.started.parse::<jiff::Timestamp>();
    time.map_or(results.started.clone(), |time| {
        time.strftime("%-d %B %Y, %H:%M UTC").to_string()
    })
}

/// The kernel, and how much was done.
fn plans(results: &Results) -> Vec<String> {
    let mut parts = vec![format!("Linux {}", results.host.kernel)];
    let experiments = results.experiments.iter();
    let plans: Vec<(&str, String)> = experiments
        .filter_map(|one| {
            let rounds = match one.findings()?.rounds() {
                1 => "1 round".to_owned(),
                rounds => format!("{rounds} rounds"),
            };
            Some((
                one.name(),
                format!("{}, {rounds}", one.findings()?.plan().name()),
            ))
        })
        .collect();
    let plans = match plans.as_slice() {
        [] => None,
        [(_, first), rest @ ..] if rest.iter().all(|(_, other)| other == first) => {
            Some(first.clone())
        }
        several => {
            let mut each: Vec<String> = Vec::new();
            for (name, plan) in several {
                let text = format!("{name}: {plan}");
                // Of several runs that were merged.
                if !each.contains(&text) {
                    each.push(text);
                }
            }
            Some(each.join("; "))
        }
    };
    if let Some(plans) = plans {
        parts.push(format!("{plans} in {}", duration_text(results.seconds)));
    }
    parts
}

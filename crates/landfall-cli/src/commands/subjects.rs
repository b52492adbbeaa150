//! `landfall subjects`: what can be measured and proven, and where it is.

use landfall_databases::Presence;
use landfall_prove::cluster;
use landfall_prove::subjects::{self, Description};
use serde_json::{Value, json};

use crate::args::Subjects;
use crate::commands::print_bytes;
use crate::exit::{Code, Failure};
use crate::terminal::table;

pub fn run(arguments: &Subjects) -> Result<Code, Failure> {
    let text = match &arguments.name {
        _ if arguments.json => format!("{:#}\n", document()),
        None => table::text(&table::subjects(
            landfall_databases::list(),
            subjects::list(),
            clusters(),
        )),
        Some(name) => {
            let databases = landfall_databases::list().filter(|(known, ..)| known.name == name);
            let proofs = subjects::list().filter(|known| known.name == name);
            let clusters = cluster::list()
                .into_iter()
                .filter(|known| known.name == name);
            let blocks = table::settings(databases.map(|(known, ..)| known), proofs, clusters);
            if blocks.is_empty() {
                let text = format!("there is no '{name}'; 'landfall subjects' says what there is");
                return Err(Failure::new(Code::Usage, text));
            }
            table::text(&blocks)
        }
    };
    print_bytes(text.as_bytes())
}

/// The clusters, with where they are if they are not in this program.
fn clusters() -> impl Iterator<Item = (&'static Description, Option<Presence>)> {
    let servers: Vec<_> = landfall_databases::clusters::list().collect();
    cluster::list().into_iter().map(move |known| {
        let server = servers
            .iter()
            .find(|(server, ..)| server.name == known.name);
        (known, server.map(|(.., presence)| presence.clone()))
    })
}

fn document() -> Value {
    let databases = landfall_databases::list().map(|(known, title, presence)| {
        let mut entry = described(known);
        entry["title"] = title.into();
        tell(&mut entry, presence);
        entry
    });
    let clusters = clusters().map(|(known, presence)| {
        let mut entry = described(known);
        if let Some(presence) = presence {
            tell(&mut entry, presence);
        }
        entry
    });
    json!({
        "databases": databases.collect::<Vec<_>>(),
        "proofs": subjects::list().map(described).collect::<Vec<_>>(),
        "clusters": clusters.collect::<Vec<_>>(),
    })
}

/// Says where it is.
fn tell(entry: &mut Value, presence: Presence) {
    match presence {
        Presence::Here { version, program } => {
            entry["version"] = version.into();
            entry["program"] = json!(program);
        }
        Presence::Absent { remedy } => entry["remedy"] = remedy.into(),
    }
}

fn described(known: &Description) -> Value {
    let settings = known.settings.iter().map(|setting| {
        json!({ "name": setting.name, "default": setting.default, "about": setting.about })
    });
    json!({
        "name": known.name,
        "about": known.about,
        "settings": settings.collect::<Vec<_>>(),
        "passes_on": known.passes_on.map(|passed_on| passed_on.what),
    })
}

//! The schemas in the documentation are the program's own.

use std::fs;
use std::path::Path;

use landfall_campaign::{Campaign, fleet};

#[test]
fn the_schemas_in_the_documentation_are_the_programs_own() {
    for (name, schema) in [
        ("campaign", Campaign::json_schema()),
        ("fleet", fleet::json_schema()),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/{name}.schema.json"));
        if std::env::var_os("LANDFALL_UPDATE").is_some() {
            fs::write(&path, &schema).unwrap();
        }
        let documented = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            documented == schema,
            "docs/reference/{name}.schema.json is stale: LANDFALL_UPDATE=1 cargo test -p landfall-campaign --test documented"
        );
    }
}

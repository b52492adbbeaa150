//! What is printed and written, held against what it should be.

use serde_json::Value;

/// The fields of a separated text, line by line, the header first.
pub fn lines_of(text: &str, delimiter: u8) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .from_reader(text.as_bytes());
    reader
        .records()
        // Lines of unequal length are errors to the reader.
        .map(|record| {
            record
                .expect("a whole line")
                .iter()
                .map(str::to_owned)
                .collect()
        })
        .collect()
}

/// No line is wider than the tables may be.
#[track_caller]
pub fn assert_narrow(text: &str) {
    for line in text.lines() {
        let width = line.chars().count();
        assert!(width <= 100, "{width} columns: {line}");
    }
}

/// The document fits the schema, and is read back with nothing lost on the way.
#[track_caller]
pub fn assert_conforms(document: &Value) {
    let schema: Value = serde_json::from_str(&landfall_lab::json_schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    let errors: Vec<String> = validator
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{}: {errors:#?}", document["command"]);
    let results = landfall_lab::Results::from_json(&document.to_string()).unwrap();
    let again: Value = serde_json::from_str(&results.to_json()).unwrap();
    assert_eq!(&again, document);
}

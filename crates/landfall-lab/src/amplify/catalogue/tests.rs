//! What a plan has.

use super::*;

#[test]
fn every_database_is_told_what_memory_it_has() {
    for entry in databases(&Plan::standard()) {
        let set = entry.loaded_with.iter().chain(&entry.settings);
        assert!(set.count() > 0, "{}", entry.name);
    }
}

#[test]
fn our_engine_is_loaded_once_for_each_page_size_and_what_it_keeps_in_memory() {
    let plan = Plan::standard();
    let all = landfall(&plan);
    let mut loads: Vec<&Settings> = Vec::new();
    for entry in &all {
        if !loads.contains(&&entry.loaded_with) {
            loads.push(&entry.loaded_with);
        }
        let pool = ("memory".to_owned(), plan.pool_bytes().to_string());
        assert!(entry.settings.contains(&pool), "{}", entry.name);
    }
    assert_eq!((loads.len(), all.len()), (5, 9));
}

#[test]
fn a_store_has_its_buffer_from_the_first_row_on() {
    let plan = Plan::standard();
    for percent in BUFFERS {
        let entry = buffer(&plan, percent);
        let set = ("buffer".to_owned(), percent.to_string());
        let pool = ("memory".to_owned(), plan.pool_bytes().to_string());
        assert!(entry.loaded_with.contains(&set), "{}", entry.name);
        for memory in [&entry.loaded_with, &entry.settings] {
            assert!(memory.contains(&pool), "{}", entry.name);
        }
    }
    let large = Plan {
        ids: 10_000_000,
        ..plan
    };
    let most = ("memory".to_owned(), LOADING_POOL.to_string());
    assert!(buffer(&large, 11).loaded_with.contains(&most));
}

#[test]
fn what_parts_are_held_against_is_there_once() {
    for parts in [
        vec![Part::Buffer],
        vec![Part::Databases],
        vec![Part::Buffer, Part::Databases],
        Part::ALL.to_vec(),
    ] {
        let plan = Plan {
            parts,
            ..Plan::standard()
        };
        let all = configurations(&plan);
        for name in [PAGES_16, WRITE_OPTIMISED] {
            let named = all.iter().filter(|one| one.name == name);
            assert_eq!(named.count(), 1, "{name} of {:?}", plan.parts);
        }
    }
}

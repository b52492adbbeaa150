//! A campaign on a real Slurm: from the plan to the verdict, by the job file as it is emitted.

mod common;

use std::fs;
use std::os::unix::fs::symlink;

use common::campaign::{assert_equals_one_run, plan};
use common::slurm::Slurm;
use common::{landfall, names, scratch};

#[test]
fn two_nodes_find_what_one_run_finds() {
    let Some(slurm) = Slurm::start() else { return };
    let cwd = scratch();
    let results = cwd.path().join("shared results");
    let results = results.to_str().expect("it is text");
    let (location, planned) = plan(landfall(), cwd.path(), results, 4, &["--emit", "slurm"]);
    assert!(planned.stdout.starts_with("#!/bin/sh"), "{planned:#?}");
    fs::write(cwd.path().join("campaign.sbatch"), &planned.stdout).unwrap();
    // Jobs find the program as users would have it.
    let programs = cwd.path().join("bin");
    fs::create_dir(&programs).unwrap();
    symlink(env!("CARGO_BIN_EXE_landfall"), programs.join("landfall")).unwrap();

    let shards = slurm.submit(cwd.path(), &programs, &["campaign.sbatch"]);
    let after = format!("--dependency=afterany:{shards}");
    slurm.submit(
        cwd.path(),
        &programs,
        &[&after, "--array=0", "campaign.sbatch"],
    );
    slurm.wait();
    assert_eq!(
        slurm.nodes(&shards),
        ["n1", "n2"],
        "{}",
        slurm.logs_of(cwd.path())
    );

    // The report came last, and found all of them.
    let said = slurm.logs_of(cwd.path());
    assert!(
        said.contains("something was lost, as all 4 shards found"),
        "{said}"
    );
    assert_equals_one_run(landfall, cwd.path(), &location, 4);

    // A shard once more: it is there, and nothing is written.
    let documents = || {
        let mut names = names(&std::path::Path::new(&location).join("shards/000003"));
        names.retain(|name| name.ends_with(".json"));
        names
    };
    let before = documents();
    assert_eq!(before.len(), 1);
    slurm.submit(cwd.path(), &programs, &["--array=3", "campaign.sbatch"]);
    slurm.wait();
    assert_eq!(documents(), before);
}

//! The playbook, played by Ansible itself: every shard once, whatever the number of hosts, and a report in any case.

mod common;

use std::fs;
use std::process::{Command, Output};

use common::{Noting, job, merge_and_report, run, skip};
use landfall_campaign::emit::{Job, Scheduler, emit};

/// What Ansible would take for a template, a vault or a path.
const CAMPAIGN: &str = "/{{ 1 + 1 }}/{% raw %}/$HOME/'a b'\"";

/// Plays the playbook on these hosts, of which no more is asked than that they are there; a merge ends badly.
fn play(noting: &Noting, job: &Job, hosts: &str) -> Output {
    let at = |name: &str| noting.dir().join(name);
    // Asked for ten times as often as on a fleet.
    let playbook = emit(Scheduler::Ansible, job).replace("poll: 10\n", "poll: 1\n");
    fs::write(at("campaign.yml"), playbook).unwrap();
    fs::write(at("hosts.ini"), format!("[landfall]\n{hosts}\n")).unwrap();
    let mut command = Command::new("ansible-playbook");
    command.args([
        "--inventory",
        "hosts.ini",
        "--extra-vars",
        "ansible_become=false",
        "campaign.yml",
    ]);
    noting.around(&mut command);
    for name in [
        "HOME",
        "ANSIBLE_HOME",
        "ANSIBLE_LOCAL_TEMP",
        "ANSIBLE_REMOTE_TEMP",
        "ANSIBLE_ASYNC_DIR",
    ] {
        command.env(name, at("home"));
    }
    command
        .env("ANSIBLE_PYTHON_INTERPRETER", "/usr/bin/python3")
        .env("ANSIBLE_NOCOLOR", "1")
        .env("ANSIBLE_PIPELINING", "1");
    command.env("LC_ALL", "C.UTF-8").env("VERDICT", "3");
    command.output().expect("Ansible can be run")
}

#[test]
fn hosts_share_the_shards_and_one_that_is_away_keeps_nobody_from_the_report() {
    if Command::new("ansible-playbook")
        .arg("--version")
        .output()
        .is_err()
    {
        return skip("ansible-playbook is not installed (Debian: ansible-core)");
    }
    let noting = Noting::named("land{{ fall");
    let job = Job {
        shards: 4,
        program: noting.program().to_owned(),
        ..job(CAMPAIGN)
    };
    // Nobody listens at this port.
    let away = "c ansible_host=127.0.0.1 ansible_port=1";
    let here = ["a", "b"].map(|host| format!("{host} ansible_connection=local"));
    let played = play(&noting, &job, &format!("{}\n{}\n{away}", here[0], here[1]));
    let location = format!("{CAMPAIGN}/{}", job.campaign);
    let mut expected = merge_and_report(&location).to_vec();
    // The third is of the host that is away.
    expected.extend([1, 2, 4].map(|shard| run(&location, shard, 4)));
    assert_eq!(noting.calls(), expected, "{played:?}");
    let said = String::from_utf8_lossy(&played.stdout);
    assert!(
        !played.status.success(),
        "the verdict is the playbook's: {said}"
    );
    assert!(said.contains("lost something"), "{said}");
}

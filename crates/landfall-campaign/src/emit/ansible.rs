//! Ansible: a playbook for the hosts of a group, and the report on the machine that plays it.
//!
//! A host runs the shard whose number is its place in the group; with fewer hosts than shards also every further one that is a whole
//! group behind. Nothing of a job is a template: values are marked `!unsafe`, which Ansible takes as they are, and `quote` makes words
//! of a shell of them. The module `command` would replace `$NAME` in its words, and cannot be told not to before Ansible 2.16.

use super::Job;
use super::quote::yaml;

pub fn emit(job: &Job) -> String {
    let (comment, environment) = if job.is_in_object_store() {
        (OBJECT_STORE, ENVIRONMENT)
    } else {
        (DIRECTORY, "")
    };
    format!(
        "\
# {title}: by the hosts of the group `landfall`, and a report after them.
#
#   ansible-playbook --inventory hosts.ini --forks 100 campaign.yml
#
# --forks is how many hosts work at the same time. To copy the program to them first, `--extra-vars landfall_file=./landfall`.
# This machine needs the program too, for the report. Running a shard again changes nothing: play it again to make up for
# hosts that failed.
{comment}
- name: {name}
  hosts: landfall
  # Proofs need root, FUSE and loop devices.
  become: true
  gather_facts: false
  # The report comes in any case, and names the shards that are missing.
  ignore_errors: true
  ignore_unreachable: true
  vars: &campaign
    campaign: !unsafe {location}
    landfall: !unsafe {program}
    shards: {shards}
{environment}  tasks:
    - name: Copy the program
      when: landfall_file is defined
      ansible.builtin.copy:
        src: \"{{{{ landfall_file }}}}\"
        dest: /usr/local/bin/landfall
        mode: \"0755\"

    # What a shard cannot send is kept there. Nobody else can write to it, or make it first.
    - name: Make a directory to work in
      ansible.builtin.file:
        path: /var/lib/landfall
        state: directory
        mode: \"0755\"

    # A host runs the shard of its place in the group, counted from 1, and each that is a whole group behind. So with --limit a
    # host has the same shards; those of a host that is gone for good are run when it is taken out of the inventory.
    - name: Run this host's shards
      vars:
        place: \"{{{{ groups['landfall'].index(inventory_hostname) + 1 }}}}\"
        group_size: \"{{{{ groups['landfall'] | length }}}}\"
      # A shell: the module command would replace what looks like a variable in the campaign's place.
      ansible.builtin.shell:
        cmd: \"{{{{ landfall | quote }}}} campaign run {{{{ campaign | quote }}}} --shard {{{{ item }}}}/{{{{ shards }}}}\"
        chdir: /var/lib/landfall
      loop: \"{{{{ range(place | int, shards + 1, group_size | int) | list }}}}\"
      register: shard
      changed_when: true
      # 3 says that the shard lost something: that is a result, and the report's to tell.
      failed_when: shard.rc | default(1) not in [0, 3]
      # A shard may take so many seconds. The connection need not last as long: Ansible asks now and then.
      async: 28800
      poll: 10

- name: The report
  hosts: localhost
  connection: local
  gather_facts: false
  vars: *campaign
{environment}  tasks:
    - name: Merge
      ansible.builtin.shell:
        cmd: \"{{{{ landfall | quote }}}} campaign merge {{{{ campaign | quote }}}}\"
      register: merged
      changed_when: true
      failed_when: false

    - name: Report
      ansible.builtin.shell:
        cmd: \"{{{{ landfall | quote }}}} campaign report {{{{ campaign | quote }}}}\"
      register: report
      changed_when: true
      failed_when: false

    - name: What came out
      ansible.builtin.debug:
        msg: \"{{{{ merged.stdout_lines + merged.stderr_lines + report.stdout_lines + report.stderr_lines }}}}\"

    - name: The verdict
      ansible.builtin.assert:
        that: merged.rc == 0 and report.rc == 0
        quiet: true
",
        title = job.title(),
        name = yaml(&format!("Campaign {}", job.label())),
        location = yaml(&job.location()),
        program = yaml(&job.program),
        shards = job.shards,
    )
}

const OBJECT_STORE: &str = "\
#
# Credentials of the object store are variables in a vault: `ansible-vault create group_vars/all/vault.yml` with the lines
# vault_aws_access_key_id: …, vault_aws_secret_access_key: … and aws_region: …; then add --ask-vault-pass.
";

const ENVIRONMENT: &str = "  environment:
    AWS_ACCESS_KEY_ID: \"{{ vault_aws_access_key_id }}\"
    AWS_SECRET_ACCESS_KEY: \"{{ vault_aws_secret_access_key }}\"
    AWS_REGION: \"{{ aws_region }}\"
    # For a store that is not Amazon's:
    # AWS_ENDPOINT_URL: https://s3.example.org
";

const DIRECTORY: &str = "\
#
# The directory of results is shared by all hosts and by the machine that plays this, under the same path.
";

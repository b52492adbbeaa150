//! Kubernetes: an Indexed Job with a pod for each shard, and a suspended Job for the report.
//!
//! Jobs cannot wait for each other without a controller of somebody else's, so that resuming the second one is a command in the file's
//! first comment. What only one of both needs stands in it; the rest is the same text twice, as a manifest has it.

use super::Job;
use super::quote::{kubernetes, shell, yaml, yaml_script};

/// A pod's host name is the Job's name, a hyphen and its index, and may have 63 characters.
const LONGEST_LABEL: usize = 24;

pub fn emit(job: &Job) -> String {
    let name = name(job);
    let shards = job.shards;
    let program = shell(&job.program);
    let run = format!(
        "shard=$((JOB_COMPLETION_INDEX + 1))\n\
         exec {program} campaign run \"$CAMPAIGN\" --shard \"$shard/{shards}\"\n"
    );
    let report = format!(
        "{program} campaign merge \"$CAMPAIGN\"\n\
         verdict=$?\n\
         {program} campaign report \"$CAMPAIGN\"\n\
         exit \"$verdict\"\n"
    );
    let store = Store::of(job);
    format!(
        "\
# {title}: an Indexed Job with a pod for each, and a report after them.
#
#   kubectl apply -f campaign.yaml
#   until kubectl get job {name} -o jsonpath='{{.status.conditions[*].type}}' | grep -qE 'Complete|Failed'
#   do sleep 10; done
#   kubectl patch job {name}-report -p '{{\"spec\":{{\"suspend\":false}}}}'
#   kubectl logs --follow --pod-running-timeout=10m job/{name}-report
#
# The report names shards that are missing. Running a shard again changes nothing: delete both Jobs and apply the file again.
# Needs Kubernetes 1.33 or newer, and a namespace that admits privileged pods.
{credentials}apiVersion: batch/v1
kind: Job
metadata:
  name: {quoted_name}
spec:
  completions: {shards}
  parallelism: {shards}
  completionMode: Indexed
  # A pod whose node was drained, or that failed otherwise, is made anew; the other shards go on.
  backoffLimitPerIndex: 2
  podFailurePolicy:
    rules:
      - action: Ignore
        onPodConditions:
          - type: DisruptionTarget
            status: \"True\"
      # 2: the command makes no sense; 3: it lost something, which is a result. A second try would end the same.
      - action: FailIndex
        onExitCodes:
          containerName: landfall
          operator: In
          values: [2, 3]
  # A week to read logs.
  ttlSecondsAfterFinished: 604800
  template:
    metadata:
      labels:
        landfall-campaign: {id}
    spec:
      restartPolicy: Never
      automountServiceAccountToken: false
      # For a shard, from when its pod starts. It is told to stop then, and has a minute to remove what it has made.
      activeDeadlineSeconds: 28800
      terminationGracePeriodSeconds: 60
      # One shard on a node at a time: what others write would be measured too. A campaign of proofs alone can do without.
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels:
                  landfall-campaign: {id}
      # Nodes with the disks that are to be measured, by a label that you have given them:
      # nodeSelector:
      #   disk: nvme
      containers:
        - name: landfall
          # An image of yours: landfall, mkfs of the filesystems, and the servers that are proven.
          image: landfall:latest
          command: [\"/bin/sh\", \"-c\"]
          # Indexes count from 0. Kubernetes reads $$ as one dollar.
          args:
            - {run}
          env:
            - name: CAMPAIGN
              value: {location}
            # Which node it ran on. Pods have other names each time, and two of them on one node are one machine.
            - name: LANDFALL_MACHINE
              valueFrom:
                fieldRef:
                  fieldPath: spec.nodeName
{env}          # Proofs mount filesystems on loop devices and FUSE.
          securityContext:
            privileged: true
          resources:
            requests:
              cpu: \"2\"
              memory: 4Gi
          volumeMounts:
            # Loop devices appear in the node's /dev, and not in one of the pod's own.
            - name: dev
              mountPath: /dev
            # The disk that is to be measured, under the path that the plan names:
            # - name: disk
            #   mountPath: /srv/db
{mount}      volumes:
        - name: dev
          hostPath:
            path: /dev
        # - name: disk
        #   hostPath:
        #     path: /srv/db
{volume}---
apiVersion: batch/v1
kind: Job
metadata:
  name: {quoted_report_name}
spec:
  # Until the shards have ended.
  suspend: true
  # Its exit code is the verdict: there is nothing to try again.
  backoffLimit: 0
  ttlSecondsAfterFinished: 604800
  template:
    spec:
      restartPolicy: Never
      automountServiceAccountToken: false
      containers:
        - name: landfall
          image: landfall:latest
          command: [\"/bin/sh\", \"-c\"]
          args:
            - {report}
          env:
            - name: CAMPAIGN
              value: {location}
{env}{mounts}{mount}{volumes}{volume}",
        title = job.title(),
        quoted_name = yaml(&name),
        quoted_report_name = yaml(&format!("{name}-report")),
        id = yaml(&job.campaign),
        run = yaml_script(&kubernetes(&run), 14),
        report = yaml_script(&kubernetes(&report), 14),
        location = yaml(&kubernetes(&store.location)),
        credentials = store.comment,
        env = store.env,
        mount = store.mount,
        volume = store.volume,
        mounts = if store.mount.is_empty() {
            ""
        } else {
            "          volumeMounts:\n"
        },
        volumes = if store.volume.is_empty() {
            ""
        } else {
            "      volumes:\n"
        },
    )
}

/// What of a pod depends on where results go.
struct Store {
    /// Where the campaign is, as a pod sees it.
    location: String,
    comment: &'static str,
    env: &'static str,
    mount: &'static str,
    volume: String,
}

impl Store {
    fn of(job: &Job) -> Store {
        if job.is_in_object_store() {
            return Store {
                location: job.location(),
                comment: "\
#
# Credentials of the object store are in a Secret. It is made once, of a file with lines such as AWS_REGION=eu-central-1:
# AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, and AWS_ENDPOINT_URL for a store that is not Amazon's:
#
#   kubectl create secret generic landfall-results --from-env-file=credentials.env
",
                env: "          envFrom:
            - secretRef:
                name: landfall-results
",
                mount: "",
                volume: String::new(),
            };
        }
        Store {
            // A path inside of a pod may not have a colon; one of a node may.
            location: format!("/results/{}", job.campaign),
            comment: "\
#
# Results go into a directory that all nodes share, such as one of NFS.
",
            env: "",
            mount: "            - name: results
              mountPath: /results
",
            volume: format!(
                "        - name: results
          hostPath:
            path: {}
            type: Directory
",
                yaml(&job.results)
            ),
        }
    }
}

/// A name that Kubernetes takes, and that no other campaign has.
fn name(job: &Job) -> String {
    let lower = |c: char| {
        let c = c.to_ascii_lowercase();
        if matches!(c, '_' | '.') { '-' } else { c }
    };
    let label: String = job.label().chars().map(lower).take(LONGEST_LABEL).collect();
    let name = format!("{}-{}", label.trim_matches('-'), job.campaign);
    name.trim_start_matches('-').to_owned()
}

//! Redis, etcd, Kafka and NATS.

use super::{APPEND, OVERWRITE, UNSYNCED};
use crate::rules::{Choice, Condition, Measured, Promise, Rule, Source, System, UNSET, Value};

/// etcd's own limit for the 99th percentile of a sync of its log, in microseconds.
const ETCD_P99: f64 = 10_000.0;

const REDIS: Rule = Rule {
    system: System::Redis,
    source: Source {
        title: "Redis persistence, Redis documentation",
        address: "https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/",
    },
    ..Rule::BLANK
};

pub(super) static RULES: [Rule; 8] = [
    Rule {
        id: "redis-appendonly",
        setting: "appendonly",
        default: "no",
        choices: &[
            Choice::durable("yes", Some(APPEND)),
            Choice::loses("no", Some(UNSYNCED), "all writes since the last snapshot"),
        ],
        measured_by: Some(Measured::Binlog),
        by_hand: "On a server that has data: CONFIG SET appendonly yes while it runs, then set it in the file. A restart without an append-only file may come up empty.",
        ..REDIS
    },
    Rule {
        id: "redis-appendfsync",
        setting: "appendfsync",
        default: "everysec",
        choices: &[
            Choice::durable("always", Some(APPEND)),
            Choice::loses(
                "everysec",
                Some(UNSYNCED),
                "the writes of about the last second",
            ),
            Choice::loses(
                "no",
                Some(UNSYNCED),
                "the writes of about the last 30 seconds",
            ),
        ],
        idle_with: Some(("appendonly", "no")),
        measured_by: Some(Measured::Planned),
        note: "With replicas: WAIT counts those that have received a write, synced or not. WAITAOF (7.2) counts those that have synced it.",
        ..REDIS
    },
    Rule {
        id: "redis-no-appendfsync-on-rewrite",
        setting: "no-appendfsync-on-rewrite",
        default: "no",
        choices: &[
            Choice::durable("no", Some(APPEND)),
            Choice::loses(
                "yes",
                Some(UNSYNCED),
                "the writes of about 30 seconds, while the file is rewritten",
            ),
        ],
        idle_with: Some(("appendonly", "no")),
        ..REDIS
    },
    Rule {
        id: "etcd-fsync",
        system: System::Etcd,
        setting: "unsafe-no-fsync",
        default: "false",
        choices: &[
            Choice::durable("false", Some(OVERWRITE)),
            Choice::damages("true", Some(UNSYNCED), "what the cluster has agreed on"),
        ],
        measured_by: Some(Measured::Planned),
        source: Source {
            title: "Configuration options, etcd documentation",
            address: "https://etcd.io/docs/v3.6/op-guide/configuration/",
        },
        ..Rule::BLANK
    },
    Rule {
        id: "etcd-slow-disk",
        system: System::Etcd,
        setting: "wal-dir",
        default: "this disk",
        choices: &[
            Choice::neutral(Value::Fixed("this disk"), None),
            Choice {
                promise: Promise::Fits,
                ..Choice::neutral(Value::Fixed("a faster disk"), None)
            },
        ],
        when: &[Condition::Slow {
            of: APPEND,
            us: ETCD_P99,
        }],
        source: Source {
            title: "Frequently asked questions, etcd documentation",
            address: "https://etcd.io/docs/v3.6/faq/",
        },
        note: "etcd asks for a p99 below 10 ms for syncs of its log, and below 25 ms for commits of its backend. Slower disks cost leader elections.",
        ..Rule::BLANK
    },
    Rule {
        id: "kafka-flush-messages",
        system: System::Kafka,
        setting: "log.flush.interval.messages",
        default: UNSET,
        choices: &[
            Choice {
                promise: Promise::Replicated(
                    "what no broker has written yet: durability rests on replicas",
                ),
                ..Choice::neutral(Value::Fixed(UNSET), Some(UNSYNCED))
            },
            Choice::durable("1", Some(APPEND)),
            Choice {
                promise: Promise::Replicated(
                    "that many messages on each broker: durability rests on replicas",
                ),
                ..Choice::loses_above(1, "")
            },
        ],
        source: Source {
            title: "Hardware and OS, Application vs. OS Flush Management, Kafka documentation",
            address: "https://kafka.apache.org/documentation/#appvsosflush",
        },
        note: "Kafka's documentation says to leave it unset and to use replication: acks=all, a replication factor of 3, min.insync.replicas=2. min.insync.replicas counts brokers that have a message in memory: where all lose power at once, it protects from nothing. A single broker loses what was not synced.",
        ..Rule::BLANK
    },
    Rule {
        id: "kafka-min-insync-replicas",
        system: System::Kafka,
        setting: "min.insync.replicas",
        default: "1",
        choices: &[
            Choice {
                promise: Promise::Replicated(
                    "what no broker has written yet, if all lose power: durability rests on replicas",
                ),
                ..Choice::neutral(Value::Fixed("2"), None).untried()
            },
            Choice::loses(
                "1",
                None,
                "what only the leader has, if that one fails: acks=all waits for it alone when no other is in step",
            )
            .untried(),
            Choice {
                promise: Promise::Replicated(
                    "what no broker has written yet, if all lose power: durability rests on replicas",
                ),
                ..Choice::loses_above(2, "")
            },
        ],
        by_hand: "Set 2 for topics with three replicas (default.replication.factor=3): a topic with fewer takes no more writes then.",
        source: Source {
            title: "Topic configs, Kafka documentation",
            address: "https://kafka.apache.org/documentation/#topicconfigs_min.insync.replicas",
        },
        ..Rule::BLANK
    },
    Rule {
        id: "nats-sync-interval",
        system: System::Nats,
        setting: "sync_interval",
        default: "2m",
        choices: &[
            Choice::durable("always", Some(APPEND)),
            Choice::loses(
                "2m",
                Some(UNSYNCED),
                "up to two minutes of messages, on every replica that loses power",
            ),
            Choice::loses_any_time(
                "up to that time of messages, on every replica that loses power",
            ),
        ],
        source: Source {
            title: "JetStream, NATS documentation",
            address: "https://docs.nats.io/running-a-nats-service/configuration/resource_management/configuration_mgmt",
        },
        note: "In the block jetstream of the server's file. Replicas on machines that fail one at a time keep what was acknowledged; a power cut of all loses it.",
        ..Rule::BLANK
    },
];

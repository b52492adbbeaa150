//! Serde and JSON Schema for what has one name, as `Display` writes it and `FromStr` reads it.

use std::borrow::Cow;
use std::fmt::Display;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Allocation, StreamMethod, SyncMethod};

macro_rules! by_name {
    ($($type:ident: $description:literal;)*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                parsed(&String::deserialize(deserializer)?)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "description": $description })
            }
        }
    )*};
}

by_name! {
    Allocation: "How the space that a write lands on was allocated, such as `append` or `step-64m`.";
    SyncMethod: "How a write is made durable, such as `fdatasync` or `direct+o_dsync`.";
    StreamMethod: "How bytes are handed to the kernel, such as `write` or `direct+io_uring`.";
}

fn parsed<T: std::str::FromStr<Err: Display>, E: Error>(name: &str) -> Result<T, E> {
    name.parse().map_err(E::custom)
}

//! What a commit is in the log: one record, whatever it changes, so that a power cut takes all of it or nothing.

use super::bytes::{Cursor, put_bytes, put_number};
use super::options::KeyspaceOptions;
use crate::Compression;

/// A key that is given a value, or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    pub keyspace: u32,
    pub key: Vec<u8>,
    /// `None`: it is removed.
    pub value: Option<Vec<u8>>,
}

/// What a record is, which may be read where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    /// Writes by keyspace and key, each key once.
    Writes(Vec<WriteRef<'a>>),
    /// A keyspace is made.
    Make {
        keyspace: u32,
        name: &'a str,
        options: KeyspaceOptions,
    },
    /// A keyspace and everything in it is removed.
    Remove { keyspace: u32 },
}

/// A [`Write`] whose key and value are elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteRef<'a> {
    pub keyspace: u32,
    pub key: &'a [u8],
    pub value: Option<&'a [u8]>,
}

impl Write {
    pub fn borrow(&self) -> WriteRef<'_> {
        WriteRef {
            keyspace: self.keyspace,
            key: &self.key,
            value: self.value.as_deref(),
        }
    }
}

const WRITES: u8 = 1;
const MAKE: u8 = 2;
const REMOVE: u8 = 3;

/// Appends the options of a keyspace.
pub(super) fn put_options(out: &mut Vec<u8>, options: &KeyspaceOptions) {
    put_number(out, options.leaf_bytes.into());
    put_number(out, options.compression.code().into());
}

pub(super) fn take_options(cursor: &mut Cursor<'_>) -> Option<KeyspaceOptions> {
    let leaf_bytes = cursor.number_u32()?;
    let compression = Compression::of_code(cursor.number_u32()?)?;
    let options = KeyspaceOptions {
        leaf_bytes,
        compression,
    };
    options.check().is_ok().then_some(options)
}

impl<'a> Record<'a> {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Record::Writes(writes) => {
                out.push(WRITES);
                let mut keyspace = None;
                for write in writes {
                    // Mostly that of the one before.
                    let is_other = keyspace != Some(write.keyspace);
                    let removed = u64::from(write.value.is_none());
                    put_number(&mut out, u64::from(is_other) << 1 | removed);
                    if is_other {
                        put_number(&mut out, write.keyspace.into());
                        keyspace = Some(write.keyspace);
                    }
                    put_bytes(&mut out, write.key);
                    if let Some(value) = write.value {
                        put_bytes(&mut out, value);
                    }
                }
            }
            Record::Make {
                keyspace,
                name,
                options,
            } => {
                out.push(MAKE);
                put_number(&mut out, (*keyspace).into());
                put_bytes(&mut out, name.as_bytes());
                put_options(&mut out, options);
            }
            Record::Remove { keyspace } => {
                out.push(REMOVE);
                put_number(&mut out, (*keyspace).into());
            }
        }
        out
    }

    /// `None`: it is none that this program knows.
    pub fn decode(bytes: &'a [u8]) -> Option<Record<'a>> {
        let mut cursor = Cursor::new(bytes);
        let record = match cursor.byte()? {
            WRITES => {
                let mut writes = Vec::new();
                let mut keyspace = None;
                while !cursor.is_empty() {
                    let flags = cursor.number().filter(|flags| *flags < 4)?;
                    if flags & 2 != 0 {
                        keyspace = Some(cursor.number_u32()?);
                    }
                    let key = cursor.bytes()?;
                    let value = if flags & 1 == 0 {
                        Some(cursor.bytes()?)
                    } else {
                        None
                    };
                    writes.push(WriteRef {
                        keyspace: keyspace?,
                        key,
                        value,
                    });
                }
                Record::Writes(writes)
            }
            MAKE => Record::Make {
                keyspace: cursor.number_u32()?,
                name: std::str::from_utf8(cursor.bytes()?).ok()?,
                options: take_options(&mut cursor)?,
            },
            REMOVE => Record::Remove {
                keyspace: cursor.number_u32()?,
            },
            _ => return None,
        };
        cursor.is_empty().then_some(record)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(writes: Vec<(u32, Vec<u8>, Option<Vec<u8>>)>) {
            let writes = writes.iter().map(|(keyspace, key, value)| WriteRef { keyspace: *keyspace, key, value: value.as_deref() });
            let record = Record::Writes(writes.collect());
            let encoded = record.encode();
            prop_assert_eq!(Record::decode(&encoded), Some(record));
        }

        #[test]
        fn nothing_panics_on_anything(bytes: Vec<u8>) {
            let _ = Record::decode(&bytes);
        }
    }

    #[test]
    fn keyspaces_are_decoded_too() {
        let made = Record::Make {
            keyspace: 300,
            name: "users",
            options: KeyspaceOptions::default(),
        };
        let removed = Record::Remove { keyspace: 1 };
        for record in [made, removed] {
            let mut bytes = record.encode();
            assert_eq!(Record::decode(&bytes), Some(record));
            bytes.push(0);
            assert_eq!(Record::decode(&bytes), None);
        }
    }
}

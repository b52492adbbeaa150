//! What a commit is in the log: one record, whatever it changes, so that a power cut takes all of it or nothing.

use super::bytes::{Cursor, put_bytes, put_number};
use super::options::KeyspaceOptions;
use super::protection::ProtectionChoice;
use crate::Compression;
use crate::compression::decompress;

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
    /// Leaves are protected like this from now on.
    Protect(ProtectionChoice),
    /// Runs may take so many percent of what leaves take from now on.
    Buffer(u8),
    /// Leaves that are about to be written at their homes: of each its page, compressed or not.
    Images(Vec<Image<'a>>),
}

/// A page as it is to be at its home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Image<'a> {
    /// The byte of the data file.
    pub offset: u64,
    /// Bytes of the page.
    pub length: u32,
    /// How it is compressed here.
    pub compression: Compression,
    pub bytes: &'a [u8],
}

impl Image<'_> {
    /// The page; `None`: that is none.
    pub fn page(&self) -> Option<Vec<u8>> {
        if self.compression == Compression::None {
            return (self.bytes.len() == self.length as usize).then(|| self.bytes.to_vec());
        }
        let mut page = vec![0; self.length as usize];
        decompress(self.compression, self.bytes, &mut page).then_some(page)
    }
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
const PROTECT: u8 = 4;
const IMAGES: u8 = 5;
const BUFFER: u8 = 6;

/// Bytes that the page of a home has at the most.
const MOST_IMAGE: u32 = 16 << 10;

const IN_PLACE: u64 = 1;
const WHOLE_LEAVES: u64 = 2;

/// Appends the options of a keyspace.
pub(super) fn put_options(out: &mut Vec<u8>, options: &KeyspaceOptions) {
    put_number(out, options.leaf_bytes.into());
    put_number(out, options.compression.code().into());
    let in_place = if options.in_place { IN_PLACE } else { 0 };
    let whole_leaves = if options.whole_leaves {
        WHOLE_LEAVES
    } else {
        0
    };
    put_number(out, in_place | whole_leaves);
}

pub(super) fn take_options(cursor: &mut Cursor<'_>) -> Option<KeyspaceOptions> {
    let leaf_bytes = cursor.number_u32()?;
    let compression = Compression::of_code(cursor.number_u32()?)?;
    let flags = cursor.number()?;
    if flags & !(IN_PLACE | WHOLE_LEAVES) != 0 {
        return None;
    }
    let options = KeyspaceOptions {
        leaf_bytes,
        compression,
        in_place: flags & IN_PLACE != 0,
        whole_leaves: flags & WHOLE_LEAVES != 0,
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
            Record::Protect(choice) => {
                out.push(PROTECT);
                choice.put(&mut out);
            }
            Record::Buffer(percent) => out.extend([BUFFER, *percent]),
            Record::Images(images) => {
                out.push(IMAGES);
                for image in images {
                    put_number(&mut out, image.offset);
                    put_number(&mut out, image.length.into());
                    put_number(&mut out, image.compression.code().into());
                    put_bytes(&mut out, image.bytes);
                }
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
            PROTECT => Record::Protect(ProtectionChoice::take(&mut cursor)?),
            BUFFER => Record::Buffer(cursor.byte()?),
            IMAGES => {
                let mut images = Vec::new();
                while !cursor.is_empty() {
                    images.push(Image {
                        offset: cursor.number()?,
                        length: cursor.number_u32().filter(|length| *length <= MOST_IMAGE)?,
                        compression: Compression::of_code(cursor.number_u32()?)?,
                        bytes: cursor.bytes()?,
                    });
                }
                Record::Images(images)
            }
            _ => return None,
        };
        cursor.is_empty().then_some(record)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::protection::Protection;
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
        fn nothing_panics_on_anything(kind in 0_u8..8, bytes: Vec<u8>) {
            let bytes = [&[kind][..], &bytes].concat();
            if let Some(Record::Images(images)) = Record::decode(&bytes) {
                images.iter().for_each(|image| drop(image.page()));
            }
        }
    }

    #[test]
    fn keyspaces_are_decoded_too() {
        let made = Record::Make {
            keyspace: 300,
            name: "users",
            options: KeyspaceOptions::default(),
        };
        let in_place = Record::Make {
            keyspace: 1,
            name: "accounts",
            options: KeyspaceOptions::default().in_place(true).whole_leaves(true),
        };
        let removed = Record::Remove { keyspace: 1 };
        let protected = Record::Protect(ProtectionChoice::asked(Protection::Image));
        let image = |offset, bytes| Image {
            offset,
            length: 3,
            compression: Compression::None,
            bytes,
        };
        assert_eq!(image(0, b"abc").page(), Some(b"abc".to_vec()));
        assert_eq!(image(0, b"ab").page(), None);
        let images = Record::Images(vec![image(512, b"abc"), image(1024, b"xyz")]);
        let buffered = Record::Buffer(11);
        for record in [made, in_place, removed, protected, buffered, images] {
            let mut bytes = record.encode();
            assert_eq!(Record::decode(&bytes), Some(record));
            bytes.push(0);
            assert_eq!(Record::decode(&bytes), None);
        }
    }
}

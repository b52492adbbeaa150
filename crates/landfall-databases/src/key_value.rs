//! What workloads ask of a database with keys.

use super::DatabaseError;

/// Changes that are made together: all of them or none. `None` deletes the key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch(pub Vec<(Vec<u8>, Option<Vec<u8>>)>);

impl Batch {
    /// Sets a key.
    pub fn put(&mut self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) {
        self.0.push((key.into(), Some(value.into())));
    }

    /// Takes a key away.
    pub fn delete(&mut self, key: impl Into<Vec<u8>>) {
        self.0.push((key.into(), None));
    }
}

/// A connection to a database with keys.
///
/// It offers atomic batches and no transactions that read: whoever must not be overtaken between
/// reading and writing holds a lock of its own.
pub trait KeyValue: Send {
    /// The value of a key.
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DatabaseError>;

    /// Visits the keys from `from` on, in ascending order, until the visitor says `false` or there are
    /// no more that are less than `to`. An error where keys have no order.
    fn scan(
        &mut self,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), DatabaseError>;

    /// How many keys there are, where keys have no order by which they could be found; `None`: it does not say.
    fn count(&mut self) -> Result<Option<u64>, DatabaseError> {
        Ok(None)
    }

    /// Makes the changes; returns when they are as durable as the settings promise.
    fn commit(&mut self, batch: &Batch) -> Result<(), DatabaseError>;
}

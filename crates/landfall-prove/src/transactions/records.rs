//! Transactions as records of a log: a number, little-endian, and bytes that follow from it.

use super::pseudo_random;
use crate::subject::Recovered;

/// Bytes that say whose a record is.
const HEAD: usize = 8;
/// A record is from so many bytes to twice as many, so that records end anywhere in a sector.
const LEAST: usize = 200;

/// The record that `transaction` appends.
pub fn record(transaction: u64) -> Vec<u8> {
    let mut record = vec![0; LEAST + (transaction % LEAST as u64) as usize];
    record[..HEAD].copy_from_slice(&transaction.to_le_bytes());
    pseudo_random(&mut record[HEAD..], transaction);
    record
}

/// What is left of the transactions whose records these are.
pub(super) fn found<R: AsRef<[u8]>>(records: impl IntoIterator<Item = R>) -> Recovered {
    let mut found = Recovered::default();
    for bytes in records {
        let bytes = bytes.as_ref();
        let transaction = bytes
            .split_first_chunk()
            .map(|(number, _)| u64::from_le_bytes(*number))
            .filter(|number| *number > 0);
        let Some(transaction) = transaction else {
            let text = format!("a record of {} bytes is nobody's", bytes.len());
            found.invented.push(text);
            continue;
        };
        let whole = record(transaction);
        if bytes == whole {
            if !found.whole.insert(transaction) {
                let text = format!("the record of transaction {transaction} is there twice");
                found.invented.push(text);
            }
        } else if whole.starts_with(bytes) {
            found.partial.insert(transaction);
        } else {
            let text = format!("the record of transaction {transaction} holds other bytes");
            found.invented.push(text);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_that_were_appended_are_recognised() {
        assert_eq!(found((1..=300).map(record)).whole, (1..=300).collect());
    }

    #[test]
    fn what_is_not_whole_is_a_part_or_invented() {
        let of = |bytes: &[u8]| found([bytes]);
        let whole = record(7);
        assert_eq!(of(&whole[..whole.len() - 1]).partial, [7].into());
        let mut other = whole.clone();
        other[50] ^= 1;
        assert_eq!(of(&other).invented.len(), 1);
        assert_eq!(of(&[whole.clone(), vec![0]].concat()).invented.len(), 1);
        assert_eq!(of(&[0; 300]).invented.len(), 1);
        assert_eq!(of(b"short").invented.len(), 1);
        assert_eq!(found([&whole, &whole]).invented.len(), 1);
    }
}

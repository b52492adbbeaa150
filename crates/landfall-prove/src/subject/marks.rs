//! What a process reports of its transactions: lines of text.

use std::fmt;

use landfall_results::proof::Hazard;

/// One report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// This transaction is about to begin: `send N`.
    Sent(u64),
    /// This transaction is durable: `ack N`, or `N` alone.
    Acknowledged(u64),
    /// Something begins that a power cut should meet: `begin checkpoint`.
    Began(Hazard),
    /// It is over: `end checkpoint`.
    Ended(Hazard),
    /// It happened so often since the recording began, as the subject counts itself: `count checkpoint N`.
    Counted(Hazard, u64),
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mark::Sent(transaction) => write!(f, "send {transaction}"),
            Mark::Acknowledged(transaction) => write!(f, "ack {transaction}"),
            Mark::Began(what) => write!(f, "begin {}", what.name()),
            Mark::Ended(what) => write!(f, "end {}", what.name()),
            Mark::Counted(what, times) => write!(f, "count {} {times}", what.name()),
        }
    }
}

/// What was written as a mark and is none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' was written to {{ack}}, and is no mark: a write there has whole lines, each 'send N' or \
     'ack N' with N counted from 1, or 'begin checkpoint' and the like"
)]
pub struct MarkError(String);

/// Reads what one write(2) reported, in its order.
pub fn parse_marks(bytes: &[u8]) -> Result<Vec<Mark>, MarkError> {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| parse(line).ok_or_else(|| MarkError(line.escape_debug().to_string())))
        .collect()
}

fn parse(line: &str) -> Option<Mark> {
    let mut words = line.split_whitespace();
    let mark = match words.next()? {
        "send" => Mark::Sent(number(words.next()?)?),
        "ack" => Mark::Acknowledged(number(words.next()?)?),
        "begin" => Mark::Began(hazard(words.next()?)?),
        "end" => Mark::Ended(hazard(words.next()?)?),
        "count" => Mark::Counted(hazard(words.next()?)?, natural(words.next()?)?),
        alone => Mark::Acknowledged(number(alone)?),
    };
    words.next().is_none().then_some(mark)
}

/// The number of a transaction.
pub(crate) fn number(word: &str) -> Option<u64> {
    natural(word).filter(|number| *number > 0)
}

fn natural(word: &str) -> Option<u64> {
    // Not "+1", which Rust would take.
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
    word.parse().ok().filter(|_| is_number)
}

fn hazard(name: &str) -> Option<Hazard> {
    Hazard::ALL.into_iter().find(|hazard| hazard.name() == name)
}

#[cfg(test)]
mod tests {
    use super::Mark::{Acknowledged, Sent};
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn parsed(text: &str) -> Result<Vec<Mark>, MarkError> {
        parse_marks(text.as_bytes())
    }

    #[test]
    fn a_write_has_one_line_or_several() {
        assert_eq!(parsed("send 1\n"), Ok(vec![Sent(1)]));
        assert_eq!(parsed("ack 12\n"), Ok(vec![Acknowledged(12)]));
        assert_eq!(parsed("12\n"), Ok(vec![Acknowledged(12)]));
        assert_eq!(parsed("ack 1\r\n"), Ok(vec![Acknowledged(1)]));
        assert_eq!(
            parsed("ack 1\n\nsend 2\n3"),
            Ok(vec![Acknowledged(1), Sent(2), Acknowledged(3)])
        );
        assert_eq!(parsed(""), Ok(vec![]));
        for what in Hazard::ALL {
            let all = [Mark::Began(what), Mark::Ended(what), Mark::Counted(what, 0)];
            let text: String = all.iter().map(|mark| format!("{mark}\n")).collect();
            assert_eq!(parsed(&text), Ok(all.to_vec()));
        }
    }

    #[test]
    fn anything_else_is_an_error_that_names_it() {
        for wrong in [
            "send",
            "ack",
            "ack 0",
            "ack -1",
            "ack +1",
            "ack 1 2",
            "1 2",
            "acked 1",
            "ack one",
            "ack 1.0",
            "ACK 1",
            "99999999999999999999",
            "begin",
            "begin 1",
            "end checkpoints",
            "count checkpoint",
            "count checkpoint -1",
        ] {
            let error = parsed(&format!("ack 1\n{wrong}\n"))
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with(&format!("'{wrong}' was written to {{ack}}")),
                "{error}"
            );
        }
        let error = parse_marks(b"\xff\0\n").unwrap_err().to_string();
        assert!(error.starts_with("'\u{fffd}\\0' was"), "{error}");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(numbers in proptest::collection::vec(1u64.., 0..20)) {
            let marks = numbers.iter().map(|&n| if n % 2 == 0 { Sent(n) } else { Acknowledged(n) });
            let marks: Vec<Mark> = marks.collect();
            let text: String = marks.iter().map(|mark| format!("{mark}\n")).collect();
            prop_assert_eq!(parsed(&text), Ok(marks));
        }

        #[test]
        fn no_bytes_are_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = parse_marks(&bytes);
        }
    }
}

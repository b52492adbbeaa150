//! Published claims with their verdicts and sources.

use crate::Results;
use crate::claim::{ClaimResult, Verdict};
use crate::numbers::{NOTHING, interval, two};

/// A published claim as the page shows it.
pub(super) struct Claim<'a> {
    pub result: &'a ClaimResult,
    pub published: String,
    pub today: String,
    pub interval: String,
    pub class: &'static str,
    pub sign: &'static str,
    pub source: usize,
}

/// A source of claims, its address apart from its text.
pub(super) struct Source<'a> {
    pub number: usize,
    pub text: &'a str,
    pub address: Option<&'a str>,
}

impl Source<'_> {
    fn says_as(&self, other: &Source<'_>) -> bool {
        (self.text, self.address) == (other.text, other.address)
    }
}

/// The claims of all experiments, and what they cite, each source once.
pub(super) fn claims(results: &Results) -> (Vec<Claim<'_>>, Vec<Source<'_>>) {
    let mut sources: Vec<Source<'_>> = Vec::new();
    let claims = results
        .claims()
        .map(|result| {
            let cited = source(sources.len() + 1, &result.source);
            let number = match sources.iter().find(|known| known.says_as(&cited)) {
                Some(known) => known.number,
                None => {
                    sources.push(cited);
                    sources.len()
                }
            };
            let (class, sign) = match result.verdict {
                Verdict::Holds => ("holds", "✓"),
                Verdict::DoesNotHold => ("fails", "✕"),
                Verdict::CannotBeTold => ("doubt", "?"),
            };
            let or_nothing = |text: Option<String>| text.unwrap_or(NOTHING.to_owned());
            Claim {
                result,
                published: or_nothing(result.published.map(two)),
                today: or_nothing(result.today.map(|today| two(today.median))),
                interval: or_nothing(result.today.map(|today| interval(&today, two))),
                class,
                sign,
                source: number,
            }
        })
        .collect();
    (claims, sources)
}

/// A source, its address apart from its text.
fn source(number: usize, text: &str) -> Source<'_> {
    let at = text.find("https://").or_else(|| text.find("http://"));
    let (text, address) = match at {
        Some(at) => (
            text[..at].trim_end_matches([' ', ',']),
            text[at..].split_whitespace().next(),
        ),
        None => (text, None),
    };
    Source {
        number,
        text,
        address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_told_from_the_text_before_it() {
        let source = source(
            1,
            "A. Writer, \"A post\", 2009, http://example.org/post.html",
        );
        assert_eq!(source.text, "A. Writer, \"A post\", 2009");
        assert_eq!(source.address, Some("http://example.org/post.html"));
    }
}

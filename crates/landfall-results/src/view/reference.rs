//! What is cited, numbered from 1.

/// A published text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// What it is called, and who wrote it where.
    pub text: String,
    /// Where it is, if that is known.
    pub address: Option<String>,
}

impl Reference {
    /// Of a source whose text ends with where it is on the web, if it is there.
    pub fn of(source: &str) -> Reference {
        let at = source.find("https://").or_else(|| source.find("http://"));
        let (text, address) = match at {
            Some(at) => (
                source[..at].trim_end_matches([' ', ',']),
                source[at..].split_whitespace().next(),
            ),
            None => (source, None),
        };
        Reference {
            text: text.to_owned(),
            address: address.map(str::to_owned),
        }
    }

    /// Where it is on the web, if it is there.
    pub fn link(&self) -> Option<&str> {
        let is_on_the_web =
            |address: &&str| address.starts_with("https://") || address.starts_with("http://");
        self.address.as_deref().filter(is_on_the_web)
    }
}

/// What is cited, each once, in the order of the numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References(Vec<Reference>);

impl References {
    /// The number of a reference, which is put to the others if it is new.
    pub fn cite(&mut self, reference: Reference) -> usize {
        let known = self.0.iter().position(|known| *known == reference);
        let index = known.unwrap_or_else(|| {
            self.0.push(reference);
            self.0.len() - 1
        });
        index + 1
    }

    /// From number 1 on.
    pub fn iter(&self) -> std::slice::Iter<'_, Reference> {
        self.0.iter()
    }

    /// Whether nothing is cited.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_told_from_the_text_before_it() {
        let source = "A. Writer, \"A post\", 2009, http://example.org/post.html";
        let reference = Reference::of(source);
        assert_eq!(reference.text, "A. Writer, \"A post\", 2009");
        let address = reference.address.as_deref();
        assert_eq!(address, Some("http://example.org/post.html"));
        assert_eq!(reference.link(), address);
        let inside = Reference {
            address: Some("src/lib.rs".to_owned()),
            ..reference
        };
        assert_eq!(inside.link(), None, "no file is a page");
    }

    #[test]
    fn what_is_cited_twice_has_one_number() {
        let mut references = References::default();
        let numbers = ["a", "b", "a"].map(|text| references.cite(Reference::of(text)));
        assert_eq!(numbers, [1, 2, 1]);
        assert_eq!(references.iter().count(), 2);
    }
}

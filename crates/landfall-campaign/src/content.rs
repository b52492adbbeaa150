//! Names of documents: what they contain decides.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of some bytes, written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    /// That of these bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Digest, String> {
        let bytes = from_hex(text).filter(|_| text.len() == 64);
        let bytes = bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        bytes
            .map(Digest)
            .ok_or_else(|| "a document's name is 64 hexadecimal digits".to_owned())
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.to_string()
    }
}

impl TryFrom<String> for Digest {
    type Error = String;

    fn try_from(text: String) -> Result<Digest, String> {
        text.parse()
    }
}

impl JsonSchema for Digest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The SHA-256 of some bytes.",
            "type": "string",
            "pattern": "^[0-9a-f]{64}$"
        })
    }
}

/// What a campaign is called: the first 16 digits of its plan's digest.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String")]
pub struct CampaignId(String);

impl CampaignId {
    const DIGITS: usize = 16;

    /// That of a plan with this digest.
    pub fn of(plan: Digest) -> CampaignId {
        let mut digits = plan.to_string();
        digits.truncate(CampaignId::DIGITS);
        CampaignId(digits)
    }

    /// Its digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CampaignId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for CampaignId {
    type Err = String;

    fn from_str(text: &str) -> Result<CampaignId, String> {
        if text.len() == CampaignId::DIGITS && from_hex(text).is_some() {
            Ok(CampaignId(text.to_owned()))
        } else {
            Err(format!(
                "'{text}' is no campaign: those are called by 16 hexadecimal digits"
            ))
        }
    }
}

impl TryFrom<String> for CampaignId {
    type Error = String;

    fn try_from(text: String) -> Result<CampaignId, String> {
        text.parse()
    }
}

/// Bytes of lower-case hexadecimal digits: one text for one number.
fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let pair = |pair: &[u8]| Some(digit(pair.first()?)? << 4 | digit(pair.get(1)?)?);
    text.as_bytes().chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_back_and_nothing_else_is_one() {
        let digest = Digest::of(b"abc");
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_string(), known);
        assert_eq!(known.parse(), Ok(digest));
        for wrong in [
            "",
            "ba",
            &known[1..],
            &known.to_uppercase(),
            &known.replace('b', "g"),
        ] {
            assert!(wrong.parse::<Digest>().is_err(), "{wrong}");
        }
        let id = CampaignId::of(digest);
        assert_eq!(id.as_str(), &known[..16]);
        assert_eq!(id.as_str().parse(), Ok(id));
        for wrong in [
            "",
            "ba7816bf8f01cfe",
            "BA7816BF8F01CFEA",
            "../16bf8f01cfea4",
        ] {
            assert!(wrong.parse::<CampaignId>().is_err(), "{wrong}");
        }
    }
}

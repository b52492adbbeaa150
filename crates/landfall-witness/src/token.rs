//! The secret that a witness and its writers share.
//!
//! It never goes over the network and never stands on a command line, where every user of the machine would see it.

use std::fmt;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::Error;

/// Bytes of a message authentication code, and of a key.
pub(crate) const MAC: usize = 32;
/// Characters of a token that are the fewest: what is shorter is guessed.
const FEWEST: usize = 16;
/// Bytes of a token's file that are the most.
const MOST: u64 = 4096;

/// A key for message authentication codes: HMAC with SHA-256 (RFC 2104).
#[derive(Clone)]
pub(crate) struct Key([u8; MAC]);

/// The secret that a witness and its writers share.
#[derive(Clone)]
pub struct Token(Key);

impl Key {
    fn over(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        // As HMAC pads a key that is shorter than a block of its hash.
        let mut block = [0; 64];
        block[..MAC].copy_from_slice(&self.0);
        let mut mac = Hmac::<Sha256>::new(&block.into());
        for part in parts {
            mac.update(part);
        }
        mac
    }

    /// The code of these bytes, one part behind the other.
    pub fn mac(&self, parts: &[&[u8]]) -> [u8; MAC] {
        self.over(parts).finalize().into_bytes().into()
    }

    /// Whether it is the code of these bytes; it takes as long for any that is not.
    pub fn is_mac(&self, parts: &[&[u8]], code: &[u8]) -> bool {
        self.over(parts).verify_slice(code).is_ok()
    }

    /// Another key, for this purpose.
    pub fn derive(&self, parts: &[&[u8]]) -> Key {
        Key(self.mac(parts))
    }
}

impl Token {
    /// The token of this text, without white space around it.
    pub fn parse(text: &str) -> Result<Token, Error> {
        let text = text.trim();
        if text.chars().count() < FEWEST {
            let text = format!(
                "the token has fewer than {FEWEST} characters; make one with: head -c 32 /dev/urandom | base64"
            );
            return Err(Error::Usage(text));
        }
        // Of any length, made one key.
        let any = Key([0; MAC]);
        Ok(Token(
            any.derive(&[b"landfall witness token", text.as_bytes()]),
        ))
    }

    /// The token in a file that nobody else can read.
    pub fn read(path: &Path) -> Result<Token, Error> {
        let name = path.display();
        let cannot = |error| Error::Usage(format!("cannot read the token in {name}: {error}"));
        let metadata = fs::metadata(path).map_err(cannot)?;
        if metadata.permissions().mode() & 0o077 != 0 {
            let text = format!("other users can read the token in {name}; chmod 600 it");
            return Err(Error::Usage(text));
        }
        if !metadata.is_file() || metadata.size() > MOST {
            let text = format!("{name} is no file of a token: one line of text");
            return Err(Error::Usage(text));
        }
        Token::parse(&fs::read_to_string(path).map_err(cannot)?)
    }

    pub(crate) fn key(&self) -> &Key {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_hmac_with_sha_256() {
        // RFC 4231, test case 2 with its key padded to a block, as HMAC pads it.
        let mut key = [0; MAC];
        key[..4].copy_from_slice(b"Jefe");
        let code = Key(key).mac(&[b"what do ya want ", b"for nothing?"]);
        assert_eq!(code[..8], [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e]);
        assert!(Key(key).is_mac(&[b"what do ya want for nothing?"], &code));
        assert!(!Key(key).is_mac(&[b"what do ya want for nothing!"], &code));
        assert!(!Key(key).is_mac(&[b"what do ya want for nothing?"], &code[..31]));
    }

    #[test]
    fn a_token_is_long_private_and_not_shown() {
        assert!(Token::parse("too short").is_err());
        let token = Token::parse(" 0123456789abcdef\n").unwrap();
        assert_eq!(format!("{token:?}"), "Token");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        fs::write(&path, "0123456789abcdef\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = Token::read(&path).unwrap_err().to_string();
        assert!(error.contains("chmod 600"), "{error}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let read = Token::read(&path).unwrap();
        assert_eq!(read.key().mac(&[b"x"]), token.key().mac(&[b"x"]));
        assert!(Token::read(directory.path()).is_err());
    }
}

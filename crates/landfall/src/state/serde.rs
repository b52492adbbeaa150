//! States that serde can write.

use std::io::{self, Read, Write};

use ::serde::Serialize;
use ::serde::de::DeserializeOwned;

use super::{BoxedError, State};

/// A state, and commands, that serde can write: all that is left to say is what a command does.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path().join("names");
/// use std::collections::BTreeMap;
/// use landfall::{Journaled, Serde, SerdeState, StateOptions};
///
/// #[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
/// struct Names(BTreeMap<String, String>);
///
/// impl SerdeState for Names {
///     type Command = (String, String);
///     type Output = Option<String>;
///     fn apply(&mut self, (name, value): (String, String)) -> Option<String> {
///         self.0.insert(name, value)
///     }
/// }
///
/// let names = Journaled::<Serde<Names>>::open(&directory, StateOptions::default())?;
/// names.apply(("here".into(), "there".into()))?;
/// assert_eq!(names.read(0, |names| names.0.0.len()), 1);
/// # Ok(())
/// # }
/// ```
///
/// A part is copied when a snapshot is taken, and written as [postcard](https://docs.rs/postcard) of the copy. A large state
/// that must not wait for that has many parts, or a structure of which a clone shares what does not change.
pub trait SerdeState:
    Clone + Default + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// A change.
    type Command: Serialize + DeserializeOwned;
    /// What it gives back.
    type Output;
    /// How many parts there are.
    const PARTS: u32 = 1;

    /// Which part a command is for.
    fn part(_command: &Self::Command) -> u64 {
        0
    }

    /// Applies a command to its part.
    fn apply(&mut self, command: Self::Command) -> Self::Output;
}

/// A [`SerdeState`] as a [`State`].
#[derive(Clone, Debug, Default)]
pub struct Serde<S>(pub S);

impl<S: SerdeState> State for Serde<S> {
    type Command = S::Command;
    type Output = S::Output;
    type Capture = S;

    const PARTS: u32 = S::PARTS;

    fn part(command: &S::Command) -> u64 {
        S::part(command)
    }

    fn apply(&mut self, command: S::Command) -> S::Output {
        self.0.apply(command)
    }

    fn encode(command: &S::Command, out: &mut Vec<u8>) -> Result<(), BoxedError> {
        postcard::to_io(command, out)?;
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<S::Command, BoxedError> {
        Ok(postcard::from_bytes(bytes)?)
    }

    fn capture(&self) -> S {
        self.0.clone()
    }

    fn write(capture: S, out: &mut dyn Write) -> io::Result<()> {
        postcard::to_io(&capture, out)
            .map(drop)
            .map_err(io::Error::other)
    }

    fn read(input: &mut dyn Read) -> io::Result<Serde<S>> {
        let mut bytes = Vec::new();
        input.read_to_end(&mut bytes)?;
        postcard::from_bytes(&bytes)
            .map(Serde)
            .map_err(io::Error::other)
    }
}

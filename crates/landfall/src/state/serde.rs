//! States that serde can write.

use std::io::{self, Read, Write};
use std::ops::{Deref, DerefMut};

use ::serde::Serialize;
use ::serde::de::DeserializeOwned;

use super::{BoxedError, State};

/// A state that serde can write, with commands that serde can write. You only say what a command does.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path().join("names");
/// use std::collections::BTreeMap;
/// use landfall::{Journaled, Serde, SerdeState, StateOptions};
///
/// #[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
/// struct Names {
///     values: BTreeMap<String, String>,
/// }
///
/// impl SerdeState for Names {
///     type Command = (String, String);
///     type Output = Option<String>;
///     fn apply(&mut self, (name, value): (String, String)) -> Option<String> {
///         self.values.insert(name, value)
///     }
/// }
///
/// let names = Journaled::<Serde<Names>>::open(&directory, StateOptions::default())?;
/// names.apply(("here".into(), "there".into()))?;
/// assert_eq!(names.read(0, |names| names.values.len()), 1);
/// # Ok(())
/// # }
/// ```
///
/// Postcard does not describe itself: what one type wrote another may read as something else. Opening refuses bytes that
/// do not fit, but cannot see every change. So append variants at the end of an `enum` of commands, and begin a new
/// directory for any other change of the command or of the state.
///
/// A snapshot copies a part, and then writes the copy as [postcard](https://docs.rs/postcard). Commands for that part wait
/// while it is copied. A large state has many parts, or a structure whose clone shares what does not change.
pub trait SerdeState:
    Clone + Default + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// A change of the state.
    type Command: Serialize + DeserializeOwned;
    /// What a command returns.
    type Output;
    /// Number of parts. It cannot be changed once there is a snapshot.
    const PARTS: u32 = 1;

    /// The part that a command is for, modulo [`PARTS`](SerdeState::PARTS): always the same for the same command. See
    /// [`part_of`](crate::part_of).
    fn part(_command: &Self::Command) -> u64 {
        0
    }

    /// Applies a command to its part.
    ///
    /// What it does must follow from the state and the command alone: after a restart the same commands are applied again,
    /// and must come to the same. If it panics, the command has not happened; its part takes no more commands from this
    /// handle.
    fn apply(&mut self, command: Self::Command) -> Self::Output;
}

/// A [`SerdeState`] as a [`State`]. It derefs to the state.
#[derive(Clone, Debug, Default)]
pub struct Serde<S>(pub S);

impl<S> Deref for Serde<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

impl<S> DerefMut for Serde<S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.0
    }
}

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
        whole(bytes)
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
        whole(&bytes).map(Serde).map_err(io::Error::other)
    }
}

/// What is written there, and nothing behind it: bytes that are left were written by another type.
fn whole<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, BoxedError> {
    let (value, rest) = postcard::take_from_bytes(bytes)?;
    if !rest.is_empty() {
        return Err(format!("{} bytes are left, so another type wrote them", rest.len()).into());
    }
    Ok(value)
}

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
/// For the same reason it writes what it cannot read back where a type asks the bytes what they are, or leaves fields out: an
/// `enum` with `#[serde(tag)]` or `#[serde(untagged)]`, `#[serde(skip_serializing_if)]`, `serde_json::Value`. Use none of
/// them, in the state or in its commands. A command that cannot be read back is [`Error::Encode`](crate::Error::Encode),
/// and a snapshot fails; but only the first of each is read back, and of the commands one in 64.
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
        // Postcard says that its buffer is full, whatever the file says.
        let mut out = Remembering { out, failed: None };
        let written = postcard::to_io(&capture, &mut out).map(drop);
        let failed = out.failed.take();
        match (written, failed) {
            (_, Some(error)) => Err(error),
            (Err(error), None) => Err(io::Error::other(error)),
            (Ok(_), None) => Ok(()),
        }
    }

    fn read(input: &mut dyn Read) -> io::Result<Serde<S>> {
        let mut bytes = Vec::new();
        input.read_to_end(&mut bytes)?;
        whole(&bytes).map(Serde).map_err(io::Error::other)
    }
}

/// Keeps why a write failed.
struct Remembering<'a> {
    out: &'a mut dyn Write,
    failed: Option<io::Error>,
}

impl Remembering<'_> {
    fn remember<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let kind = error.kind();
            if kind != io::ErrorKind::Interrupted {
                self.failed = Some(error);
            }
            kind.into()
        })
    }
}

impl Write for Remembering<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.remember(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.remember(flushed)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default, Serialize, ::serde::Deserialize)]
    struct Text(String);

    impl SerdeState for Text {
        type Command = String;
        type Output = ();

        fn apply(&mut self, command: String) {
            self.0 = command;
        }
    }

    /// Takes so many bytes.
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 < bytes.len() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0 -= bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }

    #[test]
    fn a_full_disk_is_called_that() {
        // Also if that is said when all is written.
        for space in [0, 100, 1 << 20] {
            let written = Serde::<Text>::write(Text("a".repeat(10_000)), &mut Full(space));
            assert_eq!(written.unwrap_err().kind(), io::ErrorKind::StorageFull);
        }
        let mut bytes = Vec::new();
        Serde::<Text>::write(Text("a".to_owned()), &mut bytes).unwrap();
        assert_eq!(Serde::<Text>::read(&mut &bytes[..]).unwrap().0.0, "a");
    }
}

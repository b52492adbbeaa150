//! Compressing chunks and pages, and what was compressed back again.

use std::io;

/// How a snapshot of a state is compressed, or the pages of a keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Compression {
    /// No compression.
    None,
    /// LZ4: fast.
    #[default]
    Lz4,
    /// Zstandard at its lowest level: smaller and slower. Needs the feature `zstd`, and a C compiler.
    Zstd,
}

impl Compression {
    /// As it is kept in a file.
    pub(crate) fn code(self) -> u32 {
        match self {
            Compression::None => 0,
            Compression::Lz4 => 1,
            Compression::Zstd => 2,
        }
    }

    pub(crate) fn of_code(code: u32) -> Option<Compression> {
        let all = [Compression::None, Compression::Lz4, Compression::Zstd];
        all.into_iter()
            .find(|compression| compression.code() == code)
    }

    /// The name, such as `lz4`.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }
}

/// Of the Zstandard levels the one that is nearly as quick as a disk.
#[cfg(feature = "zstd")]
const ZSTD_LEVEL: i32 = 1;

pub(crate) enum Compressor {
    None,
    Lz4,
    #[cfg(feature = "zstd")]
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Compressor {
    pub fn new(compression: Compression) -> io::Result<Compressor> {
        Ok(match compression {
            Compression::None => Compressor::None,
            Compression::Lz4 => Compressor::Lz4,
            #[cfg(feature = "zstd")]
            Compression::Zstd => Compressor::Zstd(zstd::bulk::Compressor::new(ZSTD_LEVEL)?),
            #[cfg(not(feature = "zstd"))]
            Compression::Zstd => return Err(io::ErrorKind::Unsupported.into()),
        })
    }

    /// Puts them into `out`; `false`: they would not be fewer.
    pub fn compress(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<bool> {
        let len = match self {
            Compressor::None => return Ok(false),
            Compressor::Lz4 => {
                out.resize(lz4_flex::block::get_maximum_output_size(bytes.len()), 0);
                lz4_flex::block::compress_into(bytes, out).map_err(io::Error::other)?
            }
            #[cfg(feature = "zstd")]
            Compressor::Zstd(zstd) => {
                out.resize(zstd::zstd_safe::compress_bound(bytes.len()), 0);
                zstd.compress_to_buffer(bytes, &mut out[..])?
            }
        };
        out.truncate(len);
        Ok(len < bytes.len())
    }
}

/// Fills `out`; `false`: that is not what was compressed, or this program cannot read it.
pub(crate) fn decompress(compression: Compression, bytes: &[u8], out: &mut [u8]) -> bool {
    let len = match compression {
        Compression::None => None,
        Compression::Lz4 => lz4_flex::block::decompress_into(bytes, out).ok(),
        #[cfg(feature = "zstd")]
        Compression::Zstd => zstd::bulk::decompress_to_buffer(bytes, out).ok(),
        #[cfg(not(feature = "zstd"))]
        Compression::Zstd => None,
    };
    len == Some(out.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compressed_is_smaller_and_the_same_again() {
        let mut lz4 = Compressor::new(Compression::Lz4).unwrap();
        let mut seen = [false; 2];
        // From nothing but one byte to noise.
        for (len, noise) in (1..80).flat_map(|len| (0..=len).map(move |noise| (len, noise))) {
            let mut bytes = vec![7; len];
            fastrand::Rng::with_seed(noise as u64).fill(&mut bytes[..noise]);
            let mut out = Vec::new();
            let is_smaller = lz4.compress(&bytes, &mut out).unwrap();
            assert_eq!(is_smaller, out.len() < bytes.len(), "{noise} of {len}");
            seen[usize::from(is_smaller)] = true;
            let mut back = vec![0; bytes.len()];
            assert!(decompress(Compression::Lz4, &out, &mut back));
            assert_eq!(back, bytes);
            assert!(!decompress(
                Compression::Lz4,
                &out,
                &mut vec![0; bytes.len() + 1]
            ));
        }
        assert_eq!(seen, [true; 2]);
        let mut none = Compressor::new(Compression::None).unwrap();
        assert!(!none.compress(&[7; 400], &mut Vec::new()).unwrap());
    }
}

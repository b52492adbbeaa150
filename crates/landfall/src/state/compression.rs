//! Compressing chunks, and what was compressed back again.

use std::io;

use super::options::Compression;

/// Of the Zstandard levels the one that is nearly as quick as a disk.
#[cfg(feature = "zstd")]
const ZSTD_LEVEL: i32 = 1;

pub(super) enum Compressor {
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
pub(super) fn decompress(compression: Compression, bytes: &[u8], out: &mut [u8]) -> bool {
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

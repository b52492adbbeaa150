//! One crash state's contents, without copying the disk.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const PAGE: usize = 4096;

/// What was durable, and over it the pages that this crash state has otherwise: those that survived
/// from after the last flush, and those that recovery writes. Dropping the latter is what brings the
/// disk back to the moment before the cut.
#[derive(Debug)]
pub(crate) struct Image {
    base: File,
    pages: HashMap<u64, Box<[u8; PAGE]>>,
    /// Pages that were dropped and can be used again.
    spare: Vec<Box<[u8; PAGE]>>,
}

impl Image {
    /// Nothing but what is durable.
    pub fn new(base: File) -> Image {
        Image {
            base,
            pages: HashMap::new(),
            spare: Vec::new(),
        }
    }

    /// Fills `into` from `offset`.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.base.read_exact_at(into, offset)?;
        if self.pages.is_empty() {
            return Ok(());
        }
        for (number, start, range) in pages(offset, into.len()) {
            if let Some(page) = self.pages.get(&number) {
                let len = range.len();
                into[range].copy_from_slice(&page[start..start + len]);
            }
        }
        Ok(())
    }

    /// Puts the bytes over what is durable.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        for (number, start, range) in pages(offset, bytes.len()) {
            let len = range.len();
            let page = match self.pages.entry(number) {
                std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::hash_map::Entry::Vacant(entry) => {
                    let mut page = self.spare.pop().unwrap_or_else(|| Box::new([0; PAGE]));
                    if len < PAGE {
                        self.base
                            .read_exact_at(&mut page[..], number * PAGE as u64)?;
                    }
                    entry.insert(page)
                }
            };
            page[start..start + len].copy_from_slice(&bytes[range]);
        }
        Ok(())
    }

    /// Makes the bytes durable: part of every image from now on.
    pub fn settle(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.base.write_all_at(bytes, offset)
    }

    /// Drops everything that is not durable.
    pub fn reset(&mut self) {
        self.spare.extend(self.pages.drain().map(|(_, page)| page));
    }

    /// Writes the whole image into an empty file, with holes where there is nothing.
    pub fn copy_to(&self, target: &File, size: u64) -> io::Result<()> {
        crate::recording::copy_written(&self.base, target, size)?;
        self.pages
            .iter()
            .try_for_each(|(number, page)| target.write_all_at(&page[..], number * PAGE as u64))
    }
}

/// The pages that `len` bytes from `offset` lie on: number, first byte in the page, and which of the
/// bytes.
fn pages(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done >= len {
            return None;
        }
        let place = offset + done as u64;
        let start = (place % PAGE as u64) as usize;
        let count = (PAGE - start).min(len - done);
        let range = done..done + count;
        done += count;
        Some((place / PAGE as u64, start, range))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_reads_what_was_put_over_it_and_forgets_it() {
        let base = tempfile::tempfile().unwrap();
        base.write_all_at(&[1; 64 << 10], 0).unwrap();
        let mut image = Image::new(base);
        let mut model = vec![1; 64 << 10];
        let mut random = fastrand::Rng::with_seed(7);
        for round in 0..3 {
            for _ in 0..200 {
                let offset = random.usize(..model.len() - 1);
                let len = random.usize(..(model.len() - offset).min(9000));
                let bytes = vec![random.u8(..); len];
                model[offset..offset + len].copy_from_slice(&bytes);
                image.write(offset as u64, &bytes).unwrap();
                let mut read = vec![0; model.len()];
                image.read(0, &mut read).unwrap();
                assert!(read == model);
            }
            let copy = tempfile::tempfile().unwrap();
            image.copy_to(&copy, model.len() as u64).unwrap();
            let mut read = vec![0; model.len()];
            copy.read_exact_at(&mut read, 0).unwrap();
            assert!(read == model);
            image.reset();
            image.settle(4096 * round, &[9; 700]).unwrap();
            image.read(0, &mut model).unwrap();
            assert_eq!(
                model.iter().filter(|&&byte| byte == 9).count(),
                700 * (round as usize + 1)
            );
            assert_eq!(
                model.iter().filter(|&&byte| byte == 1).count(),
                (64 << 10) - 700 * (round as usize + 1)
            );
        }
    }
}

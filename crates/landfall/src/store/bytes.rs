//! Numbers and texts as pages and records hold them: a number in as many bytes as it needs, of 7 bits each, and a text
//! behind its length.

/// Appends a number.
pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends bytes behind their number.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Takes what was put, in its order. Whatever it is given may be anything: `None` where it is nothing that was put.
pub(crate) struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor(bytes)
    }

    /// What was not taken yet.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    pub fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub fn number_u32(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.number()?.try_into().ok()?;
        self.take(len)
    }

    /// How many of something follow, each of a byte at least: so no more than there are bytes.
    pub fn count(&mut self) -> Option<usize> {
        let count = self.number()?.try_into().ok()?;
        (count <= self.0.len()).then_some(count)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_have_an_end() {
        assert_eq!(Cursor::new(&[0xff; 12]).number(), None);
        assert_eq!(Cursor::new(&[]).number(), None);
        let mut out = Vec::new();
        put_number(&mut out, u64::MAX);
        assert_eq!(Cursor::new(&out).number(), Some(u64::MAX));
        out[9] = 2;
        assert_eq!(Cursor::new(&out).number(), None);
        assert_eq!(Cursor::new(&[3, 1, 2]).bytes(), None);
        assert_eq!(Cursor::new(&[3, 1, 2]).count(), None);
    }

    proptest! {
        #[test]
        fn what_was_put_is_taken(numbers: Vec<u64>, texts: Vec<Vec<u8>>) {
            let mut out = Vec::new();
            numbers.iter().for_each(|&number| put_number(&mut out, number));
            texts.iter().for_each(|text| put_bytes(&mut out, text));
            let mut cursor = Cursor::new(&out);
            for number in numbers {
                prop_assert_eq!(cursor.number(), Some(number));
            }
            for text in &texts {
                prop_assert_eq!(cursor.bytes(), Some(&text[..]));
            }
            prop_assert!(cursor.is_empty());
        }
    }
}

//! Opens, reads, and goes on with whatever a directory may hold. `cargo fuzz run reader`, in `crates/landfall`;
//! `--sanitizer none` does without a nightly compiler.
//!
//! Most inputs get right checksums after they were changed, so that what is behind those is reached.

#![no_main]

use landfall::fuzzing::{correct, exercise, right_checksums};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_target!(|bytes: &[u8]| exercise(bytes));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let right = right_checksums(&data[..size]);
    let size = fuzzer_mutate(data, size, max_size);
    if seed % 8 != 0 {
        correct(&mut data[..size], &right);
    }
    size
});

//! What a target is: a directory of any bytes, of which most get right checksums after they were changed, so that what is
//! behind those is reached.

macro_rules! target {
    ($target:ident) => {
        libfuzzer_sys::fuzz_target!(|bytes: &[u8]| landfall::fuzzing::$target::exercise(bytes));

        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            let right = landfall::fuzzing::$target::right_checksums(&data[..size]);
            let size = libfuzzer_sys::fuzzer_mutate(data, size, max_size);
            if seed % 8 != 0 {
                landfall::fuzzing::correct(&mut data[..size], &right);
            }
            size
        });
    };
}

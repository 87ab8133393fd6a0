//! Features by number.

/// Words of bits, those set whose feature is there.
pub(crate) fn bits<const N: usize>(features: &[(u32, bool)]) -> [u32; N] {
    let mut words = [0; N];
    for &(number, _) in features.iter().filter(|(_, is_there)| *is_there) {
        if let Some(word) = words.get_mut(number as usize / 32) {
            *word |= 1 << (number % 32);
        }
    }
    words
}

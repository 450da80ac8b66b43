//! Sets of categories.

/// A set of categories, one bit for each of the 256 bins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CategorySet {
    bits: [u64; 4],
}

impl CategorySet {
    /// All categories.
    pub const ALL: CategorySet = CategorySet { bits: [u64::MAX; 4] };

    /// All categories, or none.
    pub fn filled(with: bool) -> CategorySet {
        if with { CategorySet::ALL } else { CategorySet::default() }
    }

    /// The categories that are in both sets.
    pub fn and(self, other: CategorySet) -> CategorySet {
        CategorySet { bits: std::array::from_fn(|k| self.bits[k] & other.bits[k]) }
    }

    /// The categories that are not in the set.
    pub fn complement(self) -> CategorySet {
        CategorySet { bits: self.bits.map(|word| !word) }
    }

    /// The set as little-endian words, category 0 in the lowest bit of the first.
    pub fn to_words(self) -> [u32; 8] {
        std::array::from_fn(|k| (self.bits[k / 2] >> (32 * (k % 2))) as u32)
    }

    /// The set that [`CategorySet::to_words`] wrote.
    pub fn from_words(words: [u32; 8]) -> CategorySet {
        let bits =
            std::array::from_fn(|k| u64::from(words[2 * k]) | u64::from(words[2 * k + 1]) << 32);
        CategorySet { bits }
    }

    /// Whether a category is in the set.
    #[inline(always)]
    pub fn contains(&self, category: u8) -> bool {
        self.bits[usize::from(category >> 6)] >> (category & 63) & 1 == 1
    }

    /// Adds a category to the set, or removes it.
    pub fn put(&mut self, category: u8, inside: bool) {
        let bit = 1 << (category & 63);
        let word = &mut self.bits[usize::from(category >> 6)];
        *word = if inside { *word | bit } else { *word & !bit };
    }

    /// The categories in the set, ascending.
    pub fn members(&self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(|&category| self.contains(category))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_hold_what_was_put_in_and_survive_as_words() {
        let mut set = CategorySet::filled(false);
        for category in [0, 1, 63, 64, 100, 191, 255] {
            set.put(category, true);
        }
        set.put(1, false);
        assert_eq!(set.members().collect::<Vec<_>>(), [0, 63, 64, 100, 191, 255]);
        assert_eq!(CategorySet::from_words(set.to_words()), set);
        assert_eq!(CategorySet::filled(true).members().count(), 256);
    }
}

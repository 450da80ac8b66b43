//! BLAKE2b-256 (RFC 7693), without key.

const START: [u64; 8] = [
    0x6a09e667f3bcc908,
    0xbb67ae8584caa73b,
    0x3c6ef372fe94f82b,
    0xa54ff53a5f1d36f1,
    0x510e527fade682d1,
    0x9b05688c2b3e6c1f,
    0x1f83d9abfb41bd6b,
    0x5be0cd19137e2179,
];
const ORDER: [[usize; 16]; 10] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
    [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
    [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
    [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
    [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];
const LENGTH: usize = 32;

/// The digest of some bytes.
pub fn digest(data: &[u8]) -> [u8; LENGTH] {
    let mut state = START;
    state[0] ^= 0x0101_0000 ^ LENGTH as u64;
    let n_blocks = std::cmp::max(1, (data.len() + 127) / 128);
    for k in 0..n_blocks {
        let bytes = &data[128 * k..data.len().min(128 * (k + 1))];
        let mut block = [0; 128];
        block[..bytes.len()].copy_from_slice(bytes);
        compress(&mut state, &block, 128 * k as u64 + bytes.len() as u64, k + 1 == n_blocks);
    }
    let mut out = [0; LENGTH];
    for (out, word) in out.chunks_exact_mut(8).zip(state) {
        out.copy_from_slice(&word.to_le_bytes());
    }
    out
}

fn compress(state: &mut [u64; 8], block: &[u8; 128], count: u64, is_last: bool) {
    let word = |k: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&block[8 * k..8 * k + 8]);
        u64::from_le_bytes(bytes)
    };
    let message: [u64; 16] = std::array::from_fn(word);
    let mut v = [0; 16];
    v[..8].copy_from_slice(state);
    v[8..].copy_from_slice(&START);
    v[12] ^= count;
    v[14] ^= if is_last { u64::MAX } else { 0 };
    let columns = [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]];
    let diagonals = [[0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]];
    for round in 0..12 {
        let order = ORDER[round % 10];
        for (k, [a, b, c, d]) in columns.into_iter().chain(diagonals).enumerate() {
            for (step, turns) in [[32, 24], [16, 63]].into_iter().enumerate() {
                let word = message[order[2 * k + step]];
                v[a] = v[a].wrapping_add(v[b]).wrapping_add(word);
                v[d] = (v[d] ^ v[a]).rotate_right(turns[0]);
                v[c] = v[c].wrapping_add(v[d]);
                v[b] = (v[b] ^ v[c]).rotate_right(turns[1]);
            }
        }
    }
    for k in 0..8 {
        state[k] ^= v[k] ^ v[k + 8];
    }
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn digests_are_those_of_hashlib() {
        let start = |data: &[u8]| u32::from_be_bytes(digest(data)[..4].try_into().unwrap());
        assert_eq!(start(b""), 0x0e57_51c0);
        assert_eq!(start(b"abc"), 0xbddd_813c);
        let long: Vec<u8> = (0..=255).collect();
        assert_eq!(start(&long[..128]), 0xc358_2f71);
        assert_eq!(start(&long), 0x39a7_eb9f);
    }
}

//! Large buffers: a failed allocation is an error, where Rust's own would end the process.
//!
//! What grows with rows, outputs or trees is allocated here; what stays small is not.

use crate::error::{Error, Result};
use crate::lowlevel::{Plain, zeroed};

/// A vector of `len` zeros.
pub fn zeros<T: Plain>(len: usize) -> Result<Vec<T>> {
    zeroed(len).ok_or_else(|| too_many::<T>(len))
}

/// An empty vector with room for `len` elements.
pub fn room<T>(len: usize) -> Result<Vec<T>> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(len).map_err(|_| too_many::<T>(len))?;
    Ok(vector)
}

/// Makes room for `more` elements at least, and for the ones after them in advance.
pub fn grow<T>(vector: &mut Vec<T>, more: usize) -> Result<()> {
    // The allocator is asked for twice as much as there was, or for what is needed.
    let wanted = (vector.len() + more).max(2 * vector.capacity());
    vector.try_reserve(more).map_err(|_| too_many::<T>(wanted))
}

/// Makes a vector one of `len` elements, the new ones `value`.
pub fn resize<T: Clone>(vector: &mut Vec<T>, len: usize, value: T) -> Result<()> {
    let more = len.saturating_sub(vector.len());
    vector.try_reserve_exact(more).map_err(|_| too_many::<T>(len))?;
    vector.resize(len, value);
    Ok(())
}

/// Collects what an iterator yields, at most `len` elements.
pub fn collected<T>(len: usize, elements: impl Iterator<Item = T>) -> Result<Vec<T>> {
    let mut vector = room(len)?;
    vector.extend(elements.take(len));
    Ok(vector)
}

fn too_many<T>(len: usize) -> Error {
    Error::OutOfMemory(len.saturating_mul(std::mem::size_of::<T>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_what_they_are_asked_for() {
        assert_eq!(zeros::<i64>(3).unwrap(), [0, 0, 0]);
        assert_eq!(zeros::<u8>(0).unwrap(), []);
        assert_eq!(collected(4, 1..3).unwrap(), [1, 2]);
        let mut vector = vec![1u8];
        resize(&mut vector, 3, 7).unwrap();
        assert_eq!(vector, [1, 7, 7]);
        resize(&mut vector, 2, 0).unwrap();
        assert_eq!(vector, [1, 7]);
        grow(&mut vector, 100).unwrap();
        assert!(vector.capacity() >= 102 && vector.len() == 2);
    }

    #[test]
    fn what_no_machine_has_is_an_error_that_says_how_much() {
        let huge = 1usize << 60;
        assert_eq!(zeros::<f32>(huge), Err(Error::OutOfMemory(1 << 62)));
        assert_eq!(room::<u32>(huge).map(|_| ()), Err(Error::OutOfMemory(1 << 62)));
        assert_eq!(resize(&mut vec![0u8], huge, 0), Err(Error::OutOfMemory(huge)));
        assert_eq!(grow(&mut vec![0u8], huge), Err(Error::OutOfMemory(huge + 1)));
        assert_eq!(zeros::<u64>(usize::MAX), Err(Error::OutOfMemory(usize::MAX)));
    }
}

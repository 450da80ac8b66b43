//! Large buffers: a failed allocation is an error, while Rust's own containers end the process.
//!
//! Buffers that grow with rows, or with leaves times outputs, are allocated here, and where threads or
//! pieces of work have such buffers of their own, these too. Those that grow with features, outputs,
//! components or the nodes of one tree alone are not, and neither is the clone of a model.

use crate::error::{Error, Result};
use crate::lowlevel::{Plain, zeroed};

/// Size in bytes from which a buffer must leave a reserve for small objects, whose failed allocation
/// would end the process.
const LARGE: usize = 1 << 20;
/// Bytes that a large buffer must leave.
const RESERVE: usize = 1 << 20;

/// A vector of `len` zeros.
pub fn zeros<T: Plain>(len: usize) -> Result<Vec<T>> {
    let vector = zeroed(len).ok_or_else(|| too_many::<T>(len))?;
    leave_a_reserve::<T>(len)?;
    Ok(vector)
}

/// An empty vector with room for `len` elements.
pub fn room<T>(len: usize) -> Result<Vec<T>> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(len).map_err(|_| too_many::<T>(len))?;
    leave_a_reserve::<T>(len)?;
    Ok(vector)
}

/// Makes room for at least `more` elements; the capacity doubles, as in [`Vec::reserve`].
#[inline]
pub fn grow<T>(vector: &mut Vec<T>, more: usize) -> Result<()> {
    if vector.capacity() - vector.len() >= more {
        return Ok(());
    }
    // What `try_reserve` asks the allocator for.
    let wanted = vector.len().saturating_add(more).max(2 * vector.capacity());
    vector.try_reserve(more).map_err(|_| too_many::<T>(wanted))?;
    leave_a_reserve::<T>(wanted)
}

/// Gives a vector `len` elements; new ones are `value`.
pub fn resize<T: Clone>(vector: &mut Vec<T>, len: usize, value: T) -> Result<()> {
    if len > vector.capacity() {
        let more = len - vector.len();
        vector.try_reserve_exact(more).map_err(|_| too_many::<T>(len))?;
        leave_a_reserve::<T>(len)?;
    }
    vector.resize(len, value);
    Ok(())
}

/// Collects at most `len` elements of an iterator.
pub fn collected<T>(len: usize, elements: impl Iterator<Item = T>) -> Result<Vec<T>> {
    let mut vector = room(len)?;
    vector.extend(elements.take(len));
    Ok(vector)
}

fn leave_a_reserve<T>(len: usize) -> Result<()> {
    if len.saturating_mul(std::mem::size_of::<T>()) < LARGE {
        return Ok(());
    }
    // The black boxes keep the compiler from removing an allocation that nobody uses.
    let mut reserve = std::hint::black_box(Vec::<u8>::new());
    let room = reserve.try_reserve_exact(RESERVE);
    std::hint::black_box(&reserve);
    room.map_err(|_| too_many::<T>(len))
}

fn too_many<T>(len: usize) -> Error {
    Error::OutOfMemory(len.saturating_mul(std::mem::size_of::<T>()))
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

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
        assert_eq!(black_box(zeros::<f32>(huge)), Err(Error::OutOfMemory(1 << 62)));
        assert_eq!(black_box(room::<u32>(huge)), Err(Error::OutOfMemory(1 << 62)));
        let mut vector = black_box(vec![0u8]);
        assert_eq!(resize(&mut vector, huge, 0), Err(Error::OutOfMemory(huge)));
        assert_eq!(grow(&mut vector, huge), Err(Error::OutOfMemory(huge + 1)));
        assert_eq!(black_box(vector), [0]);
        assert_eq!(zeros::<u64>(usize::MAX), Err(Error::OutOfMemory(usize::MAX)));
    }
}

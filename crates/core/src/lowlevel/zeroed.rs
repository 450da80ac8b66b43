//! Zeroed memory from the system, with an answer if there is none.

use std::alloc::{Layout, alloc_zeroed};

/// Types for which all bits zero is a valid value.
///
/// # Safety
///
/// The bit pattern of all zeros must be a value of the type.
pub unsafe trait Plain: Copy {}

macro_rules! plain {
    // SAFETY: integers and floats have no invalid bit patterns.
    ($($number:ty),*) => { $(unsafe impl Plain for $number {})* };
}
plain!(u8, u32, u64, i32, i64, f32, f64, usize);

/// A vector of `len` zeros, whose pages the system provides on first use; `None` if it has no room.
pub fn zeroed<T: Plain>(len: usize) -> Option<Vec<T>> {
    let layout = Layout::array::<T>(len).ok()?;
    if layout.size() == 0 {
        return Some(Vec::new());
    }
    // SAFETY: the layout is not of size zero. The memory comes from the allocator of vectors, with
    // the layout of `len` elements, and zeros are values of `T` since it is `Plain`.
    unsafe {
        let start = alloc_zeroed(layout).cast::<T>();
        (!start.is_null()).then(|| Vec::from_raw_parts(start, len, len))
    }
}

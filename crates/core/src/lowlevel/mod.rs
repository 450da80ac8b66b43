//! The only `unsafe` code of this crate: loops compiled for wider registers, zeroed memory that may
//! be refused, a borrowed job lent to threads, and a private file mapped into memory.
#![allow(unsafe_code)]

mod dispatch;
mod map;
mod workers;
mod zeroed;

pub use dispatch::{Level, level, widest};
pub use map::{PrivateFile, PrivateMap};
pub use workers::{MAX_WORKERS, Workers};
pub use zeroed::{Plain, zeroed};

//! What can go wrong in a kernel.

use std::fmt;

/// Failure of a kernel call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The caller asked to stop (Ctrl-C); partial results must be thrown away.
    Interrupted,
    /// Memory for so many more bytes was not to be had; partial results must be thrown away.
    OutOfMemory(usize),
    /// An argument or a file does not hold together; the sentence says which and why.
    Invalid(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Interrupted => write!(f, "interrupted"),
            Error::OutOfMemory(bytes) => write!(f, "no memory for another {}", Bytes(*bytes)),
            Error::Invalid(sentence) => write!(f, "{sentence}"),
        }
    }
}

/// A number of bytes, in words.
struct Bytes(usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        if bytes >= 1e9 {
            write!(f, "{:.1} GB", bytes / 1e9)
        } else if bytes >= 1e6 {
            write!(f, "{:.0} MB", bytes / 1e6)
        } else {
            write!(f, "{:.0} kB", (bytes / 1e3).ceil())
        }
    }
}

impl std::error::Error for Error {}

/// Result of a kernel call.
pub type Result<T> = std::result::Result<T, Error>;

/// Shorthand for [`Error::Invalid`].
pub fn invalid<T>(sentence: impl Into<String>) -> Result<T> {
    Err(Error::Invalid(sentence.into()))
}

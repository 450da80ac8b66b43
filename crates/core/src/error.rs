//! What can go wrong in a kernel.

use std::fmt;

/// Failure of a kernel call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The caller asked to stop (Ctrl-C); partial results must be thrown away.
    Interrupted,
    /// An argument or a file does not hold together; the sentence says which and why.
    Invalid(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Interrupted => write!(f, "interrupted"),
            Error::Invalid(sentence) => write!(f, "{sentence}"),
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

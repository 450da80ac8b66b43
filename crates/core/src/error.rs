//! What can go wrong in a kernel.

use std::fmt;

/// Failure of a kernel call; partial results must be thrown away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The caller asked to stop (Ctrl-C).
    Interrupted,
    /// The system has no memory for this many more bytes.
    OutOfMemory(usize),
    /// A number that must be summed over rows is infinite or NaN.
    NotFinite,
    /// A file operation failed.
    File {
        /// The error number of the system, if there is one.
        code: Option<i32>,
        /// What failed, on which file, and why.
        sentence: String,
    },
    /// An argument or a file is inconsistent; the sentence says which and why.
    Invalid(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Interrupted => write!(f, "interrupted"),
            Error::OutOfMemory(bytes) => write!(f, "no memory for another {}", Bytes(*bytes)),
            Error::NotFinite => {
                write!(
                    f,
                    "a value to be summed over rows is infinite or not a number; scale targets or \
                     weights down"
                )
            }
            Error::File { sentence, .. } | Error::Invalid(sentence) => write!(f, "{sentence}"),
        }
    }
}

/// A number of bytes with a unit.
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

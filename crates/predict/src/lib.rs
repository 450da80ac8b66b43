//! Reads a model file of manyboost and predicts what Python predicts, to the last bit.
//!
//! Plain Rust without dependencies, threads or unsafe code (but for the functions for C), for
//! compilers from 1.63 on. `docs/model-format.md` describes the file.
//!
//! ```no_run
//! let model = manyboost_predict::Model::from_bytes(&std::fs::read("model.mb")?)?;
//! let rows = vec![0.0; 2 * model.n_features()]; // row after row; NaN is a missing value
//! let mut predictions = vec![0.0; 2 * model.n_columns()];
//! model.predict(&rows, &mut predictions)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(missing_docs, unsafe_code)]

mod blake2b;
mod codes;
mod container;
mod entries;
#[cfg(feature = "c")]
#[allow(unsafe_code)]
mod ffi;
mod json;
mod labels;
pub mod links;
mod model;
mod outputs;
mod trees;

pub use model::Model;

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The bytes are not a sound model file, for this reason.
    Broken(String),
    /// A slice does not hold one number for each row and column.
    Shape(String),
    /// The model was fitted with an offset.
    NeedsOffset,
    /// The loss of the model has no link to probabilities.
    NoLink,
    /// The model predicts numbers, not classes or labels.
    NoClasses,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Error::Broken(why) => return write!(f, "This is not a sound model file: {why}."),
            Error::Shape(what) => what,
            Error::NeedsOffset => {
                "The model was fitted with an offset; take raw predictions, add offsets, and finish them."
            }
            Error::NoLink => {
                "The loss of the model has no link to probabilities; take raw predictions."
            }
            Error::NoClasses => "The model predicts numbers, which nothing is chosen from.",
        })
    }
}

impl std::error::Error for Error {}

/// A value, or what went wrong.
pub type Result<T> = std::result::Result<T, Error>;

/// Refuses a file.
fn broken<T>(why: impl Into<String>) -> Result<T> {
    Err(Error::Broken(why.into()))
}

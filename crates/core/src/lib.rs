//! Kernels of manyboost: gradient tree boosting with random output projections.
//!
//! Modules in the order data walks through them; the loop over rounds is not here but in Python.
//! All arrays are row-major slices; `n` rows, `d` outputs, `q` components, `p` features.

pub mod binning;

pub mod baseline;
pub mod losses;
pub mod outputs;
pub mod projection;
pub mod weights;

pub mod category;
pub mod grower;
pub mod histogram;
pub mod interaction;
pub mod monotone;
pub mod partition;
pub mod split;
pub mod tree;

pub mod leaf;
pub mod step;

pub mod ensemble;
pub mod format;
pub mod links;
pub mod ranking;
pub mod shap;

pub mod comm;
pub mod error;
pub mod lowlevel;
pub mod math;
pub mod memory;
pub mod parallel;
pub mod random;
pub mod reduce;
pub mod select;

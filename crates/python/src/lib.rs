//! Python bindings: arrays in, arrays out, the GIL released, errors mapped; no algorithm.

mod arrays;
mod ensemble;
mod features;
mod labels;
mod leaves;
mod links;
mod objective;
mod pool;
mod projection;
mod steps;
mod targets;

use pyo3::prelude::*;

/// Compiled kernels of manyboost.
///
/// They need no GIL: what calls share is behind locks, and classes are frozen or borrowed at run time.
#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("__sources__", concat!("sources:", env!("MANYBOOST_SOURCES")))?;
    module.add_class::<pool::Pool>()?;
    module.add_class::<features::Features>()?;
    module.add_class::<features::ColumnBinner>()?;
    module.add_class::<features::Grower>()?;
    module.add_class::<features::Tree>()?;
    module.add_class::<ensemble::Ensemble>()?;
    module.add_class::<labels::LabelRows>()?;
    module.add_class::<objective::Objective>()?;
    leaves::register(module)?;
    links::register(module)?;
    steps::register(module)?;
    targets::register(module)?;
    projection::register(module)?;
    module.add_function(wrap_pyfunction!(pool::simd_level, module)?)?;
    Ok(())
}

//! Python bindings: arrays in, arrays out, the GIL released, errors mapped; no algorithm.

mod arrays;
mod ensemble;
mod features;
mod kernels;
mod pool;

use pyo3::prelude::*;

/// Compiled kernels of manyboost.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<pool::Pool>()?;
    module.add_class::<features::Features>()?;
    module.add_class::<features::ColumnBinner>()?;
    module.add_class::<features::Grower>()?;
    module.add_class::<features::Tree>()?;
    module.add_class::<ensemble::Ensemble>()?;
    module.add_class::<kernels::Objective>()?;
    kernels::register(module)?;
    module.add_function(wrap_pyfunction!(pool::simd_level, module)?)?;
    Ok(())
}

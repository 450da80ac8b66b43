//! Thread pools that survive a fork, Ctrl-C, and the way errors become exceptions.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use manyboost_core as core;
use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PySlice;

thread_local! {
    /// What the signal handler raised while a kernel was running in this thread.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

fn interrupted() -> bool {
    Python::attach(|py| match py.check_signals() {
        Ok(()) => false,
        Err(error) => {
            RAISED.with(|raised| *raised.borrow_mut() = Some(error));
            true
        }
    })
}

/// A kernel error as a Python exception.
pub fn to_py_err(error: core::error::Error) -> PyErr {
    match error {
        core::error::Error::Interrupted => RAISED
            .with(|raised| raised.borrow_mut().take())
            .unwrap_or_else(|| PyKeyboardInterrupt::new_err(())),
        error @ core::error::Error::OutOfMemory(_) => PyMemoryError::new_err(error.to_string()),
        core::error::Error::File { code: Some(code), sentence } => {
            PyOSError::new_err((code, sentence))
        }
        core::error::Error::File { code: None, sentence } => PyOSError::new_err(sentence),
        error @ core::error::Error::NotFinite => PyValueError::new_err(error.to_string()),
        core::error::Error::Invalid(sentence) => PyValueError::new_err(sentence),
    }
}

/// Worker threads, shared by all calls with the same number of threads, and the way to the other
/// machines if rows are spread over several.
#[pyclass(frozen, module = "manyboost._core")]
pub struct Pool {
    threads: usize,
    others: Option<(Arc<PyComm>, usize)>,
}

/// A `manyboost.distributed.Comm`, and an array that its arguments are copied to. Each tree exchanges
/// many histograms, and a new array each time would cost more than the copy.
struct PyComm {
    comm: Py<PyAny>,
    room: Mutex<Option<Py<PyArray1<i64>>>>,
}

impl PyComm {
    fn new(comm: Py<PyAny>) -> PyComm {
        PyComm { comm, room: Mutex::new(None) }
    }

    /// An array of `len` integers with arbitrary contents.
    fn array<'py>(&self, py: Python<'py>, len: usize) -> PyResult<Bound<'py, PyArray1<i64>>> {
        // An array is made while it is held, which may wait for other threads of Python.
        let mut room = self.room.lock_py_attached(py).unwrap_or_else(|e| e.into_inner());
        let fits = |room: &Py<PyArray1<i64>>| room.bind(py).as_untyped().len() >= len;
        if !room.as_ref().is_some_and(fits) {
            *room = Some(PyArray1::zeros(py, len, false).unbind());
        }
        match &*room {
            Some(room) => {
                Ok(room.bind(py).get_item(PySlice::new(py, 0, len as isize, 1))?.cast_into()?)
            }
            None => unreachable!("made above"),
        }
    }
}

impl core::comm::Comm for PyComm {
    fn reduce(&self, sums: &mut [&mut [i64]], maxima: &mut [f64]) -> core::error::Result<()> {
        let len = sums.iter().map(|piece| piece.len()).sum();
        let exchanged = Python::attach(|py| -> PyResult<()> {
            let (s, m) = (self.array(py, len)?, PyArray1::from_slice(py, maxima));
            let mut filled = 0;
            {
                let mut array = s.try_readwrite()?;
                let array = array.as_slice_mut()?;
                for piece in sums.iter() {
                    array[filled..filled + piece.len()].copy_from_slice(piece);
                    filled += piece.len();
                }
            }
            self.comm.call_method1(py, "reduce", (&s, &m))?;
            let array = s.try_readonly()?;
            let mut array = array.as_slice()?;
            for piece in sums.iter_mut() {
                let (front, rest) = array.split_at(piece.len());
                piece.copy_from_slice(front);
                array = rest;
            }
            maxima.copy_from_slice(m.readonly().as_slice()?);
            Ok(())
        });
        exchanged.map_err(|error| {
            RAISED.with(|raised| *raised.borrow_mut() = Some(error));
            core::error::Error::Interrupted
        })
    }
}

/// Pools of one process, by number of threads. Threads do not survive a fork, and a lock that another
/// thread held in the parent stays locked forever. So a child neither uses nor locks its parent's
/// pools, but appends its own.
struct Pools {
    process: u32,
    by_threads: Mutex<Option<HashMap<usize, Arc<core::parallel::Pool>>>>,
    next: OnceLock<Box<Pools>>,
}

impl Pools {
    const fn new(process: u32) -> Pools {
        Pools { process, by_threads: Mutex::new(None), next: OnceLock::new() }
    }

    /// Those of this process.
    fn own() -> &'static Pools {
        // No process has the number 0.
        static FIRST: Pools = Pools::new(0);
        let process = std::process::id();
        let mut pools = &FIRST;
        while pools.process != process {
            pools = pools.next.get_or_init(|| Box::new(Pools::new(process)));
        }
        pools
    }
}

#[pymethods]
impl Pool {
    /// A pool of `threads` threads, the caller included.
    #[new]
    fn new(threads: usize) -> Pool {
        Pool { threads: threads.max(1), others: None }
    }

    /// The same threads for a part of `n_rows` rows: sums over rows go through `comm`.
    fn among(&self, comm: Py<PyAny>, n_rows: usize) -> Pool {
        Pool { threads: self.threads, others: Some((Arc::new(PyComm::new(comm)), n_rows)) }
    }

    /// The number of rows on all machines, `n_rows` of which are here.
    fn all_rows(&self, n_rows: usize) -> usize {
        self.others.as_ref().map_or(n_rows, |(_, all)| *all)
    }

    /// Number of threads.
    #[getter]
    fn threads(&self) -> usize {
        self.threads
    }

    /// Numbers as the largest of all machines.
    fn largest<'py>(
        &self,
        py: Python<'py>,
        numbers: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mut numbers = numbers.as_slice()?.to_vec();
        self.run(py, |pool| core::reduce::exchange(pool, &mut [], &mut numbers))?;
        Ok(numbers.into_pyarray(py))
    }

    /// Integers as their sums over all machines.
    fn totals<'py>(
        &self,
        py: Python<'py>,
        numbers: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let mut numbers = numbers.as_slice()?.to_vec();
        self.run(py, |pool| core::reduce::exchange(pool, &mut numbers, &mut []))?;
        Ok(numbers.into_pyarray(py))
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> (Py<PyAny>, (usize,)) {
        (slf.get_type().into_any().unbind(), (slf.get().threads,))
    }
}

impl Pool {
    /// The threads themselves, shared by all calls of this process.
    fn shared(&self) -> Arc<core::parallel::Pool> {
        let mut pools = Pools::own().by_threads.lock().unwrap_or_else(|e| e.into_inner());
        let new = || Arc::new(core::parallel::Pool::new(self.threads, Box::new(interrupted)));
        Arc::clone(pools.get_or_insert_with(HashMap::new).entry(self.threads).or_insert_with(new))
    }

    /// Runs a kernel without the GIL.
    pub fn run<R: Send>(
        &self,
        py: Python<'_>,
        kernel: impl FnOnce(&core::parallel::Pool) -> core::error::Result<R> + Send,
    ) -> PyResult<R> {
        let pool = self.shared();
        py.detach(|| match &self.others {
            Some((comm, n_rows)) => kernel(&pool.among(Arc::clone(comm) as _, *n_rows)),
            None => kernel(&pool),
        })
        .map_err(to_py_err)
    }

    /// Runs a kernel without the GIL, on the rows of this machine alone.
    pub fn run_alone<R: Send>(
        &self,
        py: Python<'_>,
        kernel: impl FnOnce(&core::parallel::Pool) -> core::error::Result<R> + Send,
    ) -> PyResult<R> {
        let pool = self.shared();
        py.detach(|| kernel(&pool)).map_err(to_py_err)
    }
}

/// The instruction set that kernels use on this machine.
#[pyfunction]
pub fn simd_level() -> &'static str {
    match core::lowlevel::level() {
        core::lowlevel::Level::Portable => "portable",
        core::lowlevel::Level::Avx2 => "avx2",
        core::lowlevel::Level::Avx512 => "avx512",
    }
}

//! The functions of `include/manyboost_predict.h`, which says what they do.

use std::os::raw::{c_char, c_int};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::slice::{from_raw_parts, from_raw_parts_mut};

use crate::{Error, Model, Result};

const PANICKED: c_int = -1;

/// Writes a text and a zero, cut short if there is no room; returns the size that it needs.
///
/// # Safety
/// `to` must have room for `size` bytes, or be null.
unsafe fn write(text: &str, to: *mut c_char, size: usize) -> usize {
    if !to.is_null() && size > 0 {
        let mut n = text.len().min(size - 1);
        while !text.is_char_boundary(n) {
            n -= 1;
        }
        std::ptr::copy_nonoverlapping(text.as_ptr(), to.cast::<u8>(), n);
        *to.add(n) = 0;
    }
    text.len() + 1
}

/// A slice; an empty one may be null in C.
///
/// # Safety
/// `data` must hold `size` elements.
unsafe fn slice<'a, T>(data: *const T, size: usize) -> &'a [T] {
    if size == 0 {
        return &[];
    }
    from_raw_parts(data, size)
}

/// As [`slice`], to write to.
///
/// # Safety
/// `data` must have room for `size` elements.
unsafe fn slice_mut<'a, T>(data: *mut T, size: usize) -> &'a mut [T] {
    if size == 0 {
        return &mut [];
    }
    from_raw_parts_mut(data, size)
}

fn status(run: impl FnOnce() -> Result<()>) -> c_int {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => 0,
        Ok(Err(Error::NeedsOffset)) => 1,
        Ok(Err(Error::NoLink)) => 2,
        Ok(Err(Error::NoClasses)) => 3,
        Ok(Err(Error::Shape(_) | Error::Broken(_))) | Err(_) => PANICKED,
    }
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn manyboost_open(
    data: *const u8,
    size: usize,
    message: *mut c_char,
    message_size: usize,
) -> *mut Model {
    let read = catch_unwind(AssertUnwindSafe(|| Model::from_bytes(slice(data, size))));
    let problem = match read {
        Ok(Ok(model)) => {
            write("", message, message_size);
            return Box::into_raw(Box::new(model));
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => String::from("This file could not be read; please report it."),
    };
    write(&problem, message, message_size);
    std::ptr::null_mut()
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn manyboost_close(model: *mut Model) {
    if !model.is_null() {
        drop(Box::from_raw(model));
    }
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn manyboost_features(model: *const Model) -> usize {
    (*model).n_features()
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn manyboost_outputs(model: *const Model) -> usize {
    (*model).n_outputs()
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn manyboost_columns(model: *const Model) -> usize {
    (*model).n_columns()
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn manyboost_predict(
    model: *const Model,
    rows: *const f64,
    n_rows: usize,
    predictions: *mut f64,
) -> c_int {
    let model = &*model;
    let rows = slice(rows, n_rows * model.n_features());
    let predictions = slice_mut(predictions, n_rows * model.n_columns());
    status(|| model.predict(rows, predictions))
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn manyboost_raw(
    model: *const Model,
    rows: *const f64,
    n_rows: usize,
    raw: *mut f64,
) -> c_int {
    let model = &*model;
    let rows = slice(rows, n_rows * model.n_features());
    let raw = slice_mut(raw, n_rows * model.n_outputs());
    status(|| model.raw(rows, raw))
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn manyboost_finish(
    model: *const Model,
    raw: *const f64,
    n_rows: usize,
    predictions: *mut f64,
) -> c_int {
    let model = &*model;
    let raw = slice(raw, n_rows * model.n_outputs());
    let predictions = slice_mut(predictions, n_rows * model.n_columns());
    status(|| model.finish(raw, predictions))
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn manyboost_choose(
    model: *const Model,
    raw: *const f64,
    n_rows: usize,
    chosen: *mut u8,
) -> c_int {
    let model = &*model;
    let raw = slice(raw, n_rows * model.n_outputs());
    let chosen = slice_mut(chosen, n_rows * model.n_columns());
    status(|| model.choose(raw, chosen))
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn manyboost_feature_name(
    model: *const Model,
    feature: usize,
    text: *mut c_char,
    size: usize,
) -> usize {
    let name = (*model).feature_names().and_then(|names| names.get(feature));
    name.map_or(0, |name| write(name, text, size))
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn manyboost_column_name(
    model: *const Model,
    column: usize,
    text: *mut c_char,
    size: usize,
) -> usize {
    (*model).column_names().get(column).map_or(0, |name| write(name, text, size))
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn manyboost_category_label(
    model: *const Model,
    feature: usize,
    category: usize,
    text: *mut c_char,
    size: usize,
) -> usize {
    let label = (*model).category_labels(feature).and_then(|labels| labels.get(category));
    label.map_or(0, |label| write(label, text, size))
}

/// Room for `size` bytes, aligned for doubles: JavaScript puts what it passes there.
#[no_mangle]
pub extern "C" fn manyboost_room(size: usize) -> *mut u8 {
    let mut words = vec![0u64; (size + 7) / 8].into_boxed_slice();
    let room = words.as_mut_ptr();
    std::mem::forget(words);
    room.cast()
}

/// Gives room back.
///
/// # Safety
/// `room` must come from [`manyboost_room`] with the same size.
#[no_mangle]
pub unsafe extern "C" fn manyboost_give_back(room: *mut u8, size: usize) {
    let words = std::ptr::slice_from_raw_parts_mut(room.cast::<u64>(), (size + 7) / 8);
    drop(Box::from_raw(words));
}

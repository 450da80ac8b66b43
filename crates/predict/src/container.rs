//! The container: a JSON header and named arrays, with a checksum over all of it.

use crate::json::{self, Value};
use crate::{blake2b, broken, Result};

const MAGIC: &[u8; 8] = b"\x89MBOOST\n";
const LATEST: u32 = 6;
/// Arrays that came with the fourth version, one of each group.
const FOURTH: [&str; 4] =
    ["sigmoid_slopes", "isotonic_counts", "hierarchy_children", "group_codes"];
const ALIGNMENT: u64 = 64;
const CHECKSUM: usize = 32;
const LARGEST_HEADER: u64 = 1 << 26;
const MOST_DIMENSIONS: usize = 8;
const MOST_COLUMNS: u64 = 1 << 32;

/// An array of a file: its elements are little-endian, in C order.
#[derive(Debug)]
pub struct Array<'a> {
    pub dtype: &'static str,
    pub shape: Vec<u64>,
    pub bytes: &'a [u8],
}

impl Array<'_> {
    /// Bytes of an element.
    pub fn size(&self) -> usize {
        usize::from(self.dtype.as_bytes()[2] - b'0')
    }

    fn elements<const N: usize, T>(&self, read: fn([u8; N]) -> T) -> Vec<T> {
        let element = |bytes: &[u8]| {
            let mut element = [0; N];
            element.copy_from_slice(bytes);
            read(element)
        };
        self.bytes.chunks_exact(N).map(element).collect()
    }

    // The types of arrays are checked before their elements are asked for (`entries`).
    pub fn u32s(&self) -> Vec<u32> {
        self.elements(u32::from_le_bytes)
    }

    pub fn f32s(&self) -> Vec<f32> {
        self.elements(f32::from_le_bytes)
    }

    pub fn f64s(&self) -> Vec<f64> {
        self.elements(f64::from_le_bytes)
    }
}

/// Header entries, and arrays by name; the names of both are sorted.
#[derive(Debug)]
pub struct Container<'a> {
    pub header: Vec<(String, Value)>,
    pub arrays: Vec<(String, Array<'a>)>,
}

/// Takes a file apart.
pub fn open(data: &[u8]) -> Result<Container<'_>> {
    if data.is_empty() || !MAGIC.starts_with(&data[..data.len().min(8)]) {
        return broken("it does not begin like a manyboost model file");
    }
    if data.len() < 16 + CHECKSUM {
        return broken("it is cut short");
    }
    let word = |at: usize| u32::from_le_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]]);
    let (version, length) = (word(8), u64::from(word(12)));
    if !(1..=LATEST).contains(&version) {
        return broken(format!(
            "it has format version {version}, but this release reads versions up to {LATEST}; \
             use a newer release of manyboost-predict"
        ));
    }
    let start = aligned(16 + length);
    if length > LARGEST_HEADER || start + CHECKSUM as u64 > data.len() as u64 {
        return broken(format!(
            "it is cut short, or the length of its header, {length} bytes, is wrong"
        ));
    }
    let (body, checksum) = data.split_at(data.len() - CHECKSUM);
    if blake2b::digest(body) != checksum {
        return broken("its checksum is wrong: bytes were changed, lost or added");
    }
    let end = 16 + length as usize;
    let mut header = match json::parse(&body[16..end])? {
        Value::Object(entries) => entries,
        _ => return broken("its header is not an object"),
    };
    check_padding(&body[end..start as usize])?;
    let layout = match header.iter().position(|(key, _)| key == "arrays") {
        Some(at) => header.remove(at).1,
        None => Value::Null,
    };
    let arrays = arrays(&layout, &body[start as usize..])?;
    let has_any = |names: &[&str]| arrays.iter().any(|(name, _)| names.contains(&name.as_str()));
    let targets = header.iter().find(|(key, _)| key == "targets").map(|(_, value)| value);
    let kind = targets.and_then(|targets| targets.get("kind")).and_then(Value::text);
    let needed = if has_any(&["leaf_outputs"]) {
        6
    } else if kind == Some("columns") {
        5
    } else if has_any(&FOURTH) {
        4
    } else if has_any(&["cut_values"]) {
        3
    } else {
        1 + u32::from(header.iter().any(|(key, _)| key == "n_members"))
    };
    if version != needed {
        return broken(format!(
            "it has format version {version}, which is not that of its contents"
        ));
    }
    Ok(Container { header, arrays })
}

/// The arrays of a layout, which must fill the body.
fn arrays<'a>(layout: &Value, body: &'a [u8]) -> Result<Vec<(String, Array<'a>)>> {
    let entries = match layout {
        Value::Object(entries) => entries,
        _ => return broken("its header describes no arrays"),
    };
    let (mut arrays, mut offset) = (Vec::new(), 0);
    for (name, entry) in entries {
        let (dtype, shape, count) = type_and_shape(name, entry, body.len() as u64)?;
        let length = count.checked_mul(u64::from(dtype.as_bytes()[2] - b'0'));
        let end = length.and_then(|length| length.checked_add(offset));
        let end = match end.filter(|end| *end <= body.len() as u64) {
            Some(end) => end,
            None => return broken(format!("its array {name:?} does not fit the file")),
        };
        let stated = |key: &str| entry.get(key).and_then(Value::integer);
        let n_keys = matches!(entry, Value::Object(keys) if keys.len() == 4);
        if !n_keys || stated("offset") != Some(offset) || stated("length") != length {
            return broken(format!("the length or offset of its array {name:?} is wrong"));
        }
        let bytes = &body[offset as usize..end as usize];
        arrays.push((name.clone(), Array { dtype, shape, bytes }));
        offset = aligned(end);
        if offset > body.len() as u64 {
            return broken("its last array is cut short");
        }
        check_padding(&body[end as usize..offset as usize])?;
    }
    if offset != body.len() as u64 {
        return broken("it has bytes that belong to no array");
    }
    Ok(arrays)
}

/// Type, shape and number of elements of an array.
fn type_and_shape(name: &str, entry: &Value, size: u64) -> Result<(&'static str, Vec<u64>, u64)> {
    const DTYPES: [&str; 12] =
        ["|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8"];
    let dtype = entry.get("dtype").and_then(Value::text);
    let dtype = match DTYPES.iter().find(|known| Some(**known) == dtype) {
        Some(dtype) => dtype,
        None => return broken(format!("its array {name:?} has a type which is not allowed")),
    };
    let shape: Option<Vec<u64>> = entry
        .get("shape")
        .and_then(Value::list)
        .filter(|shape| shape.len() <= MOST_DIMENSIONS)
        .and_then(|shape| shape.iter().map(Value::integer).collect());
    let product = |sizes: &[u64]| sizes.iter().try_fold(1u64, |product, n| product.checked_mul(*n));
    // Only the first dimension of an empty array may be 0.
    let possible = |shape: &Vec<u64>| {
        let most = if shape.first() == Some(&0) { MOST_COLUMNS } else { size };
        let columns = product(shape.get(1..).unwrap_or(&[]));
        shape.iter().all(|n| *n <= most) && columns.map_or(false, |n| n <= MOST_COLUMNS)
    };
    let shape = shape.filter(possible).and_then(|shape| product(&shape).map(|n| (shape, n)));
    match shape {
        Some((shape, count)) => Ok((dtype, shape, count)),
        None => broken(format!("its array {name:?} has an impossible shape")),
    }
}

fn aligned(size: u64) -> u64 {
    (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT
}

fn check_padding(padding: &[u8]) -> Result<()> {
    match padding.iter().all(|byte| *byte == 0) {
        true => Ok(()),
        false => broken("it has something between its arrays"),
    }
}

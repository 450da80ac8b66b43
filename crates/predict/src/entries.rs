//! The entries of a model file: which there are, their types and shapes. Nothing else may be there.

use std::collections::HashMap;

use crate::container::{Array, Container};
use crate::json::Value;
use crate::{broken, Result};

/// Keys of the header and the types of their values; those with a question mark may be absent.
const KEYS: [(&str, &str); 24] = [
    ("category_labels", "list"),
    ("content", "text"),
    ("estimator", "text"),
    ("feature_names", "list null"),
    ("kind", "text"),
    ("left_out", "list"),
    ("losses", "list"),
    ("manyboost", "text"),
    ("mixed", "boolean"),
    ("n_features", "integer"),
    ("n_members", "integer ?"),
    ("n_outputs", "integer"),
    ("output_names", "list null"),
    ("parameters", "object"),
    ("projection", "text object"),
    ("score_names", "list"),
    ("search_results", "object null"),
    ("seed", "integer"),
    ("set_output", "text"),
    ("several_scores", "boolean"),
    ("target_name", "text ?"),
    ("targets", "object"),
    ("trained_with", "object"),
    ("with_offset", "boolean"),
];

/// Arrays, their types and shapes: the same letter stands for the same number in all of them, a star
/// for any. Those with a question mark may be absent.
const ARRAYS: [(&str, &str, &str); 51] = [
    ("baseline", "<f8", "d"),
    ("loss_constants", "<f8", "d"),
    ("tree_sizes", "<u4", "trees"),
    ("node_left", "<u4", "nodes"),
    ("node_cover", "<f4", "nodes"),
    ("split_feature", "<u4", "splits"),
    ("split_threshold", "<f4", "splits"),
    ("split_gain", "<f4", "splits"),
    ("split_categories", "<u4", "* 8"),
    ("leaf_values", "<f4", "* w"),
    ("leaf_sizes", "<u4", "* ?"),
    ("leaf_outputs", "<u4", "* ?"),
    ("tree_steps", "<f4", "trees d ?"),
    ("category_features", "<u4", "c ?"),
    ("category_counts", "<u4", "c ?"),
    ("category_values", "<f8", "* ?"),
    ("group_features", "<u4", "g ?"),
    ("group_codes", "|u1", "* ?"),
    ("cut_features", "<u4", "f ?"),
    ("cut_counts", "<u4", "f ?"),
    ("cut_values", "<f8", "* ?"),
    ("thresholds", "<f8", "d ?"),
    ("sigmoid_slopes", "<f8", "d ?"),
    ("sigmoid_intercepts", "<f8", "d ?"),
    ("isotonic_counts", "<u4", "d ?"),
    ("isotonic_knots", "<f8", "knots ?"),
    ("isotonic_values", "<f8", "knots ?"),
    ("hierarchy_children", "<u4", "h ?"),
    ("hierarchy_parents", "<u4", "h ?"),
    // Records of training, which predictions do not need.
    ("importances", "<f8", "p d ?"),
    ("mean_importances", "<f8", "p ?"),
    ("train_score", "<f8", "n"),
    ("validation_score", "<f8", "*"),
    ("validation_scores", "<f8", "* n"),
    ("validation_per_output", "<f8", "n d ?"),
    ("train_per_output", "<f8", "n d ?"),
    ("shares", "<f8", "2 d ?"),
    ("steps", "<f8", "* d ?"),
    ("best_iter_per_output", "<i8", "d ?"),
    ("best_iter_per_fold", "<i8", "k ?"),
    ("member_baselines", "<f8", "k d ?"),
    ("calibration_raw", "<f8", "m d ?"),
    ("calibration_targets", "<f8", "m d ?"),
    ("calibration_labels", "|u1", "m d ?"),
    ("calibration_classes", "<u4", "m ?"),
    ("calibration_weights", "<f8", "m ?"),
    ("calibration_cell_weights", "<f8", "m d ?"),
    ("calibration_member", "|u1", "m ?"),
    ("monotonic_signs", "|i1", "d p ?"),
    ("interaction_counts", "<u4", "* ?"),
    ("interaction_features", "<u4", "* ?"),
];

/// The entries of a file, all of known names, types and shapes.
pub struct Entries<'a> {
    container: Container<'a>,
    pub n_outputs: usize,
    pub n_features: usize,
    pub n_members: usize,
}

impl<'a> Entries<'a> {
    pub fn new(container: Container<'a>) -> Result<Entries<'a>> {
        match container.header.iter().find(|(key, _)| key == "content").map(|(_, v)| v.text()) {
            Some(Some("model")) => {}
            Some(Some("checkpoint")) => return broken("it is a checkpoint of training"),
            _ => return broken("it is not a model"),
        }
        let mut entries = Entries { container, n_outputs: 0, n_features: 0, n_members: 1 };
        entries.check_keys()?;
        entries.n_outputs = entries.integer("n_outputs", 1, 1 << 32)?;
        entries.n_features = entries.integer("n_features", 1, 1 << 30)?;
        entries.integer("seed", 0, 1 << 31)?;
        if entries.get("n_members").is_some() {
            entries.n_members = entries.integer("n_members", 2, 255)?;
        }
        entries.check_arrays()?;
        Ok(entries)
    }

    fn get(&self, key: &str) -> Option<&Value> {
        self.container.header.iter().find(|(k, _)| k == key).map(|(_, value)| value)
    }

    /// A key of the header.
    pub fn key(&self, key: &str) -> &Value {
        self.get(key).unwrap_or(&Value::Null)
    }

    /// An array, if it is there.
    pub fn array(&self, name: &str) -> Option<&Array<'a>> {
        let arrays = &self.container.arrays;
        let at = arrays.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()?;
        Some(&arrays[at].1)
    }

    /// The elements of an array, none if it is not there.
    pub fn u32s(&self, name: &str) -> Vec<u32> {
        self.array(name).map_or(Vec::new(), Array::u32s)
    }

    pub fn bytes(&self, name: &str) -> &'a [u8] {
        self.array(name).map_or(&[], |array| array.bytes)
    }

    pub fn f32s(&self, name: &str) -> Vec<f32> {
        self.array(name).map_or(Vec::new(), Array::f32s)
    }

    pub fn f64s(&self, name: &str) -> Vec<f64> {
        self.array(name).map_or(Vec::new(), Array::f64s)
    }

    fn check_keys(&self) -> Result<()> {
        for (key, types) in KEYS {
            let found = match self.get(key) {
                Some(Value::Null) => "null",
                Some(Value::Bool(_)) => "boolean",
                Some(Value::Integer(_)) => "integer",
                Some(Value::Float(_)) => "float",
                Some(Value::Text(_)) => "text",
                Some(Value::List(_)) => "list",
                Some(Value::Object(_)) => "object",
                None => "?",
            };
            if !types.split(' ').any(|allowed| allowed == found) {
                return broken(match found {
                    "?" => format!("it has no {key:?}"),
                    _ => format!("its {key:?} has the type {found}"),
                });
            }
        }
        match self.container.header.iter().find(|(key, _)| !KEYS.iter().any(|(k, _)| k == key)) {
            Some((key, _)) => broken(format!("it has {key:?}, which this release does not know")),
            None => Ok(()),
        }
    }

    fn integer(&self, key: &str, least: u64, most: u64) -> Result<usize> {
        let value = self.key(key).integer().filter(|value| (least..=most).contains(value));
        match value.and_then(|value| usize::try_from(value).ok()) {
            Some(value) => Ok(value),
            None => broken(format!("its {key:?} is beyond {least} to {most}")),
        }
    }

    fn check_arrays(&self) -> Result<()> {
        let d = self.n_outputs as u64;
        let width = if self.key("kind").text() == Some("vector") { d } else { 1 };
        let mut sizes = HashMap::from([("d", d), ("p", self.n_features as u64), ("w", width)]);
        for (name, dtype, shape) in ARRAYS {
            let optional = shape.ends_with('?');
            let words: Vec<&str> = shape.split(' ').filter(|word| *word != "?").collect();
            let array = match self.array(name) {
                Some(array) => array,
                None if optional => continue,
                None => return broken(format!("it has no array {name:?}")),
            };
            let mut fits = array.dtype == dtype && array.shape.len() == words.len();
            for (word, size) in words.into_iter().zip(&array.shape) {
                let wanted = match word.parse() {
                    Ok(number) => number,
                    Err(_) if word == "*" => *size,
                    Err(_) => *sizes.entry(word).or_insert(*size),
                };
                fits = fits && wanted == *size;
            }
            if !fits {
                let found = (array.dtype, &array.shape);
                return broken(format!("its array {name:?} is {} of shape {:?}", found.0, found.1));
            }
        }
        let mut n_values = 0; // arrays that parameters refer to: value_000000, …
        for (name, _) in &self.container.arrays {
            if *name == format!("value_{n_values:06}") {
                n_values += 1;
            } else if !ARRAYS.iter().any(|(known, ..)| known == name) {
                return broken(format!(
                    "it has the array {name:?}, which this release does not know"
                ));
            }
        }
        Ok(())
    }
}

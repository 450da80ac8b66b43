//! What the outputs of a model mean: numbers, quantiles, classes or labels; and their links.

use crate::entries::Entries;
use crate::json::{float_text, Value};
use crate::labels::{Calibrator, Hierarchy};
use crate::links::Link;
use crate::{broken, Error, Result};

/// What is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Targets {
    /// Numbers, with so many quantile levels for each output of y.
    Numbers(usize),
    /// The second of two classes.
    Binary,
    /// One of several classes.
    Classes,
    /// One of several classes in each of several columns.
    ClassColumns,
    /// Labels.
    Labels,
}

/// The outputs of a model.
#[derive(Debug)]
pub struct Outputs {
    pub targets: Targets,
    /// Neighbouring outputs of one link, and how many; None: a loss without link.
    links: Option<Vec<(Link, usize)>>,
    /// Names of the columns of predictions.
    pub names: Vec<String>,
    /// Numbers of classes, if there are several columns of them. Two classes have one output.
    pub n_classes: Vec<usize>,
    thresholds: Option<Vec<f64>>,
    calibrator: Option<Calibrator>,
    hierarchy: Option<Hierarchy>,
}

impl Outputs {
    pub fn read(entries: &Entries<'_>) -> Result<Outputs> {
        let names = names(entries.key("output_names"))?;
        let of_y = entries.key("targets");
        let is_columns = of_y.get("kind").and_then(Value::text) == Some("columns");
        let mut n_classes = Vec::new();
        let (targets, names) = match entries.key("estimator").text() {
            Some("ManyBoostRegressor") => numbers(of_y, entries.n_outputs, names)?,
            Some("ManyBoostClassifier") if is_columns && names.is_none() => {
                let texts = class_columns(entries, of_y)?;
                n_classes = texts.iter().map(Vec::len).collect();
                (Targets::ClassColumns, texts.concat())
            }
            Some("ManyBoostClassifier") => classes(entries, of_y, names)?,
            _ => return broken("it is of an estimator that this release does not know"),
        };
        let links = links(entries, targets, &n_classes)?;
        check_levels(entries, of_y)?;
        let thresholds = entries.array("thresholds").map(|array| array.f64s());
        let allowed = |thresholds: &Vec<f64>| thresholds.iter().all(|t| (0.0..=1.0).contains(t));
        if !thresholds.as_ref().map_or(true, allowed) {
            return broken("its thresholds are beyond 0 to 1");
        }
        let (calibrator, hierarchy) = (Calibrator::read(entries)?, Hierarchy::read(entries)?);
        let has_labels = matches!(targets, Targets::Labels | Targets::Binary);
        if calibrator.is_some() && (!has_labels || entries.n_members < 2) {
            return broken("it has a calibrator that its outputs cannot have");
        }
        if hierarchy.is_some() && targets != Targets::Labels {
            return broken("it has a hierarchy, but no labels");
        }
        if thresholds.is_some() && !has_labels {
            return broken("it has thresholds, which its outputs cannot have");
        }
        Ok(Outputs { targets, links, names, n_classes, thresholds, calibrator, hierarchy })
    }

    /// Whether all classes, or those of a column, share one link.
    pub fn is_softmax(&self) -> bool {
        let is_softmax = |(link, _): &(Link, usize)| *link == Link::Softmax;
        self.links.as_ref().map_or(false, |links| links.iter().any(is_softmax))
    }

    /// Predictions of a row, or the probability of each class or label on its own.
    pub fn present(&self, raw: &[f64], row: &mut [f64]) -> Result<()> {
        row.copy_from_slice(raw);
        let mut rest = &mut row[..];
        for (link, count) in self.links.as_ref().ok_or(Error::NoLink)? {
            let (these, after) = rest.split_at_mut(*count);
            link.apply(these);
            rest = after;
        }
        if let Some(calibrator) = &self.calibrator {
            calibrator.apply(raw, row);
        }
        self.agree(row);
        Ok(())
    }

    /// The margin of each label: its probability less its threshold, or its raw prediction where
    /// nothing moves the boundary.
    pub fn above_thresholds(&self, raw: &[f64], above: &mut [f64]) -> Result<()> {
        match &self.thresholds {
            None if self.calibrator.is_none() => above.copy_from_slice(raw),
            thresholds => {
                self.present(raw, above)?;
                for (j, above) in above.iter_mut().enumerate() {
                    *above -= thresholds.as_ref().map_or(0.5, |thresholds| thresholds[j]);
                }
            }
        }
        self.agree(above);
        Ok(())
    }

    fn agree(&self, row: &mut [f64]) {
        if let Some(hierarchy) = &self.hierarchy {
            hierarchy.apply(row);
        }
    }
}

/// A list of different texts, or null.
pub fn names(value: &Value) -> Result<Option<Vec<String>>> {
    let list = match value.list() {
        Some(list) => list,
        None => return Ok(None),
    };
    let texts: Option<Vec<String>> =
        list.iter().map(|each| each.text().map(String::from)).collect();
    match texts.filter(|texts| are_different(texts)) {
        Some(texts) => Ok(Some(texts)),
        None => broken("its names are not different texts"),
    }
}

/// Whether no text comes twice.
pub fn are_different(texts: &[String]) -> bool {
    let mut sorted: Vec<&String> = texts.iter().collect();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}

/// Refuses another number of names than there should be; makes names if there are none.
fn counted(names: Option<Vec<String>>, count: usize) -> Result<Vec<String>> {
    let names = names.unwrap_or_else(|| (0..count).map(|j| format!("y{j}")).collect());
    match names.len() == count {
        true => Ok(names),
        false => broken(format!("its 'output_names' are not {count} names")),
    }
}

fn numbers(of_y: &Value, d: usize, names: Option<Vec<String>>) -> Result<(Targets, Vec<String>)> {
    let n_keys = matches!(of_y, Value::Object(entries) if entries.len() == 2);
    let one_dimensional = of_y.get("one_dimensional").and_then(Value::boolean);
    let levels: Option<Vec<f64>> = match of_y.get("quantiles") {
        Some(Value::Null) => Some(Vec::new()),
        Some(Value::List(list)) if !list.is_empty() => list.iter().map(Value::number).collect(),
        _ => None,
    };
    let (one_dimensional, levels) = match (one_dimensional, levels) {
        (Some(one), Some(levels)) if n_keys => (one, levels),
        _ => return broken("it does not say what its outputs are"),
    };
    let inside = levels.iter().all(|level| *level > 0.0 && *level < 1.0);
    let n_levels = levels.len().max(1);
    if !inside || !levels.windows(2).all(|pair| pair[0] < pair[1]) {
        return broken("its quantiles are not ascending numbers between 0 and 1");
    }
    if d % n_levels != 0 || (one_dimensional && d != n_levels) {
        return broken("its outputs are not those of its targets");
    }
    let names = counted(names, d / n_levels)?;
    let of_level = |name: &String| -> Vec<String> {
        levels.iter().map(|level| format!("{name}_q{}", float_text(*level))).collect()
    };
    let by_level = names.iter().flat_map(of_level).collect();
    Ok((Targets::Numbers(n_levels), if levels.is_empty() { names } else { by_level }))
}

/// Quantile levels must be the constants of the loss of every output of y.
fn check_levels(entries: &Entries<'_>, of_y: &Value) -> Result<()> {
    let levels = match of_y.get("quantiles") {
        Some(Value::List(levels)) => levels,
        _ => return Ok(()),
    };
    let is_quantile =
        |block: &Value| matches!(block.list(), Some([Value::Text(n), _]) if n == "quantile");
    let of_loss = entries.key("losses").list().map_or(false, |all| all.iter().all(is_quantile));
    let constants = entries.f64s("loss_constants");
    let same = constants.iter().zip(levels.iter().cycle()).all(|(c, l)| l.number() == Some(*c));
    match of_loss && same {
        true => Ok(()),
        false => broken("its quantiles are not those of its loss"),
    }
}

fn classes(
    entries: &Entries<'_>,
    of_y: &Value,
    names: Option<Vec<String>>,
) -> Result<(Targets, Vec<String>)> {
    let d = entries.n_outputs;
    let n_keys = matches!(of_y, Value::Object(keys) if keys.len() == 2);
    let (targets, expected) = match of_y.get("kind").and_then(Value::text) {
        Some("binary") if d == 1 && n_keys => (Targets::Binary, 2),
        Some("multiclass") if d >= 3 && n_keys => (Targets::Classes, d),
        Some("multilabel") if n_keys => (Targets::Labels, d),
        _ => return broken("it does not say what its classes are"),
    };
    if targets != Targets::Labels && names.is_some() {
        return broken("its classes have names");
    }
    let texts = match of_y.get("values").unwrap_or(&Value::Null) {
        Value::Text(how) if how == "numbers" && targets == Targets::Labels => counted(None, d)?,
        Value::Text(how) if how == "names" && names.is_some() => names.clone().unwrap_or_default(),
        values => class_texts(entries, values)?,
    };
    // Numbers are in order by their values, which texts do not tell.
    let is_text = of_y.get("values").and_then(|values| values.get("array")?.get("text")).is_some();
    let in_order = texts.windows(2).all(|pair| pair[0] < pair[1]);
    if is_text && targets != Targets::Labels && !in_order {
        return broken("its classes are out of order");
    }
    if texts.len() != expected || !are_different(&texts) {
        return broken(format!("it does not have {expected} different classes"));
    }
    Ok((targets, if names.is_some() { counted(names, d)? } else { texts }))
}

/// The classes of each of several columns, with the name of the column.
fn class_columns(entries: &Entries<'_>, of_y: &Value) -> Result<Vec<Vec<String>>> {
    let n_keys = matches!(of_y, Value::Object(keys) if keys.len() == 3);
    let (values, of_columns) = match (of_y.get("values"), of_y.get("names")) {
        (Some(Value::List(values)), Some(of_columns)) if n_keys && values.len() > 1 => {
            (values, of_columns)
        }
        _ => return broken("it does not say what its columns of classes are"),
    };
    if !matches!(of_columns, Value::Null | Value::List(_)) {
        return broken("its columns of classes have no names");
    }
    let of_columns = counted(names(of_columns)?, values.len())?;
    let (mut columns, mut width) = (Vec::new(), 0);
    for (value, column) in values.iter().zip(of_columns) {
        let texts = class_texts(entries, value)?;
        let is_text = value.get("array").and_then(|array| array.get("text")).is_some();
        let in_order = texts.windows(2).all(|pair| pair[0] < pair[1]);
        if texts.len() < 2 || !are_different(&texts) || (is_text && !in_order) {
            return broken("a column has less than two classes, or they are out of order");
        }
        width += if texts.len() == 2 { 1 } else { texts.len() };
        columns.push(texts.iter().map(|each| format!("{column}={each}")).collect());
    }
    match width == entries.n_outputs {
        true => Ok(columns),
        false => broken("its columns of classes are not those of its outputs"),
    }
}

/// The links of columns of classes with one softmax for each column of more than two.
fn softmax_links(n_classes: &[usize]) -> Vec<(Link, usize)> {
    let mut links: Vec<(Link, usize)> = Vec::new();
    for &count in n_classes {
        match links.last_mut() {
            Some((Link::Logistic, width)) if count == 2 => *width += 1,
            _ if count == 2 => links.push((Link::Logistic, 1)),
            _ => links.push((Link::Softmax, count)),
        }
    }
    links
}

/// Classes as texts: of an array of the file, or of texts in the header.
fn class_texts(entries: &Entries<'_>, values: &Value) -> Result<Vec<String>> {
    let strange = || broken("its classes are not a list of texts, numbers or booleans");
    let array = match values {
        Value::Object(one) if one.len() == 1 => values.get("array").unwrap_or(&Value::Null),
        _ => return strange(),
    };
    if let Some(number) = array.integer() {
        let array = match entries.array(&format!("value_{number:06}")) {
            Some(array) if array.shape.len() == 1 => array,
            _ => return strange(),
        };
        return array
            .bytes
            .chunks_exact(array.size())
            .map(|each| number_text(array.dtype, each))
            .collect();
    }
    let texts = array.get("text").or_else(|| array.get("values")).and_then(Value::list);
    let shape = array.get("shape").and_then(Value::list).unwrap_or(&[]);
    match texts {
        Some(texts) if shape.len() == 1 && shape[0].integer() == Some(texts.len() as u64) => {
            let texts: Option<Vec<String>> =
                texts.iter().map(|each| each.text().map(String::from)).collect();
            texts.map_or_else(strange, Ok)
        }
        _ => strange(),
    }
}

/// A number of an array as Python writes it.
fn number_text(dtype: &str, bytes: &[u8]) -> Result<String> {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let unsigned = u64::from_le_bytes(wide);
    let unused = 64 - 8 * bytes.len() as u32;
    let signed = ((unsigned << unused) as i64) >> unused;
    let float = match dtype {
        "<f2" => half(unsigned as u16),
        "<f4" => f64::from(f32::from_bits(unsigned as u32)),
        _ => f64::from_bits(unsigned),
    };
    match dtype {
        "|b1" if unsigned < 2 => Ok(String::from(if unsigned == 1 { "True" } else { "False" })),
        "|i1" | "<i2" | "<i4" | "<i8" => Ok(signed.to_string()),
        "|u1" | "<u2" | "<u4" | "<u8" => Ok(unsigned.to_string()),
        "<f2" | "<f4" | "<f8" if float.is_finite() => Ok(float_text(float)),
        _ => broken("its classes are numbers of a kind that this release does not read"),
    }
}

/// The value of the bits of a number in half precision.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023) / 1024.0);
    let size = match exponent {
        0 => fraction * 2f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction) * 2f64.powi(exponent - 15),
    };
    if bits >> 15 == 1 {
        -size
    } else {
        size
    }
}

/// The links of the losses of neighbouring outputs.
fn links(
    entries: &Entries<'_>,
    targets: Targets,
    n_classes: &[usize],
) -> Result<Option<Vec<(Link, usize)>>> {
    let in_columns = targets == Targets::ClassColumns;
    let (constants, baseline) = (entries.f64s("loss_constants"), entries.f64s("baseline"));
    let is_mixed = entries.key("mixed").boolean() == Some(true);
    let of_numbers = matches!(targets, Targets::Numbers(_));
    let blocks = entries.key("losses").list().unwrap_or(&[]);
    let (mut links, mut start, mut before) = (Vec::new(), 0, "");
    for block in blocks {
        let (name, count) = match block.list() {
            Some([Value::Text(name), count]) => (name.as_str(), count.integer()),
            _ => return broken("it does not say what the losses of its outputs are"),
        };
        let end = count
            .filter(|count| *count > 0)
            .and_then(|n| usize::try_from(n).ok()?.checked_add(start));
        let constants = match end.and_then(|end| constants.get(start..end)) {
            Some(constants) if name != before || (in_columns && name == "softmax") => constants,
            _ => return broken("it does not have one loss for each output"),
        };
        let between = |low: f64, high: f64| constants.iter().all(|c| *c > low && *c < high);
        let unused = constants.iter().all(|constant| *constant == 0.5);
        // The link, whether the constants of the loss are allowed, and whether it is of numbers.
        let (link, allowed, is_numeric) = match name {
            "squared_error" | "absolute_error" => (Link::Identity, unused, true),
            "huber" => (Link::Identity, between(0.0, f64::INFINITY), true),
            "quantile" => (Link::Identity, between(0.0, 1.0), true),
            "poisson" | "gamma" => (Link::Exponential, unused, true),
            "tweedie" => {
                (Link::Exponential, constants.iter().all(|c| (1.1..=1.9).contains(c)), true)
            }
            "log_loss" | "exponential" => (Link::Logistic, unused, is_mixed && of_numbers),
            "squared_labels" => (Link::Halved, unused, false),
            "softmax" if in_columns || targets == Targets::Classes => {
                (Link::Softmax, unused, false)
            }
            "custom" | "custom_curved" if !is_mixed => (Link::Identity, unused, of_numbers),
            _ => {
                return broken(format!(
                    "it has the loss {name:?}, which this release does not know here"
                ))
            }
        };
        if !allowed || is_numeric != of_numbers {
            return broken(format!("its loss {name:?} does not fit its constants or its targets"));
        }
        // Outputs with a link are trained in single precision, from the baseline on.
        let starts = &baseline[start..start + constants.len()];
        if link != Link::Identity && starts.iter().any(|base| f64::from(*base as f32) != *base) {
            return broken(format!("its baseline is not in single precision, as {name:?} has it"));
        }
        links.push((link, constants.len()));
        (start, before) = (start + constants.len(), name);
    }
    if start != entries.n_outputs || (!is_mixed && links.len() != 1) {
        return broken("it does not have one loss for each output");
    }
    let by_column = matches!(before, "softmax" | "log_loss");
    let expected = links.len() == 1 || by_column;
    let fits = !by_column || links == softmax_links(n_classes);
    if in_columns && !(expected && fits && is_mixed == (links.len() > 1)) {
        return broken("its losses are not those of its columns of classes");
    }
    let has_link = of_numbers || !before.starts_with("custom");
    Ok(Some(links).filter(|_| has_link))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_numbers() {
        let bits = [0x3c00, 0xc000, 0x2e66, 0x7bff, 0x0001, 0x8400, 0x0000];
        let expected =
            [1.0, -2.0, 0.0999755859375, 65504.0, 2f64.powi(-24), -(2f64.powi(-14)), 0.0];
        assert_eq!(bits.map(half), expected);
        assert!(half(0x7e00).is_nan() && half(0xfc00) == f64::NEG_INFINITY);
    }
}

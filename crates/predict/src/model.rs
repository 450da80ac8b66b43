//! The model: features to codes, trees, baseline, links.

use crate::codes::{self, Codes};
use crate::container;
use crate::entries::Entries;
use crate::json::{float_text, Value};
use crate::links::share;
use crate::outputs::{are_different, names, Outputs, Targets};
use crate::trees::Trees;
use crate::{broken, Error, Result};

/// A fitted model, read from a file.
#[derive(Debug)]
pub struct Model {
    n_features: usize,
    baseline: Vec<f64>,
    categories: Vec<Codes>,
    cuts: Vec<Codes>,
    trees: Trees,
    outputs: Outputs,
    with_offset: bool,
    feature_names: Option<Vec<String>>,
    category_labels: Vec<(u32, Vec<String>)>,
}

impl Model {
    /// Reads the bytes of a model file. Nothing in it is executed; what is unsound is refused.
    pub fn from_bytes(data: &[u8]) -> Result<Model> {
        let entries = Entries::new(container::open(data)?)?;
        let feature_names = names(entries.key("feature_names"))?;
        if feature_names.as_ref().map_or(false, |names| names.len() != entries.n_features) {
            return broken("its 'feature_names' are not one for each feature");
        }
        let categories = codes::categories(&entries)?;
        let cuts = codes::cuts(&entries, &categories)?;
        let baseline = entries.f64s("baseline");
        if !baseline.iter().all(|value| value.is_finite()) {
            return broken("its baseline is not finite");
        }
        Ok(Model {
            n_features: entries.n_features,
            trees: Trees::read(&entries, &categories, &cuts)?,
            outputs: Outputs::read(&entries)?,
            with_offset: entries.key("with_offset").boolean() == Some(true),
            category_labels: labels(&entries, &categories)?,
            baseline,
            categories,
            cuts,
            feature_names,
        })
    }

    /// Number of features of a row.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// Number of raw predictions of a row.
    pub fn n_outputs(&self) -> usize {
        self.baseline.len()
    }

    /// Number of predictions of a row: two for two classes (of a column), else one for each output.
    pub fn n_columns(&self) -> usize {
        self.outputs.names.len()
    }

    /// Names of the features, if the model was fitted to a frame.
    pub fn feature_names(&self) -> Option<&[String]> {
        self.feature_names.as_deref()
    }

    /// Names of the columns of predictions: classes, labels, or outputs (y0, y1, … without names).
    pub fn column_names(&self) -> &[String] {
        &self.outputs.names
    }

    /// Labels of the categories of a feature that was text in a frame: rows hold their numbers.
    pub fn category_labels(&self, feature: usize) -> Option<&[String]> {
        let found = self.category_labels.iter().find(|(j, _)| *j as usize == feature)?;
        Some(&found.1)
    }

    /// Whether the model was fitted with an offset, to be added to raw predictions.
    pub fn needs_offset(&self) -> bool {
        self.with_offset
    }

    /// Predictions of rows: Python's `predict` of a regressor, `predict_proba` of a classifier.
    ///
    /// `rows` has `n_features` numbers for each row, NaN for missing ones; `predictions`
    /// `n_columns`.
    pub fn predict(&self, rows: &[f64], predictions: &mut [f64]) -> Result<()> {
        if self.with_offset {
            return Err(Error::NeedsOffset);
        }
        let n_rows = count("rows", rows.len(), self.n_features)?;
        let mut raw = vec![0.0; n_rows * self.n_outputs()];
        self.raw(rows, &mut raw)?;
        self.finish(&raw, predictions)
    }

    /// Raw predictions of rows, before the link: `n_outputs` for each.
    pub fn raw(&self, rows: &[f64], raw: &mut [f64]) -> Result<()> {
        let (p, d) = (self.n_features, self.n_outputs());
        if count("rows", rows.len(), p)? != count("raw predictions", raw.len(), d)? {
            return different("rows", "raw predictions");
        }
        let (mut single, mut sums) = (vec![0.0; p], vec![0.0; d]);
        for (row, raw) in rows.chunks_exact(p).zip(raw.chunks_exact_mut(d)) {
            self.encode(row, &mut single);
            sums.fill(0.0);
            self.trees.add_to(&single, &mut sums);
            for ((raw, sum), base) in raw.iter_mut().zip(&sums).zip(&self.baseline) {
                *raw = base + f64::from(*sum);
            }
        }
        Ok(())
    }

    /// Predictions for raw predictions, with offsets added if the model needs any.
    pub fn finish(&self, raw: &[f64], predictions: &mut [f64]) -> Result<()> {
        let (d, width) = (self.n_outputs(), self.n_columns());
        if count("raw predictions", raw.len(), d)?
            != count("predictions", predictions.len(), width)?
        {
            return different("raw predictions", "predictions");
        }
        for (raw, row) in raw.chunks_exact(d).zip(predictions.chunks_exact_mut(width)) {
            self.outputs.present(raw, &mut row[width - d..])?;
            match self.outputs.targets {
                Targets::Numbers(levels) if levels > 1 => {
                    row.chunks_exact_mut(levels).for_each(sort);
                }
                Targets::Binary => row[0] = 1.0 - row[1],
                Targets::Classes if !self.outputs.is_softmax() => share(row),
                Targets::ClassColumns => self.spread(row),
                _ => {}
            }
        }
        Ok(())
    }

    /// Brings the outputs of columns of classes, which are at the end of a row, to all its classes.
    fn spread(&self, row: &mut [f64]) {
        let (mut from, mut to) = (row.len() - self.n_outputs(), 0);
        for &count in &self.outputs.n_classes {
            if count == 2 {
                let second = row[from];
                row[to] = 1.0 - second;
                row[to + 1] = second;
                from += 1;
            } else {
                row.copy_within(from..from + count, to);
                if !self.outputs.is_softmax() {
                    share(&mut row[to..to + count]);
                }
                from += count;
            }
            to += count;
        }
    }

    /// What Python's `predict` of a classifier chooses for raw predictions: 1 in the columns of the
    /// class or of the labels, else 0.
    pub fn choose(&self, raw: &[f64], chosen: &mut [u8]) -> Result<()> {
        let (d, width) = (self.n_outputs(), self.n_columns());
        if count("raw predictions", raw.len(), d)? != count("chosen", chosen.len(), width)? {
            return different("raw predictions", "chosen");
        }
        let mut above = vec![0.0; d];
        for (raw, chosen) in raw.chunks_exact(d).zip(chosen.chunks_exact_mut(width)) {
            chosen.fill(0);
            match self.outputs.targets {
                Targets::Numbers(_) => return Err(Error::NoClasses),
                Targets::Classes => chosen[largest(raw)] = 1,
                Targets::ClassColumns => {
                    let (mut from, mut to) = (0, 0);
                    for &count in &self.outputs.n_classes {
                        let width = if count == 2 { 1 } else { count };
                        let part = &raw[from..from + width];
                        let best = match part {
                            [one] => usize::from(*one > 0.0),
                            several => largest(several),
                        };
                        chosen[to + best] = 1;
                        from += width;
                        to += count;
                    }
                }
                Targets::Binary => {
                    self.outputs.above_thresholds(raw, &mut above)?;
                    chosen[usize::from(above[0] > 0.0)] = 1;
                }
                Targets::Labels => {
                    self.outputs.above_thresholds(raw, &mut above)?;
                    for (chosen, above) in chosen.iter_mut().zip(&above) {
                        *chosen = u8::from(*above > 0.0);
                    }
                }
            }
        }
        Ok(())
    }

    /// The values of a row as trees take them: codes of categories and cuts, single precision.
    fn encode(&self, row: &[f64], single: &mut [f32]) {
        for (single, value) in single.iter_mut().zip(row) {
            *single = *value as f32;
        }
        for codes in &self.categories {
            let at = codes.feature as usize;
            single[at] = codes.category(row[at]);
        }
        for codes in &self.cuts {
            let at = codes.feature as usize;
            single[at] = codes.number(row[at]);
        }
    }
}

/// The place of the largest number, of equals the first.
fn largest(raw: &[f64]) -> usize {
    (1..raw.len()).fold(0, |best, j| if raw[j] > raw[best] { j } else { best })
}

fn sort(levels: &mut [f64]) {
    levels.sort_unstable_by(f64::total_cmp);
}

/// How many rows a slice holds.
fn count(what: &str, length: usize, width: usize) -> Result<usize> {
    match length % width {
        0 => Ok(length / width),
        _ => Err(Error::Shape(format!(
            "The {what} hold {length} numbers, not {width} for each row."
        ))),
    }
}

fn different<T>(a: &str, b: &str) -> Result<T> {
    Err(Error::Shape(format!("There are more {a} than {b}, or fewer.")))
}

/// Labels of categories, as texts.
fn labels(entries: &Entries<'_>, categories: &[Codes]) -> Result<Vec<(u32, Vec<String>)>> {
    let mut all: Vec<(u32, Vec<String>)> = Vec::new();
    for pair in entries.key("category_labels").list().unwrap_or(&[]) {
        let (feature, stored) = match pair.list() {
            Some([feature, Value::List(stored)]) => (feature.integer(), stored),
            _ => return broken("it has labels of no categorical feature"),
        };
        let feature = feature.and_then(|feature| u32::try_from(feature).ok());
        let codes = feature.and_then(|feature| codes::of_feature(categories, feature));
        let codes = codes.map_or(&[f64::NAN][..], |codes| &codes.values);
        let texts: Option<Vec<String>> = stored.iter().map(label_text).collect();
        let keys: Vec<String> = stored.iter().filter_map(label_key).collect();
        let different = are_different(&keys);
        let numbered = codes.iter().enumerate().all(|(k, code)| *code == k as f64);
        match (feature, texts) {
            (Some(j), Some(texts))
                if texts.len() == codes.len()
                    && numbered
                    && different
                    && all.last().map_or(true, |(before, _)| *before < j) =>
            {
                all.push((j, texts));
            }
            _ => return broken("the labels of its categories are not one text or number for each"),
        }
    }
    Ok(all)
}

fn label_text(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.clone()),
        Value::Integer(value) => Some(value.to_string()),
        Value::Float(value) => Some(float_text(*value)),
        Value::Bool(value) => Some(String::from(if *value { "True" } else { "False" })),
        Value::Object(_) => infinity_text(value),
        _ => None,
    }
}

/// JSON has no infinite numbers, so files hold `{"float": "inf"}`.
fn infinity_text(value: &Value) -> Option<String> {
    let text = value.get("float")?.text()?;
    matches!(text, "inf" | "-inf").then(|| String::from(text))
}

/// A text that is the same for labels that are equal: 1, 1.0 and true are, "1" is another one.
fn label_key(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(format!("text {text}")),
        Value::Bool(value) => Some(u8::from(*value).to_string()),
        Value::Float(value) if *value as i128 as f64 == *value => {
            Some((*value as i128).to_string())
        }
        _ => label_text(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_differ_as_they_do_in_python() {
        let different = |labels: &[Value]| {
            are_different(&labels.iter().filter_map(label_key).collect::<Vec<_>>())
        };
        let text = |text: &str| Value::Text(text.into());
        assert!(different(&[Value::Integer(1), text("1"), Value::Float(1.5), Value::Bool(false)]));
        let ones = [Value::Integer(1), Value::Float(1.0), Value::Bool(true)];
        assert!(
            !different(&ones[..2]) && !different(&ones[1..]) && !different(&[text("a"), text("a")])
        );
        assert!(!different(&[Value::Float(0.0), Value::Float(-0.0)]));
    }

    #[test]
    fn infinite_labels_are_texts_as_in_python() {
        let float = |text: &str| Value::Object(vec![("float".into(), Value::Text(text.into()))]);
        assert_eq!(label_text(&float("inf")).as_deref(), Some("inf"));
        assert_eq!(label_text(&float("-inf")).as_deref(), Some("-inf"));
        assert_eq!(label_text(&float("nan")), None);
        assert_eq!(label_text(&float("1.5")), None);
        assert_eq!(label_text(&Value::Object(vec![("tuple".into(), Value::Null)])), None);
    }
}

//! A model as bytes, and back, with every number checked on the way in.
//!
//! Layout, little-endian: magic, version, kind, counts, then the arrays one after the other.

use crate::category::CategorySet;
use crate::ensemble::{Ensemble, Kind};
use crate::error::{Error, Result, invalid};
use crate::tree::{FLAGS, Node};

const MAGIC: &[u8; 4] = b"MBTE";
const VERSION: u32 = 1;

/// Serialises a model.
pub fn to_bytes(model: &Ensemble) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(MAGIC);
    let kind = match model.kind {
        Kind::PerOutput => 0,
        Kind::Vector => 1,
        Kind::Scaled => 2,
    };
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&u32::to_le_bytes(kind));
    let counts = [
        model.n_outputs,
        model.n_features,
        model.n_trees(),
        model.nodes.len(),
        model.sets.len(),
        model.values.len(),
    ];
    for count in counts {
        out.extend_from_slice(&(count as u64).to_le_bytes());
    }
    let mut put = |word: u32| out.extend_from_slice(&word.to_le_bytes());
    (0..model.n_trees()).for_each(|t| put(model.tree(t).len() as u32));
    model.nodes.iter().for_each(|n| put(n.feature));
    model.nodes.iter().for_each(|n| put(n.threshold.to_bits()));
    model.nodes.iter().for_each(|n| put(n.left));
    model.nodes.iter().for_each(|n| put(n.cover.to_bits()));
    model.nodes.iter().for_each(|n| put(n.gain.to_bits()));
    // Sets follow the order of the categorical nodes, which need no number for them.
    model.sets.iter().for_each(|set| set.to_words().into_iter().for_each(&mut put));
    model.values.iter().for_each(|v| put(v.to_bits()));
    model.steps.iter().for_each(|v| put(v.to_bits()));
    out
}

/// Reads a model; the sentence of an error says what does not hold together.
pub fn from_bytes(bytes: &[u8]) -> Result<Ensemble> {
    let mut reader = Reader { rest: bytes };
    if reader.take(4)? != MAGIC {
        return invalid("these bytes are not a manyboost model");
    }
    let version = reader.word()?;
    if version != VERSION {
        return invalid(format!(
            "the model has format version {version}, this release reads {VERSION}"
        ));
    }
    let kind = match reader.word()? {
        0 => Kind::PerOutput,
        1 => Kind::Vector,
        2 => Kind::Scaled,
        other => return invalid(format!("the model has an unknown kind of trees ({other})")),
    };
    let n_outputs = reader.count()?;
    let n_features = reader.count()?;
    let n_trees = reader.count()?;
    let n_nodes = reader.count()?;
    let n_sets = reader.count()?;
    let n_values = reader.count()?;
    if n_outputs == 0 || n_features == 0 {
        return invalid("the model has no outputs or no features");
    }
    let n_steps = if kind == Kind::Scaled { n_trees.checked_mul(n_outputs) } else { Some(0) };
    let sizes = [n_nodes.checked_mul(5), n_sets.checked_mul(8), n_steps];
    let words = [Some(n_trees), Some(n_values)]
        .into_iter()
        .chain(sizes)
        .try_fold(0usize, |sum, part| part.and_then(|part| sum.checked_add(part)));
    if words.and_then(|w| w.checked_mul(4)) != Some(reader.rest.len()) {
        return invalid("the model is cut short or has bytes left over");
    }
    let sizes = reader.words(n_trees)?;
    let feature = reader.words(n_nodes)?;
    let threshold = reader.words(n_nodes)?;
    let left = reader.words(n_nodes)?;
    let cover = reader.words(n_nodes)?;
    let gain = reader.words(n_nodes)?;
    let sets: Vec<CategorySet> = reader
        .words(n_sets * 8)?
        .as_chunks()
        .0
        .iter()
        .map(|&w| CategorySet::from_words(w))
        .collect();
    let floats = |words: Vec<u32>| words.into_iter().map(f32::from_bits).collect::<Vec<f32>>();
    let values = floats(reader.words(n_values)?);
    let steps = floats(reader.words(n_steps.unwrap_or(0))?);

    let mut model = Ensemble::new(kind, n_outputs, n_features);
    let mut node_start = 0usize;
    let mut value_start = 0usize;
    let mut set_start = 0usize;
    let width = if kind == Kind::Vector { n_outputs } else { 1 };
    for (t, size) in sizes.into_iter().enumerate() {
        let size = size as usize;
        let end = node_start.checked_add(size).filter(|&e| e <= n_nodes && size > 0);
        let Some(end) = end else {
            return invalid(format!("tree {t} has an impossible size"));
        };
        let mut nodes: Vec<Node> = (node_start..end)
            .map(|k| Node {
                feature: feature[k],
                threshold: f32::from_bits(threshold[k]),
                left: left[k],
                cover: f32::from_bits(cover[k]),
                gain: f32::from_bits(gain[k]),
                cut: 0,
            })
            .collect();
        let mut set_end = set_start;
        for node in nodes.iter_mut().filter(|node| node.is_categorical()) {
            node.cut = (set_end - set_start) as u32;
            set_end += 1;
        }
        let Some(tree_sets) = sets.get(set_start..set_end) else {
            return invalid(format!("tree {t} has too few category sets"));
        };
        let n_leaves = check_tree(&nodes, n_features).map_err(|why| {
            Error::Invalid(format!("tree {t} of the model does not hold together: {why}"))
        })?;
        let value_end = value_start + n_leaves * width;
        let tree_steps =
            if kind == Kind::Scaled { &steps[t * n_outputs..(t + 1) * n_outputs] } else { &[] };
        let Some(tree_values) = values.get(value_start..value_end) else {
            return invalid(format!("tree {t} has too few leaf values"));
        };
        model.push(&nodes, tree_sets, tree_values, tree_steps)?;
        node_start = end;
        set_start = set_end;
        value_start = value_end;
    }
    if node_start != n_nodes || set_start != n_sets || value_start != n_values {
        return invalid("the model holds nodes, category sets or values of no tree");
    }
    Ok(model)
}

/// Every child has one parent before it, every leaf its own number, every feature exists.
fn check_tree(nodes: &[Node], n_features: usize) -> std::result::Result<usize, String> {
    let mut n_leaves = 0;
    let mut next_child = 1;
    let mut pairs: Vec<u32> = Vec::new();
    for (k, node) in nodes.iter().enumerate() {
        if node.is_leaf() {
            if node.feature as usize != n_leaves {
                return Err(format!("leaf {n_leaves} is numbered {}", node.feature));
            }
            n_leaves += 1;
            continue;
        }
        if node.feature_index() >= n_features {
            return Err(format!("node {k} looks at feature {}", node.feature & !FLAGS));
        }
        if node.threshold.is_nan() {
            return Err(format!("node {k} has no threshold"));
        }
        if node.is_categorical() && node.threshold != 0.0 {
            return Err(format!("node {k} has a threshold beside its categories"));
        }
        let left = node.left as usize;
        if left <= k || left + 1 >= nodes.len() {
            return Err(format!("node {k} has child {left} of {} nodes", nodes.len()));
        }
        pairs.push(node.left);
    }
    pairs.sort_unstable();
    for left in pairs {
        if left as usize != next_child {
            return Err(format!("nodes {next_child} and {} are nobody's children", next_child + 1));
        }
        next_child += 2;
    }
    if next_child != nodes.len() { Err("some nodes have no parent".into()) } else { Ok(n_leaves) }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let Some((head, rest)) = self.rest.split_at_checked(n) else {
            return invalid("the model is cut short");
        };
        self.rest = rest;
        Ok(head)
    }

    fn word(&mut self) -> Result<u32> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn count(&mut self) -> Result<usize> {
        let low = u64::from(self.word()?);
        let high = u64::from(self.word()?);
        usize::try_from(low | high << 32).or_else(|_| invalid("the model has an impossible count"))
    }

    fn words(&mut self, n: usize) -> Result<Vec<u32>> {
        let bytes = self.take(n.saturating_mul(4))?;
        Ok(bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::Pool;
    use crate::tree::{CATEGORICAL, MISSING_LEFT};

    fn model(kind: Kind) -> Ensemble {
        let node = |feature, threshold, left| Node {
            feature,
            threshold,
            left,
            cover: 2.0,
            gain: 0.5,
            cut: 0,
        };
        let nodes = [
            node(1 | MISSING_LEFT, 0.5, 1),
            node(0, 0.0, 0),
            node(CATEGORICAL, 0.0, 3),
            node(1, 0.0, 0),
            node(2, 0.0, 0),
        ];
        let mut model = Ensemble::new(kind, 2, 3);
        let values: Vec<f32> =
            (0..if kind == Kind::Vector { 6 } else { 3 }).map(|v| v as f32).collect();
        let steps: &[f32] = if kind == Kind::Scaled { &[1.0, -2.0] } else { &[] };
        let mut left = CategorySet::filled(false);
        [0, 3, 70, 255].into_iter().for_each(|category| left.put(category, true));
        model.push(&nodes, &[left], &values, steps).unwrap();
        model.push(&nodes, &[CategorySet::filled(true)], &values, steps).unwrap();
        model
    }

    #[test]
    fn models_survive_the_round_trip() {
        for kind in [Kind::PerOutput, Kind::Vector, Kind::Scaled] {
            let model = model(kind);
            assert_eq!(from_bytes(&to_bytes(&model)).unwrap(), model);
        }
    }

    #[test]
    fn damaged_models_are_refused_or_harmless_but_never_crash() {
        let bytes = to_bytes(&model(Kind::Scaled));
        for cut in 0..bytes.len() {
            assert!(from_bytes(&bytes[..cut]).is_err());
        }
        for at in 0..bytes.len() {
            for flip in [1u8, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                let Ok(model) = from_bytes(&damaged) else { continue };
                if model.n_features < 1000 {
                    let x = vec![0.0; 2 * model.n_features];
                    let mut raw = vec![0.0; 2 * model.n_outputs];
                    model
                        .add_to(&Pool::serial(), crate::ensemble::Table::Dense(&x), 0..2, &mut raw)
                        .unwrap();
                }
            }
        }
    }

    #[test]
    fn sets_and_categorical_splits_must_agree_in_number() {
        let model = model(Kind::Vector);
        let mut one_missing = model.clone();
        one_missing.sets.pop();
        assert!(from_bytes(&to_bytes(&one_missing)).is_err());
        let mut one_too_many = model.clone();
        one_too_many.sets.push(CategorySet::default());
        assert!(from_bytes(&to_bytes(&one_too_many)).is_err());
        let mut numeric = model.clone();
        numeric.nodes[2].feature &= !CATEGORICAL;
        assert!(from_bytes(&to_bytes(&numeric)).is_err());
        let mut with_threshold = model;
        with_threshold.nodes[2].threshold = 1.0;
        assert!(from_bytes(&to_bytes(&with_threshold)).is_err());
    }
}

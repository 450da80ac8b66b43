//! Features that trees see as codes: categories, and numbers that single precision mixes up.

use crate::entries::Entries;
use crate::{broken, Result};

/// Ascending numbers of one feature: its categories, or its cuts.
#[derive(Debug)]
pub struct Codes {
    pub feature: u32,
    pub values: Vec<f64>,
    /// The code of each category where rare ones share the last code, else none.
    groups: Vec<u8>,
}

impl Codes {
    /// Number of codes of categories.
    pub fn n_codes(&self) -> usize {
        match self.groups.iter().max() {
            Some(last) => usize::from(*last) + 1,
            None => self.values.len(),
        }
    }

    /// The code of a category; NaN if it is missing or unknown.
    pub fn category(&self, value: f64) -> f32 {
        let place = below(&self.values, value);
        match self.values.get(place) == Some(&value) {
            true => self.groups.get(place).map_or(place as f32, |code| f32::from(*code)),
            false => f32::NAN,
        }
    }

    /// The number of cuts below a number, minus that of zero: sparse zeros stay zeros.
    pub fn number(&self, value: f64) -> f32 {
        let code = below(&self.values, value) as f32 - below(&self.values, 0.0) as f32;
        if value.is_nan() {
            f32::NAN
        } else {
            code
        }
    }

    /// Whether a threshold between codes stands for a cut that there is.
    pub fn has_cut(&self, threshold: f32) -> bool {
        let place = f64::from(threshold).floor() + below(&self.values, 0.0) as f64;
        (0.0..self.values.len() as f64).contains(&place)
    }
}

/// The codes of a feature, if it has any.
pub fn of_feature(codes: &[Codes], feature: u32) -> Option<&Codes> {
    let at = codes.binary_search_by_key(&feature, |each| each.feature).ok()?;
    Some(&codes[at])
}

/// How many numbers of an ascending list are below a value.
fn below(list: &[f64], value: f64) -> usize {
    list.partition_point(|each| *each < value)
}

/// The categories of features.
pub fn categories(entries: &Entries<'_>) -> Result<Vec<Codes>> {
    let mut all = read(entries, "category")?;
    let features = entries.u32s("group_features");
    let is_there = |name: &str| entries.array(name).is_some();
    let ascending = features.windows(2).all(|pair| pair[0] < pair[1]);
    if is_there("group_features") != is_there("group_codes")
        || is_there("group_features") == features.is_empty()
        || !ascending
    {
        return broken("its features with rare categories are out of order, or not complete");
    }
    let mut rest = entries.bytes("group_codes");
    for feature in features {
        let at = all.binary_search_by_key(&feature, |each| each.feature);
        let codes = match at.map(|at| &mut all[at]) {
            Ok(codes) if codes.values.len() <= rest.len() => codes,
            _ => return broken("it has rare categories of no categorical feature"),
        };
        let (own, after) = rest.split_at(codes.values.len());
        let last = own.iter().copied().max().unwrap_or(0);
        let n_rare = own.iter().filter(|code| **code == last).count();
        if n_rare < 2 || !own.iter().filter(|code| **code < last).copied().eq(0..last) {
            return broken("the codes of its rare categories are out of order");
        }
        codes.groups = own.to_vec();
        rest = after;
    }
    if !rest.is_empty() || all.iter().any(|each| each.groups.is_empty() && each.values.len() > 255)
    {
        return broken("a feature has more than 255 categories, or codes that it does not need");
    }
    Ok(all)
}

/// The cuts of features, which have no categories.
pub fn cuts(entries: &Entries<'_>, categories: &[Codes]) -> Result<Vec<Codes>> {
    let all = read(entries, "cut")?;
    if all.iter().any(|each| each.values.len() > 255) {
        return broken("a feature has more than 255 cuts");
    }
    if all.iter().any(|each| of_feature(categories, each.feature).is_some()) {
        return broken("a feature has both categories and cuts");
    }
    Ok(all)
}

/// Ascending numbers of some features.
fn read(entries: &Entries<'_>, name: &str) -> Result<Vec<Codes>> {
    let parts = ["features", "counts", "values"].map(|part| format!("{name}_{part}"));
    let n_parts = parts.iter().filter(|part| entries.array(part).is_some()).count();
    if n_parts == 0 {
        return Ok(Vec::new());
    }
    let (features, counts) = (entries.u32s(&parts[0]), entries.u32s(&parts[1]));
    let values = entries.f64s(&parts[2]);
    let ascending = features.windows(2).all(|pair| pair[0] < pair[1]);
    let last = features.last().map_or(usize::MAX, |feature| *feature as usize);
    if n_parts != 3 || !ascending || last >= entries.n_features {
        return broken(format!(
            "its features with {name} values are out of order, or not complete"
        ));
    }
    let total: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    if total != values.len() as u64 {
        return broken(format!("its {name} values are too many or too few"));
    }
    let mut rest = &values[..];
    let mut all = Vec::with_capacity(features.len());
    for (feature, count) in features.into_iter().zip(counts) {
        let (list, after) = rest.split_at(count as usize);
        if !list.iter().all(|v| v.is_finite()) || !list.windows(2).all(|pair| pair[0] < pair[1]) {
            return broken(format!("its {name} values are not finite or out of order"));
        }
        all.push(Codes { feature, values: list.to_vec(), groups: Vec::new() });
        rest = after;
    }
    Ok(all)
}

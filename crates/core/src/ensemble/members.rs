//! The mean of several models as one model, and its members.

use super::{Ensemble, Kind};
use crate::error::{Result, invalid};
use crate::memory::{collected, zeros};
use crate::tree::Node;

impl Ensemble {
    /// The mean of models, round by round. A model that has fewer rounds than others gets trees
    /// that add nothing.
    pub fn mean(members: &[&Ensemble]) -> Result<Ensemble> {
        let Some((&first, others)) = members.split_first() else {
            return invalid("there are no models to take the mean of");
        };
        let form = |model: &Ensemble| (model.kind, model.n_outputs, model.n_features);
        if members.iter().any(|model| model.n_members != 1)
            || others.iter().any(|model| form(model) != form(first))
        {
            return invalid("models of different kinds have no mean");
        }
        let mut mean = Ensemble::new(first.kind, first.n_outputs, first.n_features);
        mean.n_members = members.len();
        let share = 1.0 / members.len() as f32;
        let per_member = mean.trees_per_member();
        let n_trees = members.iter().map(|model| model.n_trees()).max().unwrap_or(0);
        for start in (0..n_trees).step_by(per_member.max(1)) {
            for model in members {
                for tree in start..start + per_member {
                    if tree < model.n_trees() {
                        mean.push_scaled(model, tree, share)?;
                    } else {
                        mean.push_idle()?;
                    }
                }
            }
        }
        Ok(mean)
    }

    /// One of the models whose mean this is, with as many rounds as the longest of them.
    pub fn member(&self, member: usize) -> Result<Ensemble> {
        if member >= self.n_members {
            return invalid(format!("there is no member {member} among {}", self.n_members));
        }
        let mut part = Ensemble::new(self.kind, self.n_outputs, self.n_features);
        let per_member = self.trees_per_member();
        let first = member * per_member;
        for start in (first..self.n_trees()).step_by(self.trees_per_round().max(1)) {
            for tree in start..start + per_member {
                part.push_scaled(self, tree, self.n_members as f32)?;
            }
        }
        Ok(part)
    }

    /// Appends a tree of another model, multiplied by a factor.
    fn push_scaled(&mut self, model: &Ensemble, tree: usize, factor: f32) -> Result<()> {
        let scaled = |all: &[f32]| collected(all.len(), all.iter().map(|value| value * factor));
        let (nodes, sets, values) =
            (model.tree(tree), model.tree_sets(tree), model.tree_values(tree));
        match self.kind {
            Kind::Scaled => {
                let steps = &model.steps[tree * self.n_outputs..][..self.n_outputs];
                self.push(nodes, sets, values, &scaled(steps)?)
            }
            Kind::Sparse => {
                let (sizes, outputs) = (model.leaf_sizes(tree), model.tree_outputs(tree));
                self.push_sparse(nodes, sets, &sizes, outputs, &scaled(values)?)
            }
            Kind::PerOutput | Kind::Vector => self.push(nodes, sets, &scaled(values)?, &[]),
        }
    }

    /// Appends a tree of one leaf that adds nothing.
    fn push_idle(&mut self) -> Result<()> {
        let leaf = Node { feature: 0, threshold: 0.0, left: 0, cover: 1.0, gain: 0.0, cut: 0 };
        if self.kind == Kind::Sparse {
            return self.push_sparse(&[leaf], &[], &[0], &[], &[]);
        }
        let width = if self.kind == Kind::Vector { self.n_outputs } else { 1 };
        let n_steps = if self.kind == Kind::Scaled { self.n_outputs } else { 0 };
        self.push(&[leaf], &[], &zeros::<f32>(width)?, &zeros::<f32>(n_steps)?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::FeatureRows;
    use super::super::tests::model;
    use super::*;
    use crate::parallel::Pool;

    fn predictions(model: &Ensemble, rounds: usize, x: &[f32]) -> Vec<f32> {
        let mut raw = vec![0.0f32; x.len() * model.n_outputs];
        model.add_to(&Pool::serial(), FeatureRows::Dense(x), 0..rounds, &mut raw).unwrap();
        raw
    }

    #[test]
    fn every_stage_is_the_mean_of_the_members() {
        let x: Vec<f32> = (0..9).map(|i| (i % 3) as f32 / 2.0).collect();
        for kind in [Kind::PerOutput, Kind::Vector, Kind::Scaled] {
            for d in [1, 3] {
                let members = [model(kind, d, 4), model(kind, d, 2), model(kind, d, 0)];
                let mean = Ensemble::mean(&members.each_ref()).unwrap();
                assert_eq!(mean.n_trees(), 4 * mean.trees_per_round());
                for rounds in 0..=4 {
                    let found = predictions(&mean, rounds, &x);
                    let each: Vec<_> = members
                        .iter()
                        .zip([4, 2, 0])
                        .map(|(member, most)| predictions(member, rounds.min(most), &x))
                        .collect();
                    for (k, value) in found.iter().enumerate() {
                        let expected = each.iter().map(|raw| raw[k]).sum::<f32>() / 3.0;
                        assert!((value - expected).abs() < 1e-5);
                    }
                }
                let part = mean.of_outputs(&[d - 1]).unwrap();
                let (whole, alone) = (predictions(&mean, 4, &x), predictions(&part, 4, &x));
                assert!(alone.iter().zip(whole.iter().skip(d - 1).step_by(d)).all(|(a, b)| a == b));
            }
        }
    }

    #[test]
    fn members_are_found_again() {
        let x = [0.0f32, 0.5, 1.0];
        for kind in [Kind::PerOutput, Kind::Vector, Kind::Scaled] {
            let members = [model(kind, 2, 3), model(kind, 2, 1)];
            let mean = Ensemble::mean(&members.each_ref()).unwrap();
            for (k, member) in members.iter().enumerate() {
                let found = predictions(&mean.member(k).unwrap(), 3, &x);
                let rounds = member.n_trees() / member.trees_per_round();
                let expected = predictions(member, rounds, &x);
                assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5));
            }
            assert!(mean.member(2).is_err());
        }
    }

    #[test]
    fn models_that_have_no_mean_are_refused() {
        assert!(Ensemble::mean(&[]).is_err());
        let (vector, scaled) = (model(Kind::Vector, 2, 1), model(Kind::Scaled, 2, 1));
        assert!(Ensemble::mean(&[&vector, &scaled]).is_err());
        let mean = Ensemble::mean(&[&vector, &vector]).unwrap();
        assert!(Ensemble::mean(&[&mean, &mean]).is_err());
    }
}

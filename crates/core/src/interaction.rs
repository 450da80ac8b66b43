//! Interaction constraints: which features may appear together on a path from the root to a leaf.

/// Groups of features; all features of a path must lie in one group.
#[derive(Debug, Clone)]
pub struct Interactions {
    groups: Vec<Vec<u32>>,
    /// The groups of each feature, ascending.
    of_feature: Vec<Vec<u32>>,
}

/// The features that a node may be split by.
#[derive(Debug, Clone, PartialEq)]
pub struct Allowed {
    /// Groups that hold all features of the path, ascending; `None` at the root: all groups.
    groups: Option<Vec<u32>>,
    /// Whether each feature is in one of them.
    features: Vec<bool>,
}

impl Allowed {
    /// Whether the node may be split by a feature.
    pub fn contains(&self, feature: u32) -> bool {
        self.features[feature as usize]
    }
}

impl Interactions {
    /// Groups of features below `n_features`.
    pub fn new(groups: Vec<Vec<u32>>, n_features: usize) -> Interactions {
        let mut of_feature = vec![Vec::new(); n_features];
        for (number, group) in groups.iter().enumerate() {
            for &feature in group {
                let groups: &mut Vec<u32> = &mut of_feature[feature as usize];
                if groups.last() != Some(&(number as u32)) {
                    groups.push(number as u32);
                }
            }
        }
        Interactions { groups, of_feature }
    }

    /// The features that the root may be split by.
    pub fn root(&self) -> Allowed {
        let features = self.of_feature.iter().map(|groups| !groups.is_empty()).collect();
        Allowed { groups: None, features }
    }

    /// The features that the children of a node split by `feature` may be split by.
    pub fn below(&self, node: &Allowed, feature: u32) -> Allowed {
        let with_feature = self.of_feature[feature as usize].iter().copied();
        let still_open = |group: &u32| match &node.groups {
            Some(groups) => groups.binary_search(group).is_ok(),
            None => true,
        };
        let groups: Vec<u32> = with_feature.filter(still_open).collect();
        let mut features = vec![false; self.of_feature.len()];
        for &group in &groups {
            self.groups[group as usize].iter().for_each(|&f| features[f as usize] = true);
        }
        Allowed { groups: Some(groups), features }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_within_the_groups_that_hold_all_its_features() {
        let interactions = Interactions::new(vec![vec![0, 1], vec![1, 2, 3], vec![3]], 5);
        let features = |allowed: &Allowed| -> Vec<u32> {
            (0..5).filter(|&feature| allowed.contains(feature)).collect()
        };
        let root = interactions.root();
        assert_eq!(features(&root), [0, 1, 2, 3]);
        let by_one = interactions.below(&root, 1);
        assert_eq!(features(&by_one), [0, 1, 2, 3]);
        assert_eq!(features(&interactions.below(&by_one, 0)), [0, 1]);
        let by_two = interactions.below(&by_one, 2);
        assert_eq!(features(&by_two), [1, 2, 3]);
        assert_eq!(features(&interactions.below(&by_two, 3)), [1, 2, 3]);
        assert_eq!(features(&interactions.below(&root, 3)), [1, 2, 3]);
    }
}

"""What users pass: features, targets, labels and weights, checked and turned into rows."""

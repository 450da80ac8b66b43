"""Training on several machines: the same model, to the last byte."""

"""Training: a plan, the loop over rounds, and what a round is made of."""

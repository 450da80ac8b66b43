"""manyboost side by side with what a user would pick instead.

A run walks through the files in this order: `suites` (what is run) → `run` (plans, starts
processes, resumes) → `measure` (one process, one record) → `workloads` and `contestants` (the data
and the fitted libraries) → `metrics` → results/*.json → `records` → `bars`, `plots`, `report`. The
suite `engine` times rounds and predictions alone: `engine` measures, `engine_tables` shows them.
`builds` compares two builds in turn (`build_tables`); `engine_bars` judges the rounds. `roofline`
writes docs/profile.md; it and `builds` look into a round by way of `parts`.
"""

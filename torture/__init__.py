"""The battery: what the library promises, tried until it should break.

`python -m torture` runs it, area by area; `docs/torture.md` shows what it reached.
"""

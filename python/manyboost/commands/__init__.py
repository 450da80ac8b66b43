"""The verbs of the command line, one module each.

A module has ``SUMMARY`` (one line), ``configure(parser)`` and ``run(arguments)``, and is listed in
:data:`manyboost.cli.VERBS`. Slow imports belong in ``run``.
"""

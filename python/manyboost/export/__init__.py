"""Models in the formats of other runtimes: ONNX and treelite.

The methods ``to_onnx`` and ``to_treelite`` of the estimators call this package. Both formats take
features in single precision, as the trees do (in double where a feature needs it), so that every
row ends in the same leaves. Sums and links are rounded to single precision and may differ in the
last digits.
"""

from manyboost.export.skl2onnx import register_skl2onnx

__all__ = ["register_skl2onnx"]

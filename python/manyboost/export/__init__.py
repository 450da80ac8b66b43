"""Models in the formats of other runtimes: ONNX and treelite.

The methods ``to_onnx`` and ``to_treelite`` of the estimators lead here. Both formats take features
in single precision, as the trees do, so that every row ends in the same leaves; what may differ is
the rounding of sums and links in single precision.
"""

from manyboost.export.skl2onnx import register_skl2onnx

__all__ = ["register_skl2onnx"]

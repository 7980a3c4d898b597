"""Precision: computes a traced program's float64 operations in float32, all of them or all but the accumulations.

A program is traced in float64, as ever. Its operations are then gone through once more, each in the width that a table
gives it. So no rule and no pass knows of this. What the program takes and gives keeps NumPy's dtypes.

Principles, so that float32 costs accuracy only where it gains time:

- Nothing but arithmetic on arrays rounds to float32. Moving, choosing and writing keep each value as it is: an element
  that is not written to stays NumPy's, to the last bit.
- Comparisons are made in the narrowest width of their operands: values that are equal in float64 stay equal.
- Numbers that come from numbers alone, such as a model's time, stay float64.
- What has no row in the tables stays float64.

widths      the tables, and the dtypes that follow from them
evaluation  the operations, computed so
"""

from accel.compiler.lower.precision.evaluation import reduced

__all__ = ["reduced"]

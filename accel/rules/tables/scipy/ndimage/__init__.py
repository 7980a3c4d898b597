"""scipy.ndimage: filters and interpolation, morphology, and reductions by label."""

from accel.rules.tables.scipy.ndimage import filters, labels, morphology

__all__ = ["filters", "labels", "morphology"]

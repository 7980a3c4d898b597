"""Interpolation: the input as a spline, read at coordinates."""

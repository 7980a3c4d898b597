"""Inspection: which functions can be accelerated, and what prevents it: explain, doctor."""

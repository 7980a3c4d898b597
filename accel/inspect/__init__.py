"""Inspection: what can be accelerated, and what prevents it: explain, doctor, coverage."""

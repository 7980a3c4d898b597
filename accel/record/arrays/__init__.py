"""Recorded arrays and numbers, and what can be done with them."""

"""Filters: every result depends on a window around its place."""

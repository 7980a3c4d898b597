"""Recorded objects, containers, modules and functions: what arrays are reached through."""

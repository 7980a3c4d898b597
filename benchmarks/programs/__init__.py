"""Whole programs of our own that benchmarks start: each takes a `tqdm` bar through its steps and ends with a total."""

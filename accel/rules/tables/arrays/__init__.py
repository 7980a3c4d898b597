"""Arrays: how they are made, shaped, chosen from, read and written by index."""

"""Loop nests: loops in loops whose numbers of rounds, and whose slices, change from round to round."""

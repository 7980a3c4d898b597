"""Statistics: reductions, quantiles, sorting, counting."""

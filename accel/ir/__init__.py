"""The program as data: tape, views, fingerprints. Everything above speaks it."""

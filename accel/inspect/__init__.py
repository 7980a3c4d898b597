"""What could be accelerated and what stops it: explain, doctor, coverage."""

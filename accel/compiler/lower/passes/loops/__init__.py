"""Loops of equal iterations: unrolled by the recording, rolled here, and computed as a scan or all iterations at
once."""

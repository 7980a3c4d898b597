"""Loops of equal rounds: unrolled by the recording, rolled here, and computed as a scan or all rounds at once."""

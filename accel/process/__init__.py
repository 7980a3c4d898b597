"""State of the whole process: forks, interrupts, Python's settings, memory, potential gain, private parts of JAX."""

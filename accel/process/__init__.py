"""State of the whole process: forks, interrupts, Python's settings, memory, JAX's private interfaces."""

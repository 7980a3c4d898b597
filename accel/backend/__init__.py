"""The backend: compile jobs, the process that compiles them, the disk cache, devices."""

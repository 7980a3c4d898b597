"""The line that tells the user that accel cannot be imported. It imports nothing: whatever else is broken."""


def without(error: Exception) -> str:
    """Return the line. error: raised by the import."""
    return f"accel: cannot be imported ({type(error).__name__}: {error}): this run uses NumPy only\n"

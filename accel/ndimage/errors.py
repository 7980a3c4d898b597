"""The one refusal of `accel.ndimage`."""


class NotCovered(NotImplementedError):
    """A function or parameter value that SciPy has and this package leaves to SciPy.

    The message names the function, the parameter and the reason. Nothing is ever silently ignored instead.
    """

"""The engine's own operations: what each name in the listing of a tape stands for.

In a listing, `%8 = accel.write float64[5] ['%3', '%7']` makes value 8 from values 3 and 7. Names that do not begin with
"accel." are these:

    numpy.add, scipy.ndimage.zoom   a call of that function, or of a method or an operator that comes to the same
    numpy.sum[mask]                 a reduction over what a boolean mask selects; operands: array, mask
    numpy.take, arguments           whether NumPy and JAX agree for these arguments (see `RecordedAs.holds`)
    python.floor                    a function or an operator of Python's, on a number that the device computes
    host.floor                      the same on numbers that are known before the program starts, by Python itself

The listing of `accel explain --passes` leaves out "numpy.".
"""

from __future__ import annotations

OPCODES: dict[str, str] = {
    # values and views
    "input": "an input, by its slot",
    "read": "array: the view that the node's step leads to, such as a slice or a transposition",
    "write": "array, value: the array's next version, in which the view that the step leads to holds the value",
    "read_at": "array, starts: the box of the node's extent that begins there; starts are values of the program",
    "write_at": "array, value, starts: the array's next version, in which that box holds the value",
    "scalar": "array without axes: its one element",
    "pick": "tuple: one of the results of a function that has several",
    # where recorded paths come together (accel.compiler.merge)
    "choice": "number: the place of it among cases, which says what the path before it was; the last if it is in none",
    "phi": "choice, values: the value at that place",
    # loops whose number of iterations the data decide (accel.compiler.loops)
    "loop": "truth, truth, values, values: what the values are after the loop, which is entered if both truths hold; "
    "the second values are the same in all iterations",
    "counter": "a plain number that a loop by data counts with",
    "agree": "values: whether they are what the path assumed",
    # casts
    "cast": "array: in another dtype",
    "convert": "number: as Python's int, float or complex makes it",
    # new arrays
    "full": "value: an array filled with it",
    "stack": "values: an array of the nested values, as np.array makes it",
    "broadcast": "value: in the shape of the place that it is assigned to",
    "reshape": "array: in another shape",
    "grid": "what np.mgrid or np.ogrid gives for a key",
    # index arrays
    "gather": "array, indices: array[indices]",
    "scatter": "array, indices, value: the array's next version, after array[indices] = value",
    "select": "mask, value, array: the array's next version, after array[mask] = value",
    # selections: what a boolean mask selects, kept in full length beside the mask
    "unravelled": "the index along one axis of each element of an array of a known shape",
    "count": "mask: how many elements are selected",
    "both": "mask, mask: a mask of what both select",
    "any": "mask: whether an element is selected",
    "selected": "array, mask: the rows where the mask holds, as many as while recording",
    "nth": "mask, place: the position of a true element, by its place among these",
    "sliced": "mask: a mask of a slice of what it selects",
    "first": "mask: a mask of the first rows, of as many as it selects",
    "take_rows": "array, indices, mask: array[indices] where the mask holds, any rows elsewhere",
    "scatter_rows": "array, indices, mask, value: the array's next version, after array[indices] = value there",
    # truths that a path assumes; a run for which one is false is discarded
    "truth": "number: its truth, as a branch asks for it",
    "fits": "array: whether all elements fit into an integer dtype",
    "selected_fit": "array, mask: whether all elements of the selected rows do",
    "in_bounds": "indices: whether all are within an axis of a known length",
    "is_slice": "start, stop: whether a slice lies within an axis, and has the length that it had while recording",
    "selected_in_bounds": "indices, mask: whether all that are selected are",
    "has_nth": "mask, place: whether so many elements are selected that there is one at this place",
    "distinct": "indices: whether no place is indexed twice",
    "selected_distinct": "indices, mask: whether no selected place is",
    "all_finite": "array: whether it holds no infinity and no NaN",
    "has_type": "number: whether Python gave it the type that it had while recording",
    "exponent_not_negative": "integers: whether none is negative; NumPy raises for such exponents",
    # truths about Python's numbers, without which Python raises or a device gives another number
    "divisor_not_zero": "number, divisor: whether the divisor is not zero",
    "finite": "number: whether it is finite; Python raises OverflowError where a device gives infinity",
    "not_negative": "number: whether it is zero, above, or NaN",
    "positive": "number: whether it is above zero, or NaN",
    "real_part": "number: its real part",
    "imag_part": "number: its imaginary part, 0 if it is real",
    "shift_not_negative": "number, places: whether places is not negative; Python raises if it is",
    "within_one": "number: whether it is from -1 to 1, or NaN",
    "power_defined": "base, exponent: whether Python's power is a real number of the expected type",
    "rounds_alike": "number: whether it is no tie, and small enough, so that a device rounds it as Python does",
    "in_range": "integer: whether it is within given bounds",
    "exact_integer": "number: whether a float holds it exactly, up to 2**53",
    "exact_add": "number, number: whether a float holds the sum exactly",
    "exact_sub": "number, number: whether a float holds the difference exactly",
    "exact_mul": "number, number: whether a float holds the product exactly",
    "exact_pow": "number, number: whether a float holds the power exactly",
    "exact_truediv": "number, number: whether floats hold both exactly, if they are whole",
    "exact_lshift": "number, places: whether a float holds the number moved by so many bits exactly",
}
"""By the name after "accel.": the operands in their order, if there are any, then what the operation gives."""

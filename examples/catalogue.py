"""Which functions of the examples are accelerated, as data: the form that `accel doctor --catalogue` writes."""

from accel.catalogue import Catalogue, Row

OF_ONE = frozenset({"optional"})
"""Each example imports its own module only: a row of another one gives no warning."""

CATALOGUE = Catalogue(
    name="examples",
    rows=(
        Row("examples.shallow_water", "ShallowWater.step", why="the whole time step", traits=OF_ONE),
        Row("examples.lattice_boltzmann", "step", why="the whole time step", traits=OF_ONE),
        Row("examples.image_filter", "edges", why="all filters of a frame", traits=OF_ONE),
    ),
)

"""Which functions of the examples are accelerated, as data: the form that `accel doctor --catalogue` writes."""

from accel.catalogue import Catalogue, Row

CATALOGUE = Catalogue(
    name="examples",
    rows=(
        Row("examples.shallow_water", "ShallowWater.step", why="the whole time step"),
        Row("examples.lattice_boltzmann", "step", why="the whole time step"),
        Row("examples.image_filter", "edges", why="all filters of a frame"),
    ),
)

"""The catalogue of PyGCM, the Qingdai planet climate model: what accel accelerates there, as data.

One catalogue serves every revision, and the bundled miniature planet too: a row whose function is missing is reported
as absent. `rows` holds the functions, `CATALOGUE` what `accel.catalogue.discover` finds.
"""

from __future__ import annotations

from pathlib import Path

from accel.catalogue import Catalogue, Hold, Steps
from pygcm_patch.rows import ROWS

HOLDS = (
    Hold(
        module="pygcm.jax_compat",
        qualname="is_enabled",
        value=False,
        note='the model says "[JAX] Acceleration enabled: False" of its own JAX layer, which accel keeps off: accel '
        "compiles the NumPy code",
    ),
)

_ATMOSPHERE = "pygcm.dynamics:SpectralModel.time_step"
_OCEAN = "pygcm.ocean:WindDrivenSlabOcean.step"

STEPS = Steps(
    step=_ATMOSPHERE,
    fields={
        # u, v m/s; h geopotential height m; T_s, Ts K; q kg/kg; cloud_cover 0..1; h_ice m; uo, vo m/s; eta m
        _ATMOSPHERE: ("u", "v", "h", "T_s", "q", "cloud_cover", "h_ice"),
        _OCEAN: ("uo", "vo", "eta", "Ts"),
    },
    perturbed=((_ATMOSPHERE, "T_s"), (_OCEAN, "Ts")),
)

CATALOGUE = Catalogue(
    name="pygcm",
    rows=ROWS,
    holds=HOLDS,
    demo_root=Path(__file__).parent / "miniature",
    demo_target="scripts.run_simulation",
    steps=STEPS,
)

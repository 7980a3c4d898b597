"""The miniature planet: it runs, stays physical, obeys its settings and exercises what accel has to record.

It runs in a process of its own, as users run it: the packages in its folder are called `pygcm` and `scripts`, as the
real model's are, and must not be imported into this one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.processes import without_settings

FOLDER = Path(__file__).resolve().parents[2] / "pygcm_patch" / "miniature"
SMALL = {"QD_N_LAT": "31", "QD_N_LON": "61", "QD_SIM_DAYS": "0.15", "QD_PLOT": "0"}  # 36 steps
STEPS = 36
FIELDS = ("u", "v", "h", "T_s", "q", "cloud_cover", "h_ice", "uo", "vo", "eta", "Ts")

# Lowest and highest value that is physical: m/s, m, K, kg/kg, 1.
BOUNDS = {
    "u": (-200, 200), "v": (-200, 200), "h": (-3000, 3000), "T_s": (150, 340), "q": (0, 0.05), "cloud_cover": (0, 1),
    "h_ice": (0, 20), "uo": (-3, 3), "vo": (-3, 3), "eta": (-5, 5), "Ts": (271, 340),
}  # fmt: skip

# Run main, noting every function of the planet that is called; one line of JSON at the end.
TRACED = """
import json, sys
import scripts.run_simulation as program
seen = set()
def note(frame, event, _):
    if event == "call":
        seen.add((frame.f_globals.get("__name__", ""), frame.f_code.co_qualname))
sys.setprofile(note)
program.main()
sys.setprofile(None)
print(json.dumps(sorted(f"{module}.{name}" for module, name in seen if module.startswith("pygcm."))))
"""

# Run main with these libraries missing.
BARE = """
import sys
for name in ("matplotlib", "netCDF4", "tqdm"):
    sys.modules[name] = None
import scripts.run_simulation
scripts.run_simulation.main()
"""

CALLED = """
grid: SphericalGrid.divergence SphericalGrid.vorticity SphericalGrid._calculate_coriolis
orbital: OrbitalSystem.calculate_stellar_positions OrbitalSystem.calculate_total_flux
forcing: ThermalForcing.calculate_insolation ThermalForcing.calculate_insolation_components
forcing: ThermalForcing._get_single_star_insolation ThermalForcing.calculate_equilibrium_temp
energy: shortwave_radiation longwave_radiation surface_emissivity_map longwave_radiation_v2
energy: integrate_surface_energy_map integrate_surface_energy_with_seaice boundary_layer_fluxes
energy: compute_atmos_height_tendency integrate_atmos_energy_height compute_energy_diagnostics
energy: autotune_greenhouse_params
humidity: q_sat q_init surface_evaporation_factor evaporation_flux condensation
physics: diagnose_precipitation cloud_from_precip parameterize_cloud_cover compute_orographic_factor
physics: calculate_dynamic_albedo diagnose_precipitation_hybrid
hydrology: partition_precip_phase snow_step update_land_bucket _area_weights _wmean diagnose_water_closure
dynamics: SpectralModel._advect SpectralModel._grid_to_spectral SpectralModel._spectral_to_grid
dynamics: SpectralModel._laplacian_sphere SpectralModel._hyperdiffuse SpectralModel._shapiro_filter
dynamics: SpectralModel._spectral_zonal_filter SpectralModel.time_step
ocean: WindDrivenSlabOcean._laplacian_sphere WindDrivenSlabOcean._hyperdiffuse WindDrivenSlabOcean._shapiro_filter
ocean: WindDrivenSlabOcean._advect_scalar WindDrivenSlabOcean._polar_scalar_average_fill
ocean: WindDrivenSlabOcean._polar_vector_average_fill WindDrivenSlabOcean.step WindDrivenSlabOcean.diagnostics
topography: _great_circle_distance_rad _weighted_quantile generate_elevation_map
topography: create_land_sea_mask_from_elevation generate_base_properties
ecology.phyto: PhytoManager._laplacian_sphere PhytoManager._advect_scalar PhytoManager.advect_diffuse
ecology.phyto: PhytoManager.reset_default_state
"""


def run(tmp_path: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The finished planet process: warnings are errors, output in tmp_path, no setting but SMALL and `environment`."""
    settings = {
        **without_settings(),
        **SMALL,
        "QD_OUTPUT_DIR": str(tmp_path),
        "PYTHONDONTWRITEBYTECODE": "1",
        **environment,
    }
    command = [sys.executable, "-W", "error", *(arguments or ("-m", "scripts.run_simulation"))]
    return subprocess.run(
        command, cwd=FOLDER, env=settings | environment, capture_output=True, text=True, check=False, timeout=120
    )


def finished(tmp_path: Path, *arguments: str, **environment: str) -> str:
    """What a planet process that must succeed printed."""
    process = run(tmp_path, *arguments, **environment)
    assert process.returncode == 0, process.stderr
    return process.stdout


def state(path: Path) -> dict[str, np.ndarray]:
    """All fields of a restart file."""
    netcdf = pytest.importorskip("netCDF4", reason="restart files need netCDF4")
    with netcdf.Dataset(path) as file:
        return {name: np.array(file.variables[name][:]) for name in FIELDS}


@pytest.fixture(scope="module")
def plain_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """(output folder, printed text) of one run with SMALL settings."""
    folder = tmp_path_factory.mktemp("planet")
    return folder, finished(folder)


@pytest.mark.parametrize("name", FIELDS)
def test_fields_stay_physical(plain_run: tuple[Path, str], name: str) -> None:
    field = state(plain_run[0] / "restart.nc")[name]
    assert field.shape == (31, 61)
    assert field.dtype == np.float64
    assert np.all(np.isfinite(field))
    low, high = BOUNDS[name]
    assert field.min() >= low
    assert field.max() <= high
    np.testing.assert_array_equal(field[:, 0], field[:, -1], "both ends of a row are one meridian")


def test_the_planet_moves(plain_run: tuple[Path, str]) -> None:
    fields = state(plain_run[0] / "restart.nc")
    for name in FIELDS:
        assert np.ptp(fields[name]) > 0.0, name


def test_steps_and_size_follow_the_settings(plain_run: tuple[Path, str]) -> None:
    assert f"planet of 31 x 61, {STEPS} steps of 300 s" in plain_run[1]


def test_equal_settings_give_equal_planets(plain_run: tuple[Path, str], tmp_path: Path) -> None:
    finished(tmp_path, QD_RESTART_OUT=str(tmp_path / "again.nc"))
    first, second = state(plain_run[0] / "restart.nc"), state(tmp_path / "again.nc")
    for name in FIELDS:
        np.testing.assert_array_equal(first[name], second[name], name)


def test_other_settings_give_another_planet(plain_run: tuple[Path, str], tmp_path: Path) -> None:
    printed = finished(tmp_path, QD_ENERGY_W="1", QD_SEAICE="0", QD_DT_SECONDS="600", QD_TRACERS="0")
    assert "18 steps of 600 s" in printed
    assert "tracers" not in printed
    first, second = state(plain_run[0] / "restart.nc"), state(tmp_path / "restart.nc")
    for name in ("h", "T_s", "h_ice"):
        assert np.all(np.isfinite(second[name]))
        assert not np.array_equal(first[name], second[name])


def test_a_restart_goes_on_from_the_file(plain_run: tuple[Path, str], tmp_path: Path) -> None:
    before = state(plain_run[0] / "restart.nc")
    finished(tmp_path, QD_RESTART_IN=str(plain_run[0] / "restart.nc"), QD_SIM_DAYS="0")
    after = state(tmp_path / "restart.nc")
    for name in FIELDS:
        np.testing.assert_array_equal(before[name], after[name], name)


def test_plots_come_at_their_interval_and_at_the_end(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    finished(tmp_path, QD_PLOT="1", QD_PLOT_EVERY_DAYS="0.05", QD_SIM_DAYS="0.1")
    assert sorted(path.name for path in tmp_path.glob("*.png")) == ["day_00000.05.png", "day_00000.10.png", "final.png"]


def test_most_catalogued_functions_are_called(tmp_path: Path) -> None:
    called = set(json.loads(finished(tmp_path, "-c", TRACED, QD_ENERGY_W="0.5").splitlines()[-1]))
    rows = [row.split(": ") for row in CALLED.strip().splitlines()]
    wanted = {f"pygcm.{module}.{name}" for module, names in rows for name in names.split()}
    assert len(wanted) >= 35
    assert wanted <= called, sorted(wanted - called)


def test_missing_libraries_are_named(tmp_path: Path) -> None:
    printed = finished(tmp_path, "-c", BARE, QD_PLOT="1", QD_SIM_DAYS="0.01")
    assert "matplotlib is not installed" in printed
    assert "netCDF4 is not installed" in printed
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("QD_N_LAT", "many", "QD_N_LAT='many' is not a number; possible: 9 to 2001"),
        ("QD_N_LON", "60.5", "QD_N_LON=60.5 is not a whole number; possible: 16 to 4001"),
        ("QD_DT_SECONDS", "0", "QD_DT_SECONDS=0 is out of range; possible: 1 to 3600"),
        ("QD_ENERGY_W", "nan", "QD_ENERGY_W=nan is out of range; possible: 0 to 1"),
    ],
)
def test_a_bad_setting_is_one_line(tmp_path: Path, name: str, value: str, says: str) -> None:
    process = run(tmp_path, **{name: value})
    assert (process.returncode, process.stderr.strip()) == (2, says)


def test_it_knows_nothing_of_accel() -> None:
    for path in FOLDER.rglob("*.py"):
        imports = [
            line.split() for line in path.read_text().splitlines() if line.lstrip().startswith(("import", "from"))
        ]
        assert not [words for words in imports if words[1].split(".")[0] in ("accel", "jax", "jaxlib")], path

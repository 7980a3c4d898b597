"""One row per PyGCM function that was considered: why it is accelerated, or why it is left alone.

Grouped by module in the order of the model's imports. Functions that only newer revisions have carry the trait
"optional". Helpers are rows too although they are mostly inlined into their callers: another revision, or a user's own
script, may call them directly.
"""

from __future__ import annotations

from accel.catalogue import Row

# Budgets and closures are small differences of large global means: the residual's rounding is relative to the terms.
_RESIDUAL = 1e-6

_OUTER = frozenset({"outer"})
_MUTATES = frozenset({"mutates"})
_STEP = frozenset({"outer", "mutates", "prints"})
_RARE = frozenset({"rare"})
_NEW = frozenset({"optional"})
_NEW_MUTATES = frozenset({"optional", "mutates"})
_NEW_OUTER = frozenset({"optional", "outer", "mutates"})
_NEW_STEP = frozenset({"optional", "outer", "mutates", "prints"})
_NEW_DAILY = frozenset({"optional", "mutates", "prints", "rare"})
_NEW_RARE = frozenset({"optional", "rare"})

_ONCE = "runs once, while the model is set up: compiling costs more than it can save"
_TINY = "takes microseconds on a few numbers: a replay's own overhead is larger"
_READER = "reads the environment and returns one setting: nothing to compute"
_RANDOM = "draws random numbers: a replay would repeat the recorded ones"

_GRID = (
    Row("pygcm.grid", "SphericalGrid.divergence", "field-sized stencil, four calls a step", traits=_OUTER),
    Row("pygcm.grid", "SphericalGrid.vorticity", "field-sized stencil, the twin of divergence"),
    Row("pygcm.grid", "SphericalGrid._calculate_coriolis", "field-sized sine", traits=_RARE, declined=_ONCE),
)

_ORBITAL = (
    Row("pygcm.orbital", "OrbitalSystem.calculate_stellar_positions", "feeds both stars' insolation, inlined there"),
    Row("pygcm.orbital", "OrbitalSystem.calculate_total_flux", "feeds diagnostics once a step"),
)

_FORCING = (
    Row("pygcm.forcing", "ThermalForcing.calculate_insolation", "two stars over the whole field", traits=_OUTER),
    Row("pygcm.forcing", "ThermalForcing.calculate_insolation_components", "the same, star by star", traits=_OUTER),
    Row("pygcm.forcing", "ThermalForcing._get_single_star_insolation", "3 ms a step: zenith angles of every cell"),
    Row("pygcm.forcing", "ThermalForcing.calculate_equilibrium_temp", "fourth root over the field", traits=_OUTER),
)

_ENERGY = (
    Row("pygcm.energy", "shortwave_radiation", "elementwise, several passes over the field", traits=_OUTER),
    Row("pygcm.energy", "longwave_radiation", "elementwise, with fourth powers", traits=_OUTER),
    Row("pygcm.energy", "surface_emissivity_map", "masked assignments over the field", traits=_OUTER),
    Row("pygcm.energy", "longwave_radiation_v2", "2 ms a step: exponentials and fourth powers", traits=_OUTER),
    Row("pygcm.energy", "integrate_surface_energy", "elementwise update of the surface", traits=_OUTER),
    Row("pygcm.energy", "integrate_surface_energy_map", "the same with a map of heat capacities", traits=_OUTER),
    Row("pygcm.energy", "integrate_surface_energy_with_seaice", "many masked updates of the surface", traits=_OUTER),
    Row("pygcm.energy", "boundary_layer_fluxes", "elementwise bulk formulas", traits=_OUTER),
    Row("pygcm.energy", "compute_atmos_height_tendency", "elementwise, inlined into the height update"),
    Row("pygcm.energy", "integrate_atmos_energy_height", "elementwise update of the height field", traits=_OUTER),
    Row(
        "pygcm.energy", "compute_energy_diagnostics", "a dozen weighted means of fields", rtol=_RESIDUAL, traits=_OUTER
    ),
    Row(
        "pygcm.energy",
        "autotune_greenhouse_params",
        "part of the energy loop",
        traits=frozenset({"mutates", "prints", "rare"}),
        declined="arithmetic on a handful of parameters, with printing: nothing to gain",
    ),
)

_HUMIDITY = (
    Row("pygcm.humidity", "q_sat", "an exponential per cell, inlined into most of the moist physics"),
    Row("pygcm.humidity", "q_init", "saturation humidity over the field", traits=_RARE, declined=_ONCE),
    Row("pygcm.humidity", "surface_evaporation_factor", "masked assignments over the field", traits=_OUTER),
    Row("pygcm.humidity", "evaporation_flux", "elementwise bulk formula", traits=_OUTER),
    Row("pygcm.humidity", "condensation", "elementwise, with saturation inlined", traits=_OUTER),
)

_PHYSICS = (
    Row("pygcm.physics", "diagnose_precipitation", "divergence, masks and a Gaussian filter", traits=_OUTER),
    Row("pygcm.physics", "cloud_from_precip", "elementwise and a Gaussian filter", traits=_OUTER),
    Row("pygcm.physics", "parameterize_cloud_cover", "1.3 ms a step: gradients and masks", traits=_OUTER),
    Row("pygcm.physics", "compute_orographic_factor", "slopes, winds and a Gaussian filter", traits=_OUTER),
    Row("pygcm.physics", "calculate_dynamic_albedo", "elementwise, with several branches on arguments", traits=_OUTER),
    Row("pygcm.physics", "diagnose_precipitation_hybrid", "1.3 ms a step: filter and renormalization", traits=_OUTER),
)

_HYDROLOGY = (
    Row("pygcm.hydrology", "partition_precip_phase", "elementwise split into rain and snow", traits=_OUTER),
    Row(
        "pygcm.hydrology",
        "partition_precip_phase_smooth",
        "elementwise split into rain and snow",
        traits=frozenset({"optional", "outer"}),
    ),
    Row("pygcm.hydrology", "snowpack_step", "elementwise snow budget", traits=frozenset({"optional", "outer"})),
    Row("pygcm.hydrology", "snow_step", "elementwise snow budget", traits=_OUTER),
    Row("pygcm.hydrology", "update_land_bucket", "elementwise soil water budget", traits=_OUTER),
    Row("pygcm.hydrology", "_area_weights", "a cosine per cell, inlined into the closure diagnostics"),
    Row("pygcm.hydrology", "_wmean", "a weighted mean, inlined into the closure diagnostics"),
    Row("pygcm.hydrology", "diagnose_water_closure", "a dozen weighted means of fields", rtol=_RESIDUAL, traits=_OUTER),
)

_DYNAMICS = (
    Row("pygcm.dynamics", "SpectralModel._advect", "5 ms a step: interpolation at departure points"),
    Row("pygcm.dynamics", "SpectralModel._grid_to_spectral", "projection onto modes, a loop of sums"),
    Row("pygcm.dynamics", "SpectralModel._spectral_to_grid", "synthesis from modes, a loop of sums"),
    Row("pygcm.dynamics", "SpectralModel._laplacian_sphere", "9 ms a step: the hottest stencil of the model"),
    Row("pygcm.dynamics", "SpectralModel._hyperdiffuse", "two Laplacians per substep, five fields"),
    Row("pygcm.dynamics", "SpectralModel._shapiro_filter", "repeated three-point smoothing"),
    Row("pygcm.dynamics", "SpectralModel._spectral_zonal_filter", "transforms along every latitude"),
    Row(
        "pygcm.dynamics",
        "SpectralModel.time_step",
        "the atmosphere's whole step: everything it calls becomes one program",
        traits=_STEP,
    ),
)

_OCEAN = (
    Row("pygcm.ocean", "WindDrivenSlabOcean._laplacian_sphere", "5 ms a step: the ocean's hottest stencil"),
    Row("pygcm.ocean", "WindDrivenSlabOcean._hyperdiffuse", "two Laplacians per substep"),
    Row("pygcm.ocean", "WindDrivenSlabOcean._shapiro_filter", "repeated convolutions"),
    Row("pygcm.ocean", "WindDrivenSlabOcean._advect_scalar", "2 ms a step: interpolation at departure points"),
    Row("pygcm.ocean", "WindDrivenSlabOcean._polar_scalar_average_fill", "two rows, inlined", traits=_MUTATES),
    Row("pygcm.ocean", "WindDrivenSlabOcean._polar_vector_average_fill", "two rows, inlined", traits=_MUTATES),
    Row(
        "pygcm.ocean",
        "WindDrivenSlabOcean.step",
        "the ocean's whole step: everything it calls becomes one program",
        traits=_STEP,
    ),
    Row("pygcm.ocean", "WindDrivenSlabOcean.diagnostics", "reductions over several fields", traits=_OUTER),
)

_ROUTING = (
    Row("pygcm.routing", "_assert_has_netcdf", "set-up", traits=_NEW_RARE, declined="checks that a package is there"),
    Row("pygcm.routing", "_ravel_index", "used cell by cell", traits=_NEW, declined=_TINY),
    Row("pygcm.routing", "_unravel_index", "used cell by cell", traits=_NEW, declined=_TINY),
    Row("pygcm.routing", "RiverRouting._compute_cell_areas", "areas of all cells", traits=_NEW_RARE, declined=_ONCE),
    Row("pygcm.routing", "RiverRouting.reset", "zeroes the stores", traits=_NEW_DAILY, declined=_ONCE),
    Row(
        "pygcm.routing",
        "RiverRouting.step",
        "called in every step; most calls only accumulate a field, the others walk the rivers cell by cell",
        traits=_NEW_STEP,
    ),
    Row(
        "pygcm.routing",
        "RiverRouting.diagnostics",
        "called in every output",
        traits=_NEW_RARE,
        declined="hands out stored fields: nothing to compute",
    ),
)

_TOPOGRAPHY = (
    Row("pygcm.topography", "_great_circle_distance_rad", "elementwise trigonometry", traits=_RARE, declined=_ONCE),
    Row("pygcm.topography", "_weighted_quantile", "a sort of the whole field", traits=_RARE, declined=_ONCE),
    Row("pygcm.topography", "generate_elevation_map", "smoothed noise", traits=_RARE, declined=_ONCE),
    Row("pygcm.topography", "create_land_sea_mask_from_elevation", "sea level search", traits=_RARE, declined=_ONCE),
    Row("pygcm.topography", "create_land_sea_mask", "elevation and sea level", traits=_RARE, declined=_ONCE),
    Row("pygcm.topography", "generate_base_properties", "albedo and friction maps", traits=_RARE, declined=_ONCE),
)

_PHYTO = (
    Row("pygcm.ecology.phyto", "_read_env_float", "set-up", traits=_NEW_RARE, declined=_READER),
    Row("pygcm.ecology.phyto", "_read_env_bool", "set-up", traits=_NEW_RARE, declined=_READER),
    Row("pygcm.ecology.phyto", "_read_env_list", "set-up", traits=_NEW_RARE, declined=_READER),
    Row("pygcm.ecology.phyto", "_nearest_index", "picks a band", traits=_NEW_RARE, declined=_TINY),
    Row("pygcm.ecology.phyto", "PhytoManager._kd_bands", "light extinction per band and cell", traits=_NEW),
    Row("pygcm.ecology.phyto", "PhytoManager._Ibar_bands_in_mld", "mean light per band and cell", traits=_NEW),
    Row("pygcm.ecology.phyto", "PhytoManager._alpha_bands_from_species", "reflectance per band and cell", traits=_NEW),
    Row(
        "pygcm.ecology.phyto",
        "PhytoManager.step_daily",
        "growth of every species in every cell; once a day, so it must pay off over few calls",
        traits=_NEW_DAILY,
    ),
    Row("pygcm.ecology.phyto", "PhytoManager._laplacian_sphere", "stencil, once per species", traits=_NEW),
    Row("pygcm.ecology.phyto", "PhytoManager._advect_scalar", "interpolation, once per species", traits=_NEW),
    Row(
        "pygcm.ecology.phyto",
        "PhytoManager.advect_diffuse",
        "19 ms a step: ten species advected and diffused",
        traits=_NEW_OUTER,
    ),
    Row("pygcm.ecology.phyto", "PhytoManager.randomize_state", "set-up", traits=_NEW_DAILY, declined=_RANDOM),
    Row("pygcm.ecology.phyto", "PhytoManager.reset_default_state", "set-up", traits=_NEW_DAILY, declined=_ONCE),
)

_POPULATION = (
    Row(
        "pygcm.ecology.population",
        "PopulationManager._init_species_modes",
        "set-up",
        traits=_NEW_RARE,
        declined=_RANDOM,
    ),
    Row("pygcm.ecology.population", "PopulationManager.set_species_modes", "set-up", traits=_NEW_RARE, declined=_ONCE),
    Row(
        "pygcm.ecology.population",
        "PopulationManager.step_subdaily",
        "light absorbed by the canopy, in every step",
        traits=_NEW_OUTER,
    ),
    Row("pygcm.ecology.population", "PopulationManager.total_LAI", "sum over species", traits=_NEW),
    Row("pygcm.ecology.population", "PopulationManager.canopy_height_map", "for plots", traits=_NEW_RARE),
    Row("pygcm.ecology.population", "PopulationManager.species_density_maps", "for plots", traits=_NEW_RARE),
    Row(
        "pygcm.ecology.population",
        "PopulationManager.recompute_species_weights_from_LAI",
        "means per species",
        traits=_NEW_MUTATES,
    ),
    Row(
        "pygcm.ecology.population",
        "PopulationManager.add_species_from_parent",
        "evolution, at long intervals",
        traits=_NEW_DAILY,
        declined="changes the number of species, hence every shape: each call would be a new program",
    ),
    Row(
        "pygcm.ecology.population",
        "PopulationManager.step_daily",
        "growth and spread of the vegetation, once a day",
        traits=_NEW_DAILY | {"random"},
    ),
    Row("pygcm.ecology.population", "PopulationManager._apply_neighbor_spread", "stencils", traits=_NEW_MUTATES),
    Row(
        "pygcm.ecology.population",
        "PopulationManager._apply_neighbor_spread_species",
        "stencils, once per species",
        traits=_NEW_MUTATES,
    ),
    Row("pygcm.ecology.population", "PopulationManager._seed_based_spread", "stencils", traits=_NEW_MUTATES),
    Row(
        "pygcm.ecology.population",
        "PopulationManager._seed_based_spread_species",
        "stencils, once per species",
        traits=_NEW_MUTATES,
    ),
    Row("pygcm.ecology.population", "PopulationManager.canopy_reflectance_factor", "a map per call", traits=_NEW),
    Row(
        "pygcm.ecology.population",
        "PopulationManager.set_species_reflectance_bands",
        "set-up",
        traits=_NEW_DAILY,
        declined=_ONCE,
    ),
    Row(
        "pygcm.ecology.population",
        "PopulationManager.effective_leaf_reflectance_bands",
        "a weighted mean of a few bands",
        traits=_NEW,
        declined=_TINY,
    ),
    Row(
        "pygcm.ecology.population",
        "PopulationManager._should_recompute_canopy",
        "compares leaf area with a snapshot, inlined",
        traits=_NEW,
    ),
    Row(
        "pygcm.ecology.population",
        "PopulationManager._recompute_canopy_cache",
        "light competition over the field, inlined",
        traits=_NEW_MUTATES,
    ),
    Row("pygcm.ecology.population", "PopulationManager.lai_delta_ratio", "two norms of the field", traits=_NEW),
    Row("pygcm.ecology.population", "PopulationManager.summary", "reductions for a log line", traits=_NEW_RARE),
)

_INDIVIDUALS = (
    Row(
        "pygcm.ecology.individuals",
        "IndividualPool.try_substep",
        "energy of all sampled plants, several times a day",
        traits=_NEW_OUTER,
    ),
    Row(
        "pygcm.ecology.individuals",
        "IndividualPool.step_daily",
        "growth, death and seeds of the sampled plants, once a day",
        traits=_NEW_DAILY,
    ),
)

_SPECTRAL = (
    Row("pygcm.ecology.spectral", "SpectralBands.as_tuple", "accessor", traits=_NEW_RARE, declined=_TINY),
    Row("pygcm.ecology.spectral", "make_bands", "set-up", traits=_NEW_RARE, declined=_ONCE),
    Row("pygcm.ecology.spectral", "_rayleigh_weight", "a few bands", traits=_NEW, declined=_TINY),
    Row("pygcm.ecology.spectral", "_greenish_leaf_reflectance", "a few bands", traits=_NEW_RARE, declined=_ONCE),
    Row(
        "pygcm.ecology.spectral",
        "toa_to_surface_bands",
        "insolation per band and cell, in every step",
        traits=frozenset({"optional", "outer"}),
    ),
    Row("pygcm.ecology.spectral", "band_weights_from_mode", "a few bands", traits=_NEW, declined=_TINY),
    Row("pygcm.ecology.spectral", "default_leaf_reflectance", "a few bands", traits=_NEW_RARE, declined=_ONCE),
    Row("pygcm.ecology.spectral", "absorbance_from_genes", "a few bands per species", traits=_NEW, declined=_TINY),
    Row("pygcm.ecology.spectral", "estimate_teff_from_LM", "one number", traits=_NEW_RARE, declined=_TINY),
    Row("pygcm.ecology.spectral", "_planck_lambda_nm", "one short spectrum", traits=_NEW, declined=_TINY),
    Row("pygcm.ecology.spectral", "_normalize_spectrum_to_bands", "a few bands", traits=_NEW, declined=_TINY),
    Row("pygcm.ecology.spectral", "blackbody_band_weights", "a few bands", traits=_NEW, declined=_TINY),
    Row("pygcm.ecology.spectral", "_rayleigh_band_factor", "a few bands", traits=_NEW, declined=_TINY),
    Row(
        "pygcm.ecology.spectral",
        "dual_star_insolation_to_bands",
        "both stars' insolation per band and cell",
        traits=frozenset({"optional", "outer"}),
    ),
)

_ADAPTER = (
    Row(
        "pygcm.ecology.adapter",
        "EcologyAdapter.step_subdaily",
        "vegetation's albedo in every step: bands and canopy inlined",
        traits=_NEW_STEP,
    ),
    Row("pygcm.ecology.adapter", "EcologyAdapter.step_daily", "vegetation's day", traits=_NEW_DAILY | {"random"}),
    Row("pygcm.ecology.adapter", "EcologyAdapter._mutate_genes", "evolution", traits=_NEW_RARE, declined=_RANDOM),
    Row(
        "pygcm.ecology.adapter",
        "EcologyAdapter._absorb_from_genes_cached",
        "a look-up",
        traits=_NEW_MUTATES,
        declined="a cache keyed by an object: its answer is a stored array",
    ),
)

_DIVERSITY = (
    Row("pygcm.ecology.diversity", "_get_species_lai_SK", "a look-up", traits=_NEW_RARE, declined=_TINY),
    Row("pygcm.ecology.diversity", "_area_weights", "a cosine per cell", traits=_NEW_RARE),
    Row("pygcm.ecology.diversity", "compute_alpha_eff_map", "entropy over species, for plots", traits=_NEW_RARE),
    Row("pygcm.ecology.diversity", "compute_whittaker_beta", "means over species, for plots", traits=_NEW_RARE),
    Row("pygcm.ecology.diversity", "compute_local_bray_curtis", "neighbour differences, for plots", traits=_NEW_RARE),
)


_PROGRAM = (Row("scripts.run_simulation", "main", "the program's own loop: a step is one program", loops=True),)

ROWS: tuple[Row, ...] = (
    *_PROGRAM,
    *(_GRID + _ORBITAL + _FORCING + _ENERGY + _HUMIDITY + _PHYSICS + _HYDROLOGY + _DYNAMICS + _OCEAN),
    *(_ROUTING + _TOPOGRAPHY),
    *(_PHYTO + _POPULATION + _INDIVIDUALS + _SPECTRAL + _ADAPTER + _DIVERSITY),
)
"""Every row, in the order of the model's modules."""

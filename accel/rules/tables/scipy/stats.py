"""scipy.stats' functions of samples whose results are arrays and numbers."""

from __future__ import annotations

from scipy import stats

from accel.rules.hosted import on_host

on_host(
    stats,
    """
    binned_statistic: x values
    binned_statistic_2d: x y values
    energy_distance: u_values v_values u_weights v_weights
    entropy: pk qk
    gmean: a weights
    hmean: a weights
    gstd: a
    gzscore: a
    iqr: x
    kurtosis: a
    median_abs_deviation: x
    mode: a
    moment: a
    percentileofscore: a score
    rankdata: a
    sem: a
    sigmaclip: a
    skew: a
    trim_mean: a
    trimboth: a
    variation: a
    wasserstein_distance: u_values v_values u_weights v_weights
    zmap: scores compare
    zscore: a
    """,
)

"""accel inside other tools: pytest, and IPython with its notebooks.

pytest_options  the plugin that pytest loads: its options, and nothing else until one of them is given
pytest_session  `pytest --accel`: the two runs, without and with accel, and the comparison
notebook        IPython's extension: `%%accel` and `%%accel_profile`
cell_errors     errors of cells, shown at the line that raised them
lines           the line profile: time per line, on NumPy or compiled, and the reasons for NumPy
faster          changes that would make a program faster, from the line profile
"""

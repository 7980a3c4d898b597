"""accel inside other tools: pytest, and IPython with its notebooks.

pytest_options  the plugin that pytest loads: its options, and nothing else until one of them is given
pytest_session  `pytest --accel`: the two runs, without and with accel, and the comparison
notebook        IPython's extension: `%%accel` and `%%accel_profile`
lines           the line profile: time per line, on NumPy or compiled, and the reasons for NumPy
faster          changes that would make a program faster, from the line profile
"""

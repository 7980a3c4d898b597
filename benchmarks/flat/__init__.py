"""Scripts as people write them: flat, a loop at the top, nothing that was made for accel. `STEPS` sets their length."""

"""Run gates and read their output. `run` decides what follows from a validation."""

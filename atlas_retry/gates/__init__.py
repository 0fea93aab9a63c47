"""Run gates and read what they print. What comes of a validation is decided in `run`."""

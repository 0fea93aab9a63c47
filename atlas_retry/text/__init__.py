"""Text made harmless, values in words, globs: secrets, units, JSON. Pure."""

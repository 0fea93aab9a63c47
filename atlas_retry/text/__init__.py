"""Text made harmless, and values in words: secrets, units, JSON. Pure."""

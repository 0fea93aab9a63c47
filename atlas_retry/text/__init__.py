"""Text: control codes and secrets removed, units, globs, JSON, configuration files. Pure."""

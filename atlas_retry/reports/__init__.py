"""Formats validations and runs for people and machines, one module per format. Pure."""

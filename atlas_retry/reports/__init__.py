"""Validations and runs as text for people and machines: one module a format. Pure."""

"""atlas makes a project's checks pass; see `atlas --help`."""

__version__ = "0.1.0"

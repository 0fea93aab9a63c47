"""atlas makes a project's checks pass; see `atlas --help`, or `retry` and `validate` here."""

TYPE_CHECKING = False
"""As in `typing`, which is not imported: `atlas --version` would pay for it."""
if TYPE_CHECKING:
    from atlas_retry.api import retry, validate

__version__ = "0.2.0"
__all__ = ["__version__", "retry", "validate"]


def __getattr__(name: str) -> object:
    """Start-up: the command line imports this module first and pays for nothing else."""
    if name in ("retry", "validate"):
        from importlib import import_module

        return getattr(import_module("atlas_retry.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

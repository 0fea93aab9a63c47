"""atlas makes a project's checks pass; see `atlas --help`, or `retry` and `validate` here."""

TYPE_CHECKING = False
"""As in `typing`, which is not imported because that would slow `atlas --version` down."""
if TYPE_CHECKING:
    from atlas_retry.api import retry, validate

__version__ = "0.3.0"
__all__ = ["__version__", "retry", "validate"]


def __getattr__(name: str) -> object:
    """Import the API when it is first used, so that the command line starts fast."""
    if name in ("retry", "validate"):
        from importlib import import_module

        return getattr(import_module("atlas_retry.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

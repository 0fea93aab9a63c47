"""What `import` leaves out at the start of a command.

Our imports are nine tenths of a short command. A part of them are modules that msgspec and the
standard library import for what atlas never asks of them, or seldom.
"""

import sys
from importlib import import_module
from types import ModuleType, SimpleNamespace

SELDOM_USED = ("locale", "msgspec.inspect", "msgspec.toml", "msgspec.yaml", "textwrap")
"""Imported by subprocess and msgspec for single functions; loaded when one is used."""


class _Later(ModuleType):
    """A module that is loaded when something of it is first used."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # asked by `import` itself
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        loaded = import_module(self.__name__)
        vars(self).update(vars(loaded))
        return getattr(loaded, name)


def settle() -> None:
    """Import msgspec and pathlib without what they do not need; call it before other imports."""
    if "msgspec" in sys.modules:
        return
    for name in SELDOM_USED:
        if name not in sys.modules:
            sys.modules[name] = _Later(name)
    stand_ins = {
        # for Python before 3.11; imports inspect, ast, dis and tokenize
        "typing_extensions": None,
        # types that no value of ours has
        "uuid": SimpleNamespace(UUID=_NoSuchValue, SafeUUID=SimpleNamespace(unknown=None)),
        "decimal": SimpleNamespace(Decimal=_NoSuchValue),
        # for `Path.as_uri` alone; imports ipaddress
        "urllib.parse": SimpleNamespace(quote_from_bytes=_quoted),
    }
    absent = {name: module for name, module in stand_ins.items() if name not in sys.modules}
    sys.modules.update(absent)  # type: ignore[arg-type]  # None is how Python marks what is missing
    try:
        import pathlib  # noqa: F401

        import msgspec  # noqa: F401
    except (AttributeError, ImportError):  # a version that asks more of them
        pass
    finally:
        for name in absent:
            del sys.modules[name]


def _quoted(path: bytes) -> str:
    """The function that pathlib imports from urllib.parse."""
    from urllib.parse import quote_from_bytes

    return quote_from_bytes(path)


class _NoSuchValue:
    """Stands for the types UUID and Decimal."""

"""`ATLAS_*` variables as a layer of the configuration, read with pydantic-settings."""

from collections.abc import Mapping
from functools import reduce

from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict, SettingsError

from atlas_retry.config.files import PREFIX
from atlas_retry.config.layers import SAME, Layer, nested, overlay, said_by
from atlas_retry.config.sections import Configuration
from atlas_retry.errors import ConfigError, Place

NESTED = "__"
NOTHING = "null"
"""How a variable says None."""


class _Keys(Configuration, BaseSettings):
    """The keys as pydantic-settings wants to see them; no instance is ever made."""

    model_config = SettingsConfigDict(strict=True, extra="forbid")


class _Variable(EnvSettingsSource):
    """One variable instead of the process's environment, so that its values have a place."""

    def __init__(self, key: str, value: str) -> None:
        self._said = {key: value}
        super().__init__(
            _Keys,
            case_sensitive=True,
            env_prefix="",
            env_nested_delimiter=NESTED,
        )

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return self._said


def read(variables: Mapping[str, str]) -> Layer:
    """What the variables say: `ATLAS_RETRY__MAX_AI_RETRY_ATTEMPTS=5`; lists and mappings as JSON.

    A variable that is no key, or whose JSON cannot be read, is a problem of the layer.
    """
    layers = (_read_one(name, value) for name, value in variables.items())
    return reduce(overlay, layers, Layer())


def _read_one(name: str, value: str) -> Layer:
    place = Place(name, text=f"{name}={value}")
    spelled = tuple(name.removeprefix(PREFIX).lower().split(NESTED))
    path = SAME.get(spelled, spelled)
    if value == NOTHING:
        return said_by(place, nested(path, None))
    try:
        values = _Variable(NESTED.join(map(str, path)), value)()
    except SettingsError:
        problem = ConfigError("expected JSON for a list or a mapping", place=place)
        return Layer(problems=(problem,))
    return said_by(place, values or nested(path, value))

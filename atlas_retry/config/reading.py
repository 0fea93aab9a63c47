"""Reads, checks and merges the sources of a configuration: pydantic-settings, with places.

Each source is checked by itself before they are merged. Imported only after a change.
"""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from itertools import chain
from typing import Any, cast

import msgspec
from msgspec import Struct
from pydantic import create_model
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    SettingsConfigDict,
    YamlConfigSettingsSource,
)
from pydantic_settings.sources.utils import parse_env_vars

from atlas_retry.config import document
from atlas_retry.config.checking import problems_of, together
from atlas_retry.config.files import PREFIX, ConfigFile
from atlas_retry.config.keys import Configuration
from atlas_retry.config.models import model_of
from atlas_retry.config.sources import Source, Sources, canonical, spelled, tree
from atlas_retry.errors import ConfigError, Place

COMMAND_LINE = "the command line"


class Reading(Struct, frozen=True, kw_only=True):
    """A checked configuration, and where its values come from."""

    configuration: Configuration
    configured: dict[str, Any]
    """What the sources set, without defaults."""
    sources: Sources


def read(
    files: Sequence[ConfigFile], *, variables: Mapping[str, str], overrides: Mapping[str, object]
) -> Reading:
    """Read all sources; of the files, the first one has the highest precedence.

    Raises one ConfigError with the problems of all sources.
    """
    settings = _settings_class()
    flags = Source(
        name=COMMAND_LINE, values=tree((tuple(key.split(".")), v) for key, v in overrides.items())
    )
    environment = Variables(settings, variables)
    documents = [Document(settings, file) for file in files]
    each = (flags, environment.source, *(one.source for one in documents))
    check = partial(problems_of, model=model_of(Configuration))
    if problems := [*chain.from_iterable(map(check, each))]:
        raise together(problems)
    merged = settings(
        _build_sources=((InitSettingsSource(settings, flags.values), environment, *documents), {})
    )
    configured = merged.model_dump(mode="json", exclude_unset=True)
    return Reading(
        configuration=msgspec.convert(configured, Configuration),
        configured=configured,
        sources=Sources(each=each, main=files[0].path),
    )


class _Settings(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        env_parse_none_str="null",
        extra="forbid",
        validate_default=False,
    )


@cache
def _settings_class() -> type[BaseSettings]:
    """The settings class of pydantic-settings with the keys of `Configuration`."""
    bases: Any = (_Settings, model_of(Configuration))
    return cast("type[BaseSettings]", create_model(Configuration.__name__, __base__=bases))


class Document(YamlConfigSettingsSource):
    """A file. By itself pydantic-settings reads YAML 1.1, and knows no places."""

    def __init__(self, settings: type[BaseSettings], file: ConfigFile) -> None:
        try:
            self.source = canonical(document.read(file.content, file.path))
        except ConfigError as error:
            self.source = Source(name=file.path, problems=(error,))
        super().__init__(settings, yaml_file=file.path)

    def _read_files(self, files: object, deep_merge: bool = False) -> dict[str, Any]:  # noqa: ARG002, FBT001, FBT002
        return self.source.values


class Variables(EnvSettingsSource):
    """The `ATLAS_*` variables.

    By itself pydantic-settings reads only the process's environment, knows no aliases of keys in
    other sections, ignores variables of no key, and names no variable in its errors.
    """

    def __init__(self, settings: type[BaseSettings], variables: Mapping[str, str]) -> None:
        paths = {name: tuple(name.removeprefix(PREFIX).lower().split("__")) for name in variables}
        self._variables = {
            PREFIX + "__".join(map(str, spelled(path))): variables[name]
            for name, path in paths.items()
        }
        super().__init__(settings)
        known = settings.model_fields
        unknown = (
            (paths[name], text)
            for name, text in variables.items()
            if spelled(paths[name])[0] not in known
        )
        self.source = canonical(
            Source(
                name="the environment",
                values=tree(unknown) | super().__call__(),
                places={
                    path: Place(name, text=f"{name}={variables[name]}")
                    for name, path in paths.items()
                },
                is_text=True,
            )
        )

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return parse_env_vars(self._variables, parse_none_str=self.env_parse_none_str)

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: object) -> object:
        """The value of JSON; other text as it is, which is refused later, with its variable."""
        try:
            return super().decode_complex_value(field_name, field, value)
        except (ValueError, RecursionError):
            return value

    def __call__(self) -> dict[str, Any]:
        return self.source.values

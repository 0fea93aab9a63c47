"""Passes that a tool repeats from its cache instead of running anything.

Such a tool knows only the inputs that it was told of, or that it sees itself: `go test` does not
see what a test reads through another process.
"""

import re
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.model import Gate, GateResult
from atlas_retry.patterns import regex


class ResultCache(Struct, frozen=True, kw_only=True):
    """How a tool reports a result from its cache, and the variables that have it run instead."""

    reported: re.Pattern[str]
    off: Mapping[str, str]
    is_added: bool = False
    """Whether these are options, to be added to what the variables already hold."""


CACHES = (
    # `go help test`, `go help environment`
    ResultCache(
        reported=regex(r'(?m)(?:^|")(?:ok|PASS|✓)\s+\S+(?:\s.*)?\(cached\)'),
        off={"GOFLAGS": "-count=1"},
        is_added=True,
    ),
    # https://turborepo.com/docs/reference/system-environment-variables
    ResultCache(
        reported=regex(r"(?m)^ *Cached: +[1-9]\d* cached, "),
        off={"TURBO_FORCE": "true"},
    ),
    # https://nx.dev/reference/environment-variables
    ResultCache(
        reported=regex(r"Nx read the output from the cache instead of running the command"),
        off={"NX_SKIP_NX_CACHE": "true"},
    ),
)


def without_cache(gate: Gate, result: GateResult, environ: Mapping[str, str]) -> Gate | None:
    """The gate with such a cache switched off; None if its result is not from one."""
    env = dict(gate.env)
    printed = f"{result.stdout}\n{result.stderr}"
    used = [cache for cache in CACHES if cache.reported.search(printed)]
    for cache in used:
        there = {**environ, **env} if cache.is_added else {}
        for name, text in cache.off.items():
            env[name] = f"{there.get(name, '')} {text}".strip()
    return replace(gate, env=(*env.items(),)) if used else None

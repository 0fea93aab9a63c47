"""Passes that tools repeat from their caches are known by what the tools print."""

import pytest
from msgspec.structs import replace

from atlas_retry.diagnostics.cached import without_cache
from tests.values import gate, result

PRINTED = {
    "go 1.26": ("ok  \tex/fmtx\t0.001s\nok  \tex/rates\t(cached)\n", "GOFLAGS"),
    "go 1.26 -cover": ("ok  \tex/rates\t(cached)\tcoverage: 75.0% of statements\n", "GOFLAGS"),
    "go 1.26 -json": (
        '{"Action":"output","Package":"ex","Output":"ok  \\tex\\t(cached)\\n"}\n',
        "GOFLAGS",
    ),
    "turbo 2.11.11": (
        "\n Tasks:    1 successful, 2 total\nCached:    1 cached, 2 total\n  Time:    27ms\n",
        "TURBO_FORCE",
    ),
    "nx": (
        "Nx read the output from the cache instead of running the command for 1 out of 2 tasks.\n",
        "NX_SKIP_NX_CACHE",
    ),
    "go without": ("ok  \tex/rates\t0.002s\n?   \tex\t[no test files]\n", None),
    "turbo without": (" Tasks:    2 successful, 2 total\nCached:    0 cached, 2 total\n", None),
    "another tool": ("collecting (cached)\nit is ok (cached)\n", None),
}


@pytest.mark.parametrize("which", PRINTED)
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_cached_pass_is_known_by_its_output(which: str, stream: str) -> None:
    text, variable = PRINTED[which]
    uncached = without_cache(gate(), replace(result(), **{stream: text}), {})
    assert (uncached and uncached.env[0][0]) == variable


def test_options_are_added_to_those_of_the_gate_or_else_of_the_environment() -> None:
    seen = replace(result(), stdout="ok  \tex\t(cached)\n")
    environ = {"GOFLAGS": "-mod=mod"}
    of_gate = gate(env=(("A", "1"), ("GOFLAGS", "-mod=vendor")))
    assert [
        one and dict(one.env)
        for one in (without_cache(of_gate, seen, environ), without_cache(gate(), seen, environ))
    ] == [{"A": "1", "GOFLAGS": "-mod=vendor -count=1"}, {"GOFLAGS": "-mod=mod -count=1"}]

"""Output of several sources: what runners of monorepos print in a workspace of two packages.

Both have a file of the same name, so that only what the runner prints tells where a problem is.
"""

import pytest

from atlas_retry.diagnostics import ToolOutput, diagnose
from atlas_retry.model import Kind

PACKAGES = {"@acme/ui": "packages/ui", "@acme/api": "packages/api", "ui": "services/ui"}
UI = (
    "src/box.ts(2,3): error TS2322: Type 'number' is not assignable to type 'string'.\n"
    "src/box.ts(4,14): error TS2322: Type 'string' is not assignable to type 'number'.\n"
)
API = "src/box.ts(2,3): error TS2322: Type 'string' is not assignable to type 'number'.\n"


def prefixed(ui: str, api: str, head: str = "", tail: str = "") -> str:
    """The lines of both packages, interleaved behind what the runner puts in front of them."""
    first, second = UI.splitlines(keepends=True)
    return f"{head}{ui}{first}{api}{API}{ui}{second}{tail}"


RUNNERS = {
    # turbo 2.11, npm 11
    "turbo": prefixed(
        "@acme/ui:typecheck: ",
        "@acme/api:typecheck: ",
        "   • Packages in scope: @acme/api, @acme/ui\n\n"
        "@acme/ui:typecheck: cache miss, executing 9ffe48e4b8e1e9fc\n"
        "@acme/api:typecheck: cache miss, executing 2df167adff7d2d4d\n",
        "@acme/ui:typecheck: npm error path /w/packages/ui\n\n Tasks:    0 successful, 2 total\n",
    ),
    # pnpm 9.15
    "pnpm": prefixed(
        "packages/ui typecheck: ",
        "packages/api typecheck: ",
        "Scope: 2 of 3 workspace projects\n"
        "packages/api typecheck$ tsc --noEmit -p .\npackages/ui typecheck$ tsc --noEmit -p .\n",
        "packages/ui typecheck: Failed\npackages/api typecheck: Failed\n",
    ),
    # bun 1.4
    "bun": prefixed(
        "@acme/ui typecheck: ",
        "@acme/api typecheck: ",
        tail="@acme/ui typecheck: Exited with code 2\n@acme/api typecheck: Exited with code 2\n",
    ),
    # lerna 9, nx 22
    "lerna": prefixed(
        "@acme/ui: ",
        "@acme/api: ",
        "\n Lerna (powered by Nx)   Running target typecheck for 2 projects:\n\n- @acme/api\n",
        "@acme/api: > @acme/api@1.0.0 typecheck\n@acme/api: > tsc --noEmit -p .\n",
    ),
    "npm": f"\n> @acme/ui@1.0.0 typecheck\n> tsc --noEmit -p .\n\n{UI}"
    f"\n> @acme/api@1.0.0 typecheck\n> tsc --noEmit -p .\n\n{API}",
    # npm 11, of what each package prints to stderr
    "npm's errors": "".join(
        f"{printed}npm error Lifecycle script `typecheck` failed with error:\nnpm error code 1\n"
        f"npm error path /w/packages/{name}\nnpm error workspace @acme/{name}@1.0.0\n"
        "npm error command failed\nnpm error command sh -c tsc --noEmit -p .\n\n"
        for name, printed in (("ui", UI), ("api", API))
    ),
    "nx": f"\n> nx run @acme/ui:typecheck\n\n{UI}\n> nx run @acme/api:typecheck\n\n{API}",
    "make": "make: Entering directory '/w'\nmake[1]: Entering directory '/w/packages/ui'\n"
    f"{UI}make[1]: Leaving directory '/w/packages/ui'\n"
    f"make[1]: Entering directory '/w/packages/api'\n{API}",
    # concurrently 9.2, by names of folders
    "concurrently": prefixed(
        "[packages/ui] ", "[packages/api] ", tail="[packages/ui] tsc exited with code 2\n"
    ),
    "turbo in times": "".join(
        f"10:27:{n:02}  {line}"
        for n, line in enumerate(
            prefixed("@acme/ui:typecheck: ", "@acme/api:typecheck: ").splitlines(keepends=True)
        )
    ),
}


@pytest.mark.parametrize("runner", RUNNERS)
def test_each_package_of_a_monorepo_has_its_own_problems(runner: str) -> None:
    output = ToolOutput(
        command="npm run typecheck",
        kind=Kind.LINT,
        exit_code=1,
        stdout=RUNNERS[runner],
        root="/w",
        packages=lambda: PACKAGES | {folder: folder for folder in PACKAGES.values()},
    )
    found = diagnose(output).diagnostics
    places = [(d.path, d.region and d.region.start_line, d.rule_id) for d in found]
    assert sorted(places) == [
        ("packages/api/src/box.ts", 2, "TS2322"),
        ("packages/ui/src/box.ts", 2, "TS2322"),
        ("packages/ui/src/box.ts", 4, "TS2322"),
    ]
    assert all(d.message.startswith("Type '") for d in found)


@pytest.mark.parametrize(
    ("printed", "message"),
    [
        ("main.py:14: starting server\nmain.py:15: connecting\n", None),
        ("[info] a.py:1: E1 bad\n[info] b.py:2: E1 bad\n", "bad"),
        ("error: a: b\nerror: c: d\n", None),
    ],
)
def test_levels_and_words_are_no_sources(printed: str, message: str | None) -> None:
    output = ToolOutput(command="make", exit_code=1, stdout=printed, root="/w")
    found = [d for d in diagnose(output).diagnostics if d.path]
    assert {d.message for d in found} == ({message} if message else set())


PYTEST = (
    "F                                                         [100%]\n"
    "=================== FAILURES ===================\n"
    "___________________ test_add ___________________\n\n"
    "    def test_add():\n"
    ">       assert add(1, 2) == 3\n"
    "E       assert -1 == 3\n\n"
    "tests/test_calc.py:6: AssertionError\n"
    "=========== short test summary info ============\n"
    "FAILED tests/test_calc.py::test_add - assert -1 == 3\n"
    "1 failed in 0.01s\n"
)
TWINS = ("services/api/tests/test_calc.py", "services/web/tests/test_calc.py")


@pytest.mark.parametrize(
    "head",
    [
        "=== {name}",
        "Testing services/{name} ...",
        "cd services/{name} && python -m pytest -q",
        "+ (cd services/{name}; pytest -q)",
        "rootdir: /w/services/{name}",
    ],
)
def test_a_loop_over_folders_says_above_whose_file_is_meant(head: str) -> None:
    printed = "".join(f"{head.format(name=name)}\n{PYTEST}" for name in ("api", "web"))
    output = ToolOutput(
        command="make test",
        kind=Kind.TEST,
        exit_code=2,
        stdout=printed,
        root="/w",
        holds=TWINS.__contains__,
        endings=lambda path: [file for file in TWINS if file.endswith(f"/{path}")],
    )
    assert [d.path for d in diagnose(output).diagnostics] == [*TWINS]


def test_a_test_of_go_is_in_the_module_whose_package_ends_its_output() -> None:
    files = ("a/m_test.go", "b/m_test.go")
    output = ToolOutput(
        command="go test ./a/... ./b/...",
        kind=Kind.TEST,
        exit_code=1,
        stdout="ok  \texample.com/a\t0.003s\n--- FAIL: TestAdd (0.00s)\n    m_test.go:5: got -1\n"
        "FAIL\nFAIL\texample.com/b\t0.019s\nFAIL\n",
        root="/w",
        packages=lambda: {"example.com/a": "a", "example.com/b": "b"},
        holds=files.__contains__,
        endings=lambda path: [file for file in files if file.endswith(f"/{path}")],
    )
    assert [d.path for d in diagnose(output).diagnostics] == ["b/m_test.go"]


def test_what_is_above_in_stdout_says_nothing_of_stderr() -> None:
    output = ToolOutput(
        command="make lint",
        kind=Kind.LINT,
        exit_code=1,
        stdout="=== api\n=== web\n",
        stderr="tests/test_calc.py:6:1: E1 wrong\n",
        root="/w",
        holds=TWINS.__contains__,
        endings=lambda path: [file for file in TWINS if file.endswith(f"/{path}")],
    )
    assert [d.path for d in diagnose(output).diagnostics] == ["tests/test_calc.py"]

"""Workflows are read as GitHub and GitLab read them; every line of them is accounted for."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas_retry.config import load_text
from atlas_retry.config.ci import github
from atlas_retry.config.ci.expressions import UNKNOWN, holds, value_of
from atlas_retry.config.ci.jobs import alike, combinations
from atlas_retry.config.ci.script import commands_of
from atlas_retry.config.init import accounting, propose, text_of
from atlas_retry.config.init.accounting import Role
from atlas_retry.config.init.detect import MAX_GATES
from atlas_retry.config.init.values import Proposal
from atlas_retry.config.project import Folder, ProjectFiles
from tests.init.test_ci import FILES, GITHUB, STEPS, accounts_of, gates_of
from tests.init.test_detect import POM, Layout, chosen, package
from tests.init.test_init import laid_out, machine

CONTEXTS: Mapping[str, object] = {
    "github": {"event_name": "push", "ref": "refs/heads/main", "*": UNKNOWN},
    "matrix": {"os": "ubuntu-24.04", "n": 3, "job": {"tags": ["a", "b"]}},
    "$CI": "true",
}
EXPRESSIONS: Mapping[str, object] = {
    "github.event_name == 'push' && github.ref": "refs/heads/main",
    "startsWith(github.ref, 'refs/tags/')": False,
    "matrix.missing && 'x' || 'y'": "y",
    "matrix.job.tags[1]": "b",
    "contains(fromJSON('[\"A\"]'), 'a')": True,
    "format('{0}-{1}', matrix.n, true)": "3-true",
    "'it''s'": "it's",
    "matrix.n >= 3 && !(matrix.n > 3)": True,
    "'' == 0": True,
    "failure() || always()": True,
    "github.event.action": UNKNOWN,
    "github.event.action == 'x' && false": False,
    "needs.a.outputs.b == 'true'": UNKNOWN,
    '$CI == "true" && $UNSET == null': True,
    "$CI =~ /^t.+e$/": True,
    "hashFiles('x')": UNKNOWN,
    "not an expression": UNKNOWN,
    "(((": UNKNOWN,
}


@pytest.mark.parametrize(("expression", "value"), EXPRESSIONS.items())
def test_an_expression_has_the_value_that_ci_gives_it(expression: str, value: object) -> None:
    assert value_of(expression, CONTEXTS) == value


@pytest.mark.parametrize(
    ("condition", "answer"),
    [
        ("${{ github.event_name == 'push' }}", True),
        ("github.ref == 'refs/heads/other'", False),
        ("needs.changes.outputs.code", None),
        ("${{ true }} && false", None),
        (False, False),
    ],
)
def test_a_condition_that_only_ci_can_decide_is_unknown(condition: object, answer: object) -> None:
    assert holds(condition, CONTEXTS) is answer


def test_a_matrix_is_the_product_with_exclusions_and_inclusions() -> None:
    matrix = {
        "os": ["linux", "mac"],
        "n": [1, 2],
        "exclude": [{"os": "mac", "n": 2}],
        "include": [{"os": "linux", "extra": "x"}, {"os": "other"}],
    }
    assert combinations(matrix) == [
        {"os": "linux", "n": 1, "extra": "x"},
        {"os": "linux", "n": 2, "extra": "x"},
        {"os": "mac", "n": 1},
        {"os": "other"},
    ]


def test_another_version_or_system_is_no_other_row() -> None:
    rows = combinations(
        {"os": ["ubuntu-latest", "windows-latest"], "python": ["3.12", "3.13"], "suite": ["a", "b"]}
    )
    assert [best for best, *_ in alike(rows, ("os", "python", "suite"))] == [
        {"os": "ubuntu-latest", "python": "3.13", "suite": "a"},
        {"os": "ubuntu-latest", "python": "3.13", "suite": "b"},
    ]


CALLED = "them/flows/.github/workflows/x.yml@v1"
FOLDER = "${{ steps.x.outputs.y }}"
ONLY_CI = ", which only CI has"
AT_ROOT = "cmake -Bout -S $(git rev-parse --show-toplevel)"
AT_CHECKOUT = "cmake -Bout -S $GITHUB_WORKSPACE"
IN_OUT = "(mkdir -p out && cd out &&"
LOOP = "for f in *.php; do php -l $f || bad=1; done"
COMPARES = "it compares with the commit: your own edits would fail it"
MATRIX = "on: push\njobs:\n  a:\n    strategy: {matrix: %s}\n    steps: [{run: '%s'}]\n"
LINES: dict[str, tuple[Mapping[str, str], list[str]]] = {
    "values that change what is checked are gates": (
        {GITHUB: MATRIX % ("{folder: [core, extra]}", "cd ${{ matrix.folder }} && pytest")},
        ["gate: pytest in core", "gate: pytest in extra"],
    ),
    "rows of a matrix": (
        {
            "package.json": package({"lint": "eslint .", "test": "jest", "build": "x"}),
            GITHUB: MATRIX
            % ("{include: [{do: lint, node: 20}, {do: test}]}", "npm run ${{ matrix.do }}"),
        },
        ["gate: npm run lint", "gate: npm run test"],
    ),
    "a matrix that another job makes": (
        {GITHUB: MATRIX % ("'${{ fromJSON(needs.a.outputs.m) }}'", "pytest ${{ matrix.x }}")},
        ["left out: pytest ${{ matrix.x }} (it needs ${{ matrix.x }}, which only CI has)"],
    ),
    "lines of unknown tools are named": (
        {"Makefile": "all:\n\tgcc a.c\n", GITHUB: STEPS + "    - run: make\n    - run: frob -x\n"},
        ["gate: make", "not understood: frob -x"],
    ),
    "words that say what an unknown tool does": (
        {GITHUB: STEPS + "    - run: cargo semver-checks\n    - run: frobnicate check src\n"},
        ["gate: cargo semver-checks", "gate: frobnicate check src"],
    ),
    "the environment of tox in a variable": (
        {
            "tox.ini": "[testenv:lint]\ncommands = flake8\n[testenv:docs]\ncommands = x\n",
            GITHUB: "on: push\njobs:\n  a:\n    strategy: {matrix: {env: [{TOXENV: docs}, "
            "{TOXENV: lint}]}}\n    steps: [{run: tox, env: '${{ matrix.env }}'}]\n",
        },
        ["gate: tox -e docs with TOXENV=docs", "gate: tox -e lint with TOXENV=lint"],
    ),
    "a build and its tests with the options of each job": (
        {
            "CMakeLists.txt": "enable_testing()\n",
            GITHUB: MATRIX
            % (
                "{option: [A, B], build_type: [Debug, Release]}",
                f"{AT_CHECKOUT} -D${{{{ matrix.option }}}}=ON; cd out; ninja; ctest -j 2",
            ),
        },
        [
            line
            for option in "AB"
            for line in (
                f"set-up: {AT_ROOT} -D{option}=ON",
                *(["set-up: ninja in out", "set-up: ctest -j 2 in out"] if option == "A" else []),
                f"gate: {AT_ROOT} -D{option}=ON && {IN_OUT} ninja) && {IN_OUT} ctest -j 2)",
            )
        ],
    ),
    "a program that is left running is no gate": (
        {GITHUB: STEPS + "    - run: |\n        node tests/server.js &\n        npx mocha\n"},
        [
            "left out: node tests/server.js (CI leaves it running beside the next lines)",
            "gate: npx mocha",
        ],
    ),
    "a condition that fails the job, and a comparison, are checks": (
        {
            GITHUB: STEPS + "    - run: |\n        bad=$(checkguard -r src)\n"
            '        if [ "$bad" ]; then exit 1; fi\n'
            "    - run: grep -q 1.2 README.md\n    - run: if [ -f x ]; then cp x y; fi\n"
        },
        [
            'gate: bad=$(checkguard -r src) && if [ "$bad" ]; then exit 1; fi',
            "gate: grep -q 1.2 README.md",
            "set-up: if [ -f x ]; then cp x y; fi",
        ],
    ),
    "the default goal of a build": (
        {
            "pom.xml": "<build><defaultGoal>clean verify checkstyle:check</defaultGoal></build>",
            GITHUB: STEPS + "    - run: mvn --batch-mode\n",
        },
        ["gate: mvn --batch-mode"],
    ),
    "names that are no variables, and an unknown folder": (
        {
            GITHUB: "on: push\nenv: {dist-name: x}\njobs:\n  a:\n    steps:\n    - run: pytest\n"
            "    - {run: pytest, working-directory: '${{ steps.x.outputs.y }}/web'}\n"
        },
        [
            "gate: pytest with dist-name=x",
            f"left out: pytest in {FOLDER}/web with dist-name=x (it needs {FOLDER}{ONLY_CI})",
        ],
    ),
    "conditions": (
        {
            GITHUB: "on: [push, pull_request]\njobs:\n"
            "  a: {if: github.event_name == 'pull_request', steps: [{run: pytest a}]}\n"
            "  b: {if: \"startsWith(github.ref, 'refs/tags')\", steps: [{run: pytest b}]}\n"
            "  c:\n    steps:\n    - {run: pytest c, if: matrix.slow}\n"
            "    - {run: pytest d, if: needs.x.outputs.y}\n"
        },
        [
            "gate: pytest a",
            "left out: pytest b (CI runs its job only if startsWith(github.ref, 'refs/tags'))",
            "left out: pytest c (CI runs it only if matrix.slow)",
            "gate: pytest d",
        ],
    ),
    "a step that runs for one version only": (
        {
            GITHUB: "on: push\njobs:\n  a:\n    runs-on: '${{ matrix.os }}'\n"
            "    strategy: {matrix: {node: [26, 24], os: [ubuntu-latest, macos-14]}}\n    steps:\n"
            "    - {run: pytest lint, if: matrix.node == 26 && matrix.os == 'ubuntu-latest'}\n"
            "    - {run: pytest mac, if: matrix.os == 'macos-14'}\n    - {run: pytest}\n"
        },
        [
            "gate: pytest lint",
            "left out: pytest mac (CI runs it only if matrix.os == 'macos-14')",
            "gate: pytest",
        ],
    ),
    "variables of three levels, and of no other workflow": (
        {
            GITHUB: "on: push\nenv: {A: 1, B: 1}\njobs:\n  a:\n    env: {B: '${{ env.A }}2'}\n"
            "    steps: [{run: pytest $C, env: {C: x}}]\n",
            ".github/workflows/old.yml": "on: push\nenv: {LEGACY: 1}\njobs: {}\n",
        },
        ["gate: pytest $C with A=1 B=12 C=x"],
    ),
    "the plain row of a matrix": (
        {
            GITHUB: "on: push\njobs:\n  a:\n    env: {TARGET: ''}\n"
            "    strategy: {matrix: {include: [{rust: stable}, "
            "{rust: stable, target: s390x-unknown-linux-gnu}]}}\n    steps:\n"
            "    - {run: 'echo TARGET=--target ${{ matrix.target }} >> $GITHUB_ENV', "
            "if: matrix.target}\n    - run: cargo test ${{ env.TARGET || '--lib' }}\n",
        },
        [
            "set-up: echo TARGET=--target s390x-unknown-linux-gnu >> $GITHUB_ENV with TARGET=",
            "gate: cargo test --lib with TARGET=",
        ],
    ),
    "a variable that a step keeps for the next ones": (
        {GITHUB: STEPS + '    - run: echo "FLAGS=-x" >> $GITHUB_ENV\n    - run: pytest $FLAGS\n'},
        ['set-up: echo "FLAGS=-x" >> $GITHUB_ENV', "gate: pytest $FLAGS with FLAGS=-x"],
    ),
    "a variable of the script goes with its line": (
        {GITHUB: STEPS + "    - run: |\n        FILES=$(git ls-files)\n        flake8 $FILES\n"},
        ["gate: FILES=$(git ls-files) && flake8 $FILES"],
    ),
    "another repository ends the job": (
        {
            GITHUB: STEPS + "    - run: pytest\n"
            "    - {uses: actions/checkout@v4, with: {repository: them/other}}\n    - run: tox\n"
        },
        ["gate: pytest", "left out: tox (it checks them/other)"],
    ),
    "the project in a folder of the workspace": (
        {
            GITHUB: "on: push\njobs:\n  a:\n    env: {IN: '${{ github.workspace }}/src/shop'}\n"
            "    defaults: {run: {working-directory: '${{ env.IN }}'}}\n    steps:\n"
            "    - {uses: actions/checkout@v4, with: {path: '${{ env.IN }}'}}\n"
            "    - {run: pytest}\n    - {run: mypy, working-directory: src/shop/web}\n"
        },
        ["gate: pytest", "gate: mypy in web"],
    ),
    "a folder of another repository": (
        {
            GITHUB: STEPS
            + "    - {uses: actions/checkout@v4, with: {repository: them/other, path: data}}\n"
            "    - {run: pytest, working-directory: data}\n    - run: mypy src\n"
        },
        ["left out: pytest in data (it checks another repository)", "gate: mypy src"],
    ),
    "local actions and workflows": (
        {
            ".github/actions/check/action.yml": "inputs: {what: {default: src}}\nruns:\n"
            "  steps:\n  - {run: 'mypy ${{ inputs.what }}', shell: bash}\n",
            ".github/workflows/shared.yml": "on:\n"
            "  workflow_call: {inputs: {flags: {default: -x}}}\n"
            "jobs: {t: {steps: [{run: 'pytest ${{ inputs.flags }}'}]}}\n",
            GITHUB: "on: push\njobs:\n  a: {steps: [{uses: ./.github/actions/check}]}\n"
            "  b: {uses: ./.github/workflows/shared.yml, with: {flags: -q}}\n"
            "  c: {uses: them/flows/.github/workflows/x.yml@v1}\n",
        },
        [
            "gate: mypy src",
            "gate: pytest -q",
            f"left out: uses: {CALLED} (its lines are in another repository)",
        ],
    ),
    "expressions are never cut": (
        {GITHUB: STEPS + "    - run: pytest ${{ github.x && '--a;b' || '--c' }} && mypy src\n"},
        [
            (
                "left out: pytest ${{ github.x && '--a;b' || '--c' }} (it needs "
                "${{ github.x && '--a;b' || '--c' }}, which only CI has)"
            ),
            "gate: mypy src",
        ],
    ),
    "a loop is one line": (
        {
            GITHUB: STEPS + "    - run: |\n        for d in a b; do\n"
            "          (cd $d && go test ./...)\n        done\n"
        },
        ["gate: for d in a b; do\n  (cd $d && go test ./...)\ndone"],
    ),
    "a loop that sets what a later line reads": (
        {
            GITHUB: STEPS + "    - run: |\n        bad=0\n"
            "        for f in *.php; do php -l $f || bad=1; done\n"
            "        if [ $bad = 1 ]; then exit 1; fi\n"
        },
        [f"gate: {LOOP} && if [ $bad = 1 ]; then exit 1; fi with bad=0"],
    ),
    "another system, and another shell": (
        {
            GITHUB: "on: push\njobs:\n  a: {runs-on: macos-14, steps: [{run: pytest mac}]}\n"
            "  b:\n    runs-on: ubuntu-latest\n"
            "    steps: [{run: pytest}, {run: pytest pwsh, shell: pwsh}]\n"
        },
        [
            "left out: pytest mac (CI runs it on macos-14 only)",
            "gate: pytest",
            "left out: pytest pwsh (it is written for PowerShell)",
        ],
    ),
    "what compares with the commit": (
        {GITHUB: STEPS + "    - run: git diff --exit-code\n"},
        [f"left out: git diff --exit-code ({COMPARES})"],
    ),
    "GitLab: templates, references and rules": (
        {
            "ci/base.yml": ".base: {before_script: [pip install .], variables: {A: x}}\n",
            ".gitlab-ci.yml": "include: [{local: /ci/base.yml}]\nstages: [check, test]\n"
            ".lines: {script: [mypy src]}\n"
            "types: {stage: check, extends: .base, script: [!reference [.lines, script]]}\n"
            "unit: {stage: test, extends: .base, script: [pytest $A]}\n"
            'tags: {script: [pytest b], rules: [{if: "$CI_COMMIT_TAG"}]}\n'
            "hand: {script: [pytest c], when: manual}\n"
            "request: {script: [pytest d], rules: [{if: '$CI_PIPELINE_SOURCE == \"push\"', "
            "when: never}, {when: on_success}]}\n",
        },
        [
            "set-up: pip install . with A=x",
            "gate: mypy src with A=x",
            "gate: pytest $A with A=x",
            "left out: pytest b (no push and no request runs its job)",
            "left out: pytest c (CI runs its job by hand)",
            "gate: pytest d",
        ],
    ),
}


@pytest.mark.parametrize(("files", "expected"), LINES.values(), ids=LINES.keys())
def test_each_line_has_its_role(files: Mapping[str, str], expected: list[str]) -> None:
    described = []
    for each in accounts_of(files):
        line = each.line
        where = f" in {line.cwd}" if line.cwd != "." else ""
        env = f" with {' '.join(map('='.join, line.env))}" if line.env else ""
        why = f" ({each.reason})" if each.reason else ""
        described.append(f"{each.role}: {line.line}{where}{env}{why}")
    assert described == expected


RECORDED = [*(files for files, _ in FILES.values()), *(files for files, _ in LINES.values())]


@pytest.mark.parametrize("files", RECORDED)
def test_every_line_of_ci_is_exactly_one_of_four(files: Mapping[str, str]) -> None:
    """The sum of the roles is the number of the lines, each counted once."""
    project = ProjectFiles(Layout(files))
    jobs = accounting.jobs_of_ci(project)
    lines = {(n.cwd, n.line) for job in jobs for n in job.lines}
    accounts = accounting.accounts(project, jobs)
    assert Counter(a.role for a in accounts).total() == len(accounts)
    known = {(a.line.cwd, accounting.without_reports(a.line.line)) for a in accounts}
    assert len(known) == len(accounts)
    assert {(cwd, accounting.without_reports(line)) for cwd, line in lines} - known <= settled(
        lines
    )


def settled(lines: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Lines that stand for another version of themselves, or for what builds first."""
    return {(c, accounting.without_reports(n)) for c, n in lines if n.startswith(("tox", "ctest"))}


@pytest.mark.parametrize("files", RECORDED)
def test_what_is_proposed_is_a_configuration(files: Mapping[str, str]) -> None:
    proposal = Proposal(choices=tuple(chosen(files)))
    loaded = load_text(text_of(proposal).encode(), "proposal") if proposal.gates else None
    assert len(loaded.gates if loaded else ()) == len(proposal.gates)


STEP = "on: push\njobs: {a: {%s}}"
ODD = [
    "jobs: []",
    STEP % "steps: x",
    "on: {push: [], x: }\njobs: {a: {needs: {}}}",
    STEP % "strategy: {matrix: [1]}, steps: [{run: [1]}, {run: 7}, 3, {uses: [1]}]",
    STEP % "strategy: {matrix: {x: [], y: 3}}, env: x, if: [1], steps: [{run: ''}]",
    STEP % "uses: ./.github/workflows/ci.yml, with: 3",
    STEP % 'runs-on: [a, {b: c}], defaults: {run: 1}, steps: [{run: "cd \' \\\\m $"}]',
    STEP % "steps: [{run: '$Env:Path=\"C:\\msys64;$Env:Path\"'}, {run: '${{ a[ }}'}]",
    STEP % "steps: [{run: 'if ; then (( )) <<EOF'}, {run: '$(', shell: 3}]",
    "stages: 3\na: {script: {b: c}, rules: [1, {if: [2]}], extends: a, needs: [{job: []}]}",
    "include: [3, {local: 7}]\na: {script: [!reference [b], [[x]]], parallel: {matrix: [1]}}",
]


@pytest.mark.parametrize("text", ODD)
@pytest.mark.parametrize("path", [GITHUB, ".gitlab-ci.yml", ".circleci/config.yml"])
def test_odd_files_of_ci_are_read_without_an_error(path: str, text: str) -> None:
    assert isinstance(accounts_of({path: text}), tuple)


@given(st.text(alphabet="ab \n$\\'\"(){}[]<>|&;=!.-/#%@", max_size=60))
def test_no_script_is_too_odd(script: str) -> None:
    commands = [*commands_of(script, ".", {"a": "b"})]
    assert all(command.text for command in commands)


@given(st.text(alphabet="ab .'\"(){}[]<>|&!=,$/*0", max_size=40))
def test_no_expression_is_too_odd(expression: str) -> None:
    assert holds(expression, CONTEXTS) in (True, False, None)


def test_every_line_of_our_own_workflows_is_understood() -> None:
    project = ProjectFiles(Folder(Path(__file__).parents[2]))
    jobs = [*github.jobs(project)]
    assert jobs
    roles = Counter(account.role for account in accounting.accounts(project, jobs))
    assert roles[Role.GATE]
    assert roles[Role.UNKNOWN] == 0


def test_the_lines_of_a_job_keep_their_order_and_readers_leave_it() -> None:
    steps = "".join(f"    - run: {line}\n" for line in ("npm run build", "eslint .", "vitest run"))
    files = {"package.json": package({"build": "vite build"}), GITHUB: STEPS + steps}
    build, lint, test = gates_of(files)
    assert (lint.follows, test.follows) == ((build.key,), (build.key,))


def test_a_gate_has_only_variables_that_a_configuration_can_name() -> None:
    files = {GITHUB: "on: push\nenv: {dist-name: x, A: b}\njobs: {a: {steps: [{run: pytest}]}}\n"}
    proposal = Proposal(choices=tuple(chosen(files)))
    (gate,) = load_text(text_of(proposal).encode(), "proposal").gates
    assert gate.env == (("A", "b"),)


def test_a_line_must_pass_if_one_of_its_jobs_fails_by_it() -> None:
    optional = "on: push\njobs: {a: {continue-on-error: true, steps: [{run: pytest}]}}\n"
    files = {".github/workflows/a.yml": optional, GITHUB: STEPS + "    - run: pytest\n"}
    (gate,) = gates_of(files)
    assert gate.required


def test_variables_of_ci_that_a_script_reads_are_named() -> None:
    script = "pytest --db $DATABASE_URL --sha $GITHUB_SHA $HOME $MODE\n"
    job = "on: push\nenv: {DATABASE_URL: '${{ secrets.DB }}', MODE: x}\n"
    files = {"ci/test.sh": script, GITHUB: job + "jobs: {a: {steps: [{run: sh ci/test.sh}]}}\n"}
    (gate,) = gates_of(files)
    asked = "ci/test.sh asks for $DATABASE_URL, $GITHUB_SHA, which only CI has"
    assert gate.reason == f"ci.yml runs this line; {asked}"


def test_a_default_goal_says_what_a_build_is() -> None:
    pom = "<build><defaultGoal>clean verify</defaultGoal></build>"
    (gate,) = gates_of({"pom.xml": pom, GITHUB: STEPS + "    - run: mvn -B\n"})
    assert gate.slot == "test"


def test_a_line_for_bash_is_run_by_bash() -> None:
    files = {GITHUB: STEPS + "    - run: '[[ -n $PWD ]] && pytest tests <<< x'\n"}
    (gate,) = gates_of(files)
    assert gate.run == "bash -ec 'pytest tests <<< x'"


SCRIPTS = {
    'if [ "$PWD" ]; then\n  # the rest\n  pytest a\nelse\n  pytest b\nfi': (
        'if [ "$PWD" ]; then pytest a; else pytest b; fi'
    ),
    "for d in a b; do\n  cd $d\n  pytest\ndone": "for d in a b; do cd $d; pytest; done",
    "for d in a b; do\n  pytest <<EOF\nx\nEOF\ndone": None,
}


@pytest.mark.parametrize(("script", "expected"), SCRIPTS.items())
def test_a_loop_of_several_lines_is_a_gate_of_one(script: str, expected: str | None) -> None:
    steps = "    - run: |\n" + "".join(f"        {line}\n" for line in script.splitlines())
    (gate,) = gates_of({GITHUB: STEPS + steps})
    assert (gate.barred is None) is (expected is not None)
    assert expected in (gate.run, None)


def test_a_job_waits_for_the_jobs_that_it_needs() -> None:
    text = "on: push\njobs:\n  a: {steps: [{run: make}]}\n  b: {steps: [{run: pytest}]}\n"
    text += "  c: {needs: a, steps: [{run: coverage report}]}\n"
    make, test, report = gates_of({"Makefile": "all:\n\tgcc a.c\n", GITHUB: text})
    assert (test.follows, report.follows) == ((), (make.key,))


def test_more_than_twelve_gates_are_left_to_ci() -> None:
    lines = "".join(f"    - run: pytest tests/{number}\n" for number in range(14))
    choices = chosen({GITHUB: STEPS + lines + "    - run: mypy src\n"})
    away = [choice.run for choice in choices if choice.only_in_ci]
    assert len(choices) - len(away) == MAX_GATES
    assert "mypy src" not in away
    assert all(not choice.required for choice in choices if choice.only_in_ci)


@pytest.mark.parametrize(
    "lines",
    [
        ("npm test", "npx vitest run"),
        ("vitest run --coverage", "npx vitest run"),
        ("pytest -n auto --cov=shop", "python -m pytest"),
    ],
)
def test_the_same_tests_are_one_gate(lines: tuple[str, str]) -> None:
    steps = "".join(f"    - run: {line}\n" for line in lines)
    files = {"package.json": package({"test": "vitest run"}), GITHUB: STEPS + steps}
    runs = [choice.run for choice in chosen(files)]
    assert lines[0] in runs
    assert lines[1] not in runs


def test_gates_that_ci_does_not_run_are_optional() -> None:
    files = {"pom.xml": POM, GITHUB: STEPS + "    - run: mvn verify\n"}
    required = {choice.run: choice.required for choice in chosen(files)}
    assert required["mvn verify"]
    assert [run for run, needed in required.items() if needed] == ["mvn verify"]


def test_the_written_gates_keep_the_order_of_the_job() -> None:
    steps = "".join(f"    - run: {line}\n" for line in ("mypy src", "make", "pytest"))
    steps += "    - run: coverage report --fail-under 90\n"
    files = {"Makefile": "all:\n\tgcc a.c\n", GITHUB: STEPS + steps}
    proposal = Proposal(choices=tuple(chosen(files)))
    gates = load_text(text_of(proposal).encode(), "proposal").gates
    after = {gate.run.split()[0]: gate.after for gate in gates}
    assert after == {"mypy": (), "make": (), "pytest": ("make",), "coverage": ("pytest",)}


def test_a_folder_of_a_repository_has_its_own_gates(tmp_path: Path) -> None:
    files = {
        ".git/HEAD": "",
        "pnpm-lock.yaml": "",
        "package.json": package({"lint": "eslint ."}),
        "packages/a/package.json": package({"test": "vitest run", "types": "tsc"}, "vitest"),
        "packages/b/package.json": package({"test": "jest"}, "jest"),
        "node_modules/x": "",
        GITHUB: STEPS + "    - run: pnpm lint\n"
        "    - {run: pnpm types, working-directory: packages/a}\n",
    }
    root = laid_out(tmp_path / "project", files)
    proposal = propose(root, machine(root, "pnpm"), "packages/a")
    described = {(gate.run, gate.cwd, gate.required) for gate in proposal.gates}
    assert described == {
        ("pnpm types", "packages/a", True),
        ("pnpm test", "packages/a", False),
    }
    assert "cwd" not in text_of(proposal)

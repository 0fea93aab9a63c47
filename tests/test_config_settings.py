"""What each key does to the settings, in each of its spellings."""

from pathlib import Path

import pytest

from atlas_retry import config
from atlas_retry.agents import AGENTS
from atlas_retry.config.keys import keys
from atlas_retry.diagnostics.tools import short_name
from atlas_retry.errors import ConfigError
from atlas_retry.model import Kind, Session
from atlas_retry.settings import BACKENDS, Settings, Step
from docs import make_reference
from tests.configurations import GATES, load, project


def load_text(text: str) -> Settings:
    return config.load_text(text.encode(), "test")


GATE = {
    "name": ("name: x", "name", "x"),
    "run": ("name: x", "run", "a b"),
    "fix": ("fix: c d", "fix", "c d"),
    "recheck": ("recheck: c d", "recheck", "c d"),
    "required": ("required: false", "required", False),
    "max_retries": ("max_retries: 4", "max_retries", 4),
    "timeout": ("timeout: 10m", "timeout_s", 600.0),
    "cwd": ("cwd: ./a/b/", "cwd", "a/b"),
    "env": ("env: {A: '1', B: ''}", "env", (("A", "1"), ("B", ""))),
    "pass_env": ("pass_env: [NPM_TOKEN]", "pass_env", ("NPM_TOKEN",)),
    "writes": ("writes: true", "writes", True),
    "files": ("files: ['*.py']", "files", ("*.py",)),
    "when": ("when: ci", "only_in_ci", True),
    "keep_daemons": ("keep_daemons: true", "keep_daemons", True),
    "exit_code": ("exit_code: trust", "trusts_exit_code", True),
    "network": ("network: none", "network", False),
    "parser": ("parser: mypy", "parser", "mypy"),
    "report.format": ("report: {format: junit, path: a.xml}", "report.format", "junit"),
    "report.path": ("report: {format: junit, path: a.xml}", "report.path", "a.xml"),
}


def value_of(values: object, path: str) -> object:
    for name in path.split("."):
        values = getattr(values, name)
    return values


@pytest.mark.parametrize(("text", "path", "value"), GATE.values(), ids=GATE)
@pytest.mark.parametrize(
    "spelling",
    [
        "validation: {{lint: [{{run: a b, {0}}}]}}",
        "validation: {{lint_commands: [{{run: a b, {0}}}]}}",
        "validation: {{commands: {{lint: [{{run: a b, {0}}}]}}}}",
        "quality_gates: [{{command: a b, {1}{0}}}]",
        "validation: {{custom: [{{run: a b, {2}{0}}}]}}",
    ],
    ids=["plain", "commands", "nested", "quality", "custom"],
)
def test_a_gate_key_has_its_effect_in_every_spelling(
    spelling: str, text: str, path: str, value: object
) -> None:
    name = "" if text.startswith("name") else "name: lint, "
    limit = "" if text.startswith("max_retries") else "max_retries: 1, "
    (gate,) = load_text(spelling.format(text, name, limit)).gates
    assert value_of(gate, path) == value


REVIEW = {
    "name": ("name", "x"),
    "prompt": ("prompt", "Is it simple?"),
    "agent": ("agent", "anthropic"),
    "paths": ("paths", ("src/**",)),
    "required": ("required", False),
    "max_retries": ("max_retries", 4),
    "timeout": ("timeout_s", 60.0),
}


@pytest.mark.parametrize(("path", "value"), REVIEW.values(), ids=REVIEW)
def test_a_review_key_has_its_effect(path: str, value: object) -> None:
    (gate,) = load_text(
        "validation: {review: [{name: x, prompt: Is it simple?, agent: anthropic,"
        " paths: [src/**], required: false, max_retries: 4, timeout: 1m}]}"
    ).gates
    assert (gate.kind, gate.run) == (Kind.REVIEW, "")
    assert value_of(gate, path) == value


VALUES = {
    "retry.ai_retry_enabled": ("false", "retry.ai_retry_enabled", False),
    "retry.max_ai_retry_attempts": ("0", "retry.budget.attempts", 0),
    "retry.flake_reruns": ("0", "retry.flake_reruns", 0),
    "retry.max_cost_usd": ("0.5", "retry.budget.cost_usd", 0.5),
    "retry.max_minutes": ("2", "retry.budget.wall_s", 120.0),
    "retry.prove": ("changed", "retry.prove", "changed"),
    "retry.on_exhausted": ("restore", "retry.on_exhausted", "restore"),
    "retry.strategy": (
        "[{ask: diagnose, room: 2, session: new, model: opus, models: {lint: haiku}}]",
        "retry.strategy",
        (
            Step(
                ask="diagnose",
                room=2.0,
                session=Session.NEW,
                model="opus",
                models={Kind.LINT: "haiku"},
            ),
        ),
    ),
    "retry.on_failure": ("mail me", "retry.on_failure", "mail me"),
    "agent.backend": ("my.agents:make", "agent.backend", "my.agents:make"),
    "agent.models": ("[haiku]", "agent.models", ("haiku",)),
    "agent.session": ("[new, resume]", "agent.session", ("new", "resume")),
    "agent.effort": ("[low, high]", "agent.effort", ("low", "high")),
    "agent.command": ("codex exec -", "agent.command", "codex exec -"),
    "agent.path": ("/opt/claude", "agent.path", "/opt/claude"),
    "agent.max_turns": ("9", "agent.max_turns", 9),
    "agent.timeout": ("1h", "agent.timeout_s", 3600.0),
    "agent.idle_timeout": ("1.5", "agent.idle_timeout_s", 1.5),
    "agent.permission_mode": ("plan", "agent.permission_mode", "plan"),
    "agent.extra_args": ("[--x]", "agent.extra_args", ("--x",)),
    "agent.isolation": ("auto", "agent.isolation", "auto"),
    "agent.writable": ("[/data]", "agent.writable", ("/data",)),
    "context.max_chars": ("4000", "context.max_chars", 4000),
    "context.max_chars_per_error": ("500", "context.max_chars_per_error", 500),
    "context.trace": ("off", "context.trace", "off"),
    "prompt.preamble": ("Be brief.", "prompt.preamble", "Be brief."),
    "prompt.gates": ("{pytest: x}", "prompt.gates", {"pytest": "x"}),
    "guard.mode": ("off", "guard.mode", "off"),
    "guard.protect": ("['*.lock']", "guard.protect", ("*.lock",)),
    "guard.allow": ("[docs/**]", "guard.allow", ("docs/**",)),
    "guard.review": ("note", "guard.review", "note"),
    "guard.hook": ("block", "guard.hook", "block"),
    "batch.jobs": ("9", "batch.jobs", 9),
    "batch.cascade_detection.enabled": ("false", "batch.cascade_detection.enabled", False),
    "batch.cascade_detection.threshold": ("2", "batch.cascade_detection.threshold", 2),
    "batch.cascade_detection.window_size": ("9", "batch.cascade_detection.window_size", 9),
    "batch.cascade_detection.on_cascade": ("alert", "batch.cascade_detection.on_cascade", "alert"),
    "budgets": (
        "{day: 3, repository_month: 40}",
        "budgets",
        (("day", 3), ("repository_month", 40)),
    ),
    "triage.baseline": ("origin/main", "triage_baseline", "origin/main"),
    "parsers": (
        "{mine: '(?P<path>.+): (?P<message>.+)'}",
        "parsers",
        (("mine", "(?P<path>.+): (?P<message>.+)"),),
    ),
    "validation.jobs": ("7", "jobs", 7),
    "validation.setup": ("npm ci", "setup", "npm ci"),
    "hook.older": ("tell", "hook.older", "tell"),
    "hook.when": ("push", "hook.when", "push"),
}


@pytest.mark.parametrize(("key", "text", "path", "value"), [
    pytest.param(key, *row, id=key) for key, row in VALUES.items()
])  # fmt: skip
def test_a_key_has_its_effect(key: str, text: str, path: str, value: object) -> None:
    *sections, last = key.split(".")
    opened = "".join(f"{section}: {{" for section in sections)
    gate = "" if key.startswith("validation") else GATES
    more = ", test: [pytest]" if key.startswith("validation") else ""
    settings = load_text(f"{gate}{opened}{last}: {text}{more}{'}' * len(sections)}")
    assert value_of(settings, path) == value
    assert value_of(settings, path) != value_of(load_text(GATES), path)


GATE_LISTS = [
    path
    for path, field in keys().items()
    if path[0] in ("validation", "quality_gates") and field.default == ()
]
STEP = {f"retry.strategy.{key}" for key in ("ask", "room", "session", "model", "models")}
"""All in the one row of VALUES."""
ELSEWHERE = {
    *STEP,
    "version",
    "extends",
    "triage.accept",
    "validation.timeout",
    "validation.parallel",
    "quality_gates.command",
}


def test_every_key_has_a_test_of_its_effect() -> None:
    kinds = {*GATE, "accept", "after", "inputs"}
    gates = {f"{'.'.join(path)}.{key}" for path in GATE_LISTS for key in kinds}
    reviews = {f"validation.review.{key}" for key in REVIEW}
    sections = {".".join(path[:-1]) for path in keys()}
    tested = {*VALUES, *gates, *reviews, *sections, *ELSEWHERE}
    assert {".".join(path) for path in keys()} - tested == set()


@pytest.mark.parametrize(
    ("every", "own", "accepts"),
    [("none", "baseline", True), ("baseline", "none", False), ("none", "none", False)],
)
def test_a_gates_accept_setting_overrides_the_general_one(
    every: str, own: str, *, accepts: bool
) -> None:
    text = (
        f"triage: {{baseline: main, accept: {every}}}\n"
        f"validation: {{lint: [a], test: [{{run: b, accept: {own}}}]}}"
    )
    assert [gate.accepts_baseline for gate in load_text(text).gates] == [
        every == "baseline",
        accepts,
    ]


def test_a_gate_names_the_gates_that_it_runs_after() -> None:
    gates = load_text("validation: {test: [a, {name: report, run: b, after: [a]}]}").gates
    assert [gate.after for gate in gates] == [(), ("a",)]


@pytest.mark.parametrize(
    ("after", "words"),
    [("lin", "'lin': no gate of that name"), ("report", "report would wait for itself")],
)
def test_an_impossible_order_of_gates_is_refused(after: str, words: str) -> None:
    first = "{name: lint, run: a, after: [report]}"
    text = f"validation: {{lint: [{first}], test: [{{name: report, run: b, after: [{after}]}}]}}"
    with pytest.raises(ConfigError, match=words):
        load_text(text)


def test_the_validation_timeout_applies_to_gates_without_their_own() -> None:
    text = (
        "validation: {timeout: 2m, lint: [a, {run: b, timeout: 3}], review: [{name: r, prompt: p}]}"
    )
    assert [gate.timeout_s for gate in load_text(text).gates] == [120, 3, 120]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("'90'", 90),
        ("0.5", 0.5),
        ("90s", 90),
        ("1.5s", 1.5),
        ("10m", 600),
        ("1h30m", 5400),
        ("1h30m5s", 5405),
        ("24h", 86400),
    ],
)
def test_durations_are_read_as_seconds_or_with_units(text: str, seconds: float) -> None:
    assert load_text(f"validation: {{timeout: {text}, lint: [a]}}").gates[0].timeout_s == seconds


def test_jobs_are_processors_or_the_given_number_or_one() -> None:
    assert load_text(GATES).jobs >= 1
    assert load_text("validation: {jobs: auto, test: [a]}").jobs == load_text(GATES).jobs
    assert load_text("validation: {parallel: false, jobs: 9, test: [a]}").jobs == 1


def test_gates_are_ordered_by_kind_then_as_written() -> None:
    text = """
quality_gates: [{name: lint, command: q1}, {name: other, command: q2, max_retries: 1}]
validation:
  custom: [{run: c, max_retries: 1}]
  build: [b]
  pre_commit: [p]
  test: [t1, t2]
  lint: [l]
  format: [f]
"""
    assert [(gate.kind.value, gate.run) for gate in load_text(text).gates] == [
        ("format", "f"),
        ("lint", "l"),
        ("lint", "q1"),
        ("test", "t1"),
        ("test", "t2"),
        ("pre-commit", "p"),
        ("build", "b"),
        ("custom", "c"),
        ("custom", "q2"),
    ]


@pytest.mark.parametrize(
    ("kind", "writes"),
    [("format", True), ("pre_commit", True), ("lint", False), ("test", False), ("build", False)],
)
def test_formatters_and_hooks_are_writers_unless_configured(kind: str, *, writes: bool) -> None:
    assert load_text(f"validation: {{{kind}: [a]}}").gates[0].writes is writes
    assert not load_text(f"validation: {{{kind}: [{{run: a, writes: false}}]}}").gates[0].writes


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("lint", Kind.LINT),
        ("pre-commit", Kind.PRE_COMMIT),
        ("pre_commit", Kind.PRE_COMMIT),
        ("vet", Kind.CUSTOM),
        ("review", Kind.CUSTOM),
    ],
)
def test_a_quality_gate_gets_its_kind_from_its_name(name: str, kind: Kind) -> None:
    (gate,) = load_text(f"quality_gates: [{{name: {name}, command: x}}]").gates
    assert (gate.kind, gate.name, gate.max_retries) == (kind, name, None)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("ruff check .", "ruff check"),
        ("ruff format --check .", "ruff format"),
        ("pytest -q", "pytest"),
        ("python -m pytest -q", "pytest"),
        ("uv run mypy .", "mypy"),
        ("uvx --with tox-uv tox -e types", "tox"),
        (".venv/bin/python -m pytest -q", "pytest"),
        ("/opt/venv/bin/python3 -W error -X dev -m pytest --cov=.", "pytest"),
        ("CI=1 npx eslint .", "eslint"),
        ("./scripts/check.sh --all", "check.sh"),
        ("cargo test --all", "cargo test"),
        ("npm run lint:all", "npm run lint:all"),
        ("CI=1 pnpm run --silent types -- --pretty", "pnpm run types"),
        ("pre-commit run --all-files", "pre-commit run"),
        ("go vet ./...", "go vet"),
        ("true", "true"),
        ("echo 'unclosed", "echo"),
        ("A=1", "A=1"),
        ("[ -d vendor ] || make vendor", "make vendor"),
        ("if [ -f .env ]; then ruff check .; fi", "ruff check"),
        ("if ! test -d a\nthen\n  mypy .\nfi", "mypy"),
        ("! grep -n bad f", "grep"),
        ("!(grep -n bad f)", "grep"),
        ("cd web && npx eslint .", "eslint"),
        ("export CI=1; cd a && (cd b; cargo test)", "cargo test"),
        ("for f in a b; do sh -n $f; done", "sh"),
        ("while read x; do tsc; done < list", "tsc"),
        ("test -e go", "test"),
        ('test -z "$(gofmt -l .)"', "gofmt"),
        ('test -z "$(gofmt -l . 2>&1 | tee /dev/stderr)"', "gofmt"),
        ('[ -z "$(git status --porcelain)" ]', "git status"),
        ("[ -f a ]", "["),
        ("python -c 'a; b'", "python"),
        ("cd tests && bash -ex ./unittest.sh a && git diff", "unittest.sh"),
        ("sh scripts/lint", "lint"),
        ("python -u tools/check.py --all", "check.py"),
        ("node --experimental-vm-modules node_modules/jest/bin/jest.js", "jest.js"),
        ("node --test", "node --test"),
        ("bash -c 'ruff check .'", "bash"),
        ("python -m", "python"),
        ("test -d a || exit 1; ruff check", "ruff check"),
        ("[ -f a ] || exit 1", "["),
        ("npm run then-do && x", "npm run then-do"),
    ],
)
def test_an_unnamed_gate_is_named_after_its_tool(command: str, name: str) -> None:
    assert short_name(command) == name


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("lint: [ruff check a, ruff check b]", ["ruff check", "ruff check 2"]),
        ("lint: [mypy ., {run: x, name: mypy}, mypy ./b]", ["mypy 2", "mypy", "mypy 3"]),
        ("lint: [a, {run: x, name: a 2}, a]", ["a", "a 2", "a 3"]),
    ],
)
def test_every_gate_has_a_name_of_its_own(text: str, names: list[str]) -> None:
    assert [gate.name for gate in load_text(f"validation: {{{text}}}").gates] == names


def test_gates_of_one_kind_may_be_named_after_it() -> None:
    text = "quality_gates: [{name: lint, command: a}, {name: lint, command: b}]"
    gates = load_text(text).gates
    assert [(gate.name, gate.kind) for gate in gates] == [("lint", "lint"), ("lint 2", "lint")]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("validation: {lint: [{run: x, name: n}, {run: y, name: n}]}", "1:55"),
        ("validation: {lint: [{run: x, name: n}], test: [{run: y, name: n}]}", "1:63"),
        ("quality_gates: [{name: vet, command: x}, {name: vet, command: y}]", "1:49"),
    ],
)
def test_two_gates_of_one_written_name_are_refused(text: str, place: str) -> None:
    with pytest.raises(ConfigError, match=rf"^test:{place}: .*\[0\] has the name .* as well"):
        load_text(text)


def test_a_prompt_text_may_name_a_kind_or_a_gate() -> None:
    text = "validation: {lint: [ruff check .]}\nprompt: {gates: {test: a, ruff check: b}}"
    assert load_text(text).prompt.gates == {"test": "a", "ruff check": "b"}


def test_a_gate_may_use_a_custom_parser() -> None:
    text = "validation: {lint: [{run: x, parser: mine}]}\nparsers: {mine: '(?P<message>.+)'}"
    assert load_text(text).gates[0].parser == "mine"


def test_every_agent_can_be_configured() -> None:
    assert set(AGENTS) <= set(BACKENDS)


def test_a_loaded_text_is_reported_under_its_given_name() -> None:
    assert load_text(GATES).sources == ()
    with pytest.raises(ConfigError, match=r"^HEAD:atlas\.yaml:1:1: unknown key x"):
        config.load_text(b"x: 1", "HEAD:atlas.yaml")


# --- warnings --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("retry: {max_ai_retry_attempts: 6}", "2:32", "more than 5 attempts"),
        ("quality_gates: [{name: x, command: x, max_retries: 9}]", "2:52", "more than 5 attempts"),
        ("agent: {extra_args: [sk-ant-api03-AAAAaaaa1111BBBBbbbb]}", "2", "a secret in plain text"),
        ("# password=hunter2", "2", "a secret in plain text"),
    ],
)
def test_an_unwise_setting_is_warned_about_with_its_place(
    tmp_path: Path, text: str, place: str, message: str
) -> None:
    root = project(tmp_path, GATES + text)
    (warning,) = load(root).warnings
    assert warning.startswith(f"{root}/.atlas/config.yaml:{place}: ")
    assert message in warning
    assert "AAAAaaaa1111" not in warning
    assert "hunter2" not in warning


def test_the_example_causes_no_warning() -> None:
    assert load_text(make_reference.example()).warnings == ()

"""Where a configuration comes from, which source wins, what is remembered."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from atlas_retry import config
from atlas_retry.agents.unavailable import INSIDE_AGENT
from atlas_retry.errors import ConfigError
from atlas_retry.model import Gate, Kind
from atlas_retry.process.tree import MARK_PREFIX
from atlas_retry.settings import CONFIGURATION_FILES, UNLIMITED_ATTEMPTS, attempts_allowed
from docs import make_reference
from tests.configurations import GATES, load, project, refusal, user_file

# --- discovery -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONFIGURATION_FILES)
@pytest.mark.parametrize("start", [".", "src/deep"])
def test_the_file_is_found_from_anywhere_in_the_repository(
    tmp_path: Path, name: str, start: str
) -> None:
    root = project(tmp_path, name=name)
    (root / "src" / "deep").mkdir(parents=True)
    settings = config.load(root / start, environ={}, overrides={})
    assert settings.sources == (str(root / name),)


def test_the_dot_folder_is_preferred_to_the_plain_file(tmp_path: Path) -> None:
    root = project(tmp_path)
    (root / "atlas.yaml").write_text("nonsense: true")
    assert load(root).sources == (str(root / ".atlas" / "config.yaml"),)


@pytest.mark.parametrize("name", [".atlas/config.yaml", "atlas.yaml"])
def test_two_files_of_one_name_are_refused_by_both_names(tmp_path: Path, name: str) -> None:
    root = project(tmp_path, name=name)
    other = project(tmp_path, name=name.replace(".yaml", ".yml")) / name.replace(".yaml", ".yml")
    (root / "src").mkdir()
    error = refusal(root / "src")
    assert error.exit_code == 2
    assert str(error).startswith(f"{root / name}: {other} is there as well")
    assert "delete one" in (error.remedy or "")


def test_a_users_file_with_the_other_suffix_is_not_ignored(tmp_path: Path) -> None:
    user = user_file(tmp_path, "batch: {jobs: 7}").rename(
        tmp_path / "home/.config/atlas/config.yml"
    )
    error = refusal(project(tmp_path))
    assert str(error) == f"{user}: is not read"
    assert error.remedy == f"mv {user} {user.with_suffix('.yaml')}"


# --- a file that is named --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ci/strict.yaml", "../elsewhere.yaml"])
def test_a_named_file_is_read_instead_and_applies_to_the_root(tmp_path: Path, name: str) -> None:
    root = project(tmp_path, "oops: 1")
    (root / "src").mkdir()
    file = (root / name).resolve()
    file.parent.mkdir(exist_ok=True)
    file.write_text("validation: {lint: [{run: x, cwd: src}]}")
    settings = load(root / "src", None, {config.NAMED: str(file)})
    assert settings.sources == (str(file),)
    assert [gate.cwd for gate in settings.gates] == ["src"]


def test_a_named_file_where_it_would_be_found_applies_to_its_folder(tmp_path: Path) -> None:
    root = project(tmp_path)
    project(tmp_path, "validation: {lint: [x]}", "services/api/.atlas/config.yml")
    settings = load(root, None, {config.NAMED: "services/api/.atlas/config.yml"})
    assert [gate.cwd for gate in settings.gates] == ["services/api"]


def test_a_named_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"/project/none\.yaml: cannot be read: No such file"):
        load(project(tmp_path), None, {config.NAMED: "none.yaml"})


def test_the_nearest_file_is_used_and_its_gates_run_in_its_folder(tmp_path: Path) -> None:
    root = project(tmp_path)
    project(tmp_path, "validation: {lint: [{run: make, cwd: sub}]}", "services/api/atlas.yaml")
    (root / "services" / "api" / "sub").mkdir()
    settings = load(root / "services" / "api")
    assert [gate.cwd for gate in settings.gates] == ["services/api/sub"]


def test_the_search_stops_at_the_repository_root(tmp_path: Path) -> None:
    (tmp_path / "atlas.yaml").write_text(GATES)
    (tmp_path / "project" / ".git").mkdir(parents=True)
    error = refusal(tmp_path / "project")
    assert f"{tmp_path}/atlas.yaml" not in error.message


def test_the_root_of_a_linked_worktree_is_recognised(tmp_path: Path) -> None:
    root = project(tmp_path)
    (root / ".git").rmdir()
    (root / ".git").write_text("gitdir: /elsewhere")
    (root / "src").mkdir()
    assert load(root / "src").gates


def test_a_missing_configuration_is_reported_with_paths_and_an_example(
    tmp_path: Path,
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "src").mkdir()
    with pytest.raises(ConfigError) as caught:
        config.load(tmp_path / "src", environ={}, overrides={})
    for path in ("src/.atlas/config.yaml", "src/atlas.yaml", ".atlas/config.yaml", "atlas.yaml"):
        assert f"{tmp_path}/{path}" in caught.value.message
    remedy = caught.value.remedy or ""
    assert "atlas init" in remedy
    shown = remedy.partition(":\n")[2]
    assert config.load_text(shown.encode(), "the example").gates


def test_a_user_file_is_not_a_project_configuration(tmp_path: Path) -> None:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    user_file(tmp_path, GATES)
    assert "no configuration" in refusal(tmp_path / "project").message


def test_the_user_file_is_read_from_xdg_config_home(tmp_path: Path) -> None:
    root = project(tmp_path)
    (tmp_path / "xdg" / "atlas").mkdir(parents=True)
    (tmp_path / "xdg" / "atlas" / "config.yaml").write_text("batch: {jobs: 7}")
    assert load(root, {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}).batch.jobs == 7


def test_a_relative_xdg_config_home_is_ignored(tmp_path: Path) -> None:
    user_file(tmp_path, "batch: {jobs: 7}")
    assert load(project(tmp_path), {"XDG_CONFIG_HOME": "xdg"}).batch.jobs == 7


# --- precedence ------------------------------------------------------------------------------


def test_flags_override_variables_override_project_override_user_file(tmp_path: Path) -> None:
    text = "context: {max_chars: 2001, max_chars_per_error: 201}\nbatch: {jobs: 3}\n"
    root = project(tmp_path, GATES + text + "retry: {flake_reruns: 3}")
    user_file(tmp_path, "retry: {flake_reruns: 2, max_minutes: 2}\n" + text.replace("1", "9"))
    variables = {"ATLAS_CONTEXT__MAX_CHARS": "3001", "ATLAS_BATCH__JOBS": "4"}
    settings = load(root, variables, {"batch.jobs": 5})
    assert settings.batch.jobs == 5
    assert settings.context.max_chars == 3001
    assert settings.context.max_chars_per_error == 201
    assert settings.retry.flake_reruns == 3
    assert settings.retry.budget.wall_s == 120
    assert settings.retry.budget.cost_usd == 5


def test_lists_replace_and_mappings_merge_by_key(tmp_path: Path) -> None:
    root = project(tmp_path, "validation: {lint: [a]}\nprompt: {gates: {lint: project}}")
    user_file(
        tmp_path,
        "validation: {lint: [b, c], test: [d]}\nprompt: {gates: {lint: user, test: user}}",
    )
    settings = load(root)
    assert [gate.run for gate in settings.gates] == ["a", "d"]
    assert dict(settings.prompt.gates) == {"lint": "project", "test": "user"}


def test_an_empty_mapping_overrides_nothing(tmp_path: Path) -> None:
    user_file(tmp_path, "retry: {flake_reruns: 4}")
    assert load(project(tmp_path, GATES + "retry: {}")).retry.flake_reruns == 4


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("ATLAS_RETRY__MAX_AI_RETRY_ATTEMPTS", "5", 5),
        ("ATLAS_VALIDATION__MAX_AI_RETRY_ATTEMPTS", "5", 5),
        ("ATLAS_EXECUTOR__QUALITY_GATE_MAX_RETRIES", "5", 5),
        ("ATLAS_RETRY__MAX_AI_RETRY_ATTEMPTS", "null", None),
        ("ATLAS_RETRY", '{"max_ai_retry_attempts": 5}', 5),
    ],
)
def test_a_variable_is_read_by_the_type_of_its_key(
    tmp_path: Path, name: str, value: str, expected: int | None
) -> None:
    assert load(project(tmp_path), {name: value}).retry.budget.attempts == expected


def test_variables_can_hold_booleans_durations_lists_and_mappings(tmp_path: Path) -> None:
    settings = load(
        project(tmp_path),
        {
            "ATLAS_RETRY__AI_RETRY_ENABLED": "false",
            "ATLAS_RETRY__MAX_COST_USD": "0.5",
            "ATLAS_AGENT__TIMEOUT": "1h30m",
            "ATLAS_AGENT__IDLE_TIMEOUT": "90",
            "ATLAS_AGENT__MODELS": '["opus"]',
            "ATLAS_AGENT__PATH": "123",
            "ATLAS_VALIDATION__LINT": '["a", {"run": "b", "required": false}]',
            "ATLAS_PROMPT__GATES": '{"test": "hm"}',
            "ATLAS_RETRY__ON_EXHAUSTED": "keep",
        },
    )
    assert not settings.retry.ai_retry_enabled
    assert settings.ai_retry_origin == "ATLAS_RETRY__AI_RETRY_ENABLED"
    assert settings.retry.budget.cost_usd == 0.5
    assert (settings.agent.timeout_s, settings.agent.idle_timeout_s) == (5400, 90)
    assert (settings.agent.models, settings.agent.path) == (("opus",), "123")
    assert [(gate.run, gate.required) for gate in settings.gates[:2]] == [("a", True), ("b", False)]
    assert settings.prompt.gates == {"test": "hm"}
    assert settings.retry.on_exhausted == "keep"


@pytest.mark.parametrize("name", ["ATLAS_HOME", INSIDE_AGENT, f"{MARK_PREFIX}abc", "ATLASSIAN_X"])
def test_variables_that_are_not_keys_are_ignored(tmp_path: Path, name: str) -> None:
    assert load(project(tmp_path), {name: str(tmp_path / "state")}).gates


def test_the_source_of_ai_retry_enabled_is_known(tmp_path: Path) -> None:
    root = project(tmp_path)
    assert load(root).ai_retry_origin == "the defaults"
    root = project(tmp_path, GATES + "retry:\n  ai_retry_enabled: false")
    assert load(root).ai_retry_origin == f"{root}/.atlas/config.yaml:3"


# --- how often a gate may be tried -----------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "own", "flag", "configured", "allowed"),
    [
        (Kind.TEST, None, None, None, 3),
        (Kind.REVIEW, None, None, None, 2),
        (Kind.BUILD, None, None, None, 1),
        (Kind.LINT, None, None, None, 3),
        (Kind.CUSTOM, None, None, None, 3),
        (Kind.BUILD, None, None, 4, 4),
        (Kind.BUILD, None, 5, 4, 5),
        (Kind.BUILD, 6, 5, 4, 6),
        (Kind.TEST, 0, 5, 4, 0),
        (Kind.TEST, None, 0, 4, 0),
        (Kind.TEST, None, None, 0, 0),
    ],
)
def test_the_gates_own_limit_comes_before_flag_configuration_and_default(
    kind: Kind, own: int | None, flag: int | None, configured: int | None, allowed: int
) -> None:
    gate = Gate(name="g", kind=kind, max_retries=own)
    assert attempts_allowed(gate, flag=flag, configured=configured) == allowed


@pytest.mark.parametrize(
    ("text", "configured"),
    [
        ("", None),
        ("retry: {flake_reruns: 2}", None),
        ("retry: {max_ai_retry_attempts: 3}", 3),
        ("executor: {quality_gate_max_retries: 0}", 0),
        ("retry: {max_ai_retry_attempts: null}", UNLIMITED_ATTEMPTS),
    ],
)
def test_a_default_is_not_a_configured_limit(
    tmp_path: Path, text: str, configured: int | None
) -> None:
    assert load(project(tmp_path, GATES + text)).attempts_configured == configured


# --- remembering -----------------------------------------------------------------------------

PROBE = """
import json, sys
from pathlib import Path
from atlas_retry import config
settings = config.load(Path(sys.argv[1]), environ=json.loads(sys.argv[2]), overrides={})
heavy = {"pydantic", "yaml", "rich", "anthropic", "asyncio"}
print(json.dumps([settings.batch.jobs, sorted(heavy & set(sys.modules))]))
"""


def probe(root: Path, **variables: str) -> tuple[int, bool]:
    """`batch.jobs` as a fresh process reads it, and whether it needed YAML."""
    environ = {"HOME": str(root.parent / "home"), **variables}
    done = subprocess.run(
        [sys.executable, "-c", PROBE, str(root), json.dumps(environ)],
        check=True,
        capture_output=True,
        env={"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    jobs, heavy = json.loads(done.stdout)
    return jobs, bool(heavy)


@pytest.mark.parametrize(
    "agent", ["", "agent: {backend: command, command: 'true'}", "agent: {backend: codex}"]
)
def test_a_cached_configuration_is_loaded_without_yaml(tmp_path: Path, agent: str) -> None:
    root = project(tmp_path, GATES + "batch: {jobs: 3}\n" + agent)
    assert probe(root) == (3, True)
    assert probe(root) == (3, False)


def test_the_cached_configuration_equals_the_first_read(tmp_path: Path) -> None:
    root = project(tmp_path, make_reference.example())
    assert load(root) == load(root)


def test_a_change_of_any_source_invalidates_the_cache(tmp_path: Path) -> None:
    root = project(tmp_path)
    assert load(root).batch.jobs == 2
    user_file(tmp_path, "batch: {jobs: 3}")
    assert load(root).batch.jobs == 3
    project(tmp_path, GATES + "batch: {jobs: 4}")
    assert load(root).batch.jobs == 4
    assert load(root, {"ATLAS_BATCH__JOBS": "5"}).batch.jobs == 5
    assert load(root, None, {"batch.jobs": 6}).batch.jobs == 6
    assert load(root).batch.jobs == 4


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff", b'{"digest": "", "settings": {}}'])
def test_a_damaged_cache_is_ignored(tmp_path: Path, damage: bytes) -> None:
    root = project(tmp_path)
    before = load(root)
    (kept,) = (tmp_path / "home/.local/state/atlas/cache").iterdir()
    kept.write_bytes(damage)
    assert load(root) == before


def test_a_configuration_loads_without_a_writable_cache(tmp_path: Path) -> None:
    root = project(tmp_path)
    (tmp_path / "home").write_text("in the way")
    assert load(root).gates
    assert config.load(root, environ={}, overrides={}).gates


def test_a_refused_configuration_is_not_cached(tmp_path: Path) -> None:
    root = project(tmp_path, GATES + "oops: 1")
    assert refusal(root).message == refusal(root).message


def test_the_cache_is_private_and_one_file_per_project(tmp_path: Path) -> None:
    root = project(tmp_path)
    for jobs in range(2, 6):
        load(root, {"ATLAS_BATCH__JOBS": str(jobs)})
    folder = tmp_path / "home/.local/state/atlas/cache"
    assert folder.stat().st_mode & 0o077 == 0
    assert len(list(folder.iterdir())) == 1


def test_a_missing_gate_folder_is_reported_despite_the_cache(tmp_path: Path) -> None:
    root = project(tmp_path, "validation: {test: [{run: pytest, cwd: sub}]}")
    (root / "sub").mkdir()
    load(root)
    (root / "sub").rmdir()
    assert "sub is not a folder" in refusal(root).message

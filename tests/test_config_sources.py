"""The sources of a configuration: what each may say, which one wins, where a value came from."""

from pathlib import Path

import pytest

from atlas_retry import config
from atlas_retry.errors import ConfigError
from tests.configurations import GATES, load, project, refusal, user_file


def origins(root: Path, **variables: str) -> dict[str, tuple[str, str]]:
    """Value and origin of every key, with the home beside the repository."""
    environ = {"HOME": str(root.parent / "home"), **variables}
    explained = config.explain(root, environ=environ, overrides={})
    return {row.key: (row.value, row.origin) for row in explained}


# --- the environment -------------------------------------------------------------------------


def test_only_the_environment_that_is_passed_in_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATLAS_BATCH__JOBS", "9")
    monkeypatch.setenv("ATLAS_NO_SUCH_KEY", "1")
    root = project(tmp_path)
    assert load(root).batch.jobs == 2
    assert load(root, {"ATLAS_BATCH__JOBS": "7"}).batch.jobs == 7


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [("models", '["opus"]', ("opus",)), ("effort", "[]", ()), ("path", "null", None)],
)
def test_a_variable_may_hold_null_or_a_list(
    tmp_path: Path, name: str, text: str, value: object
) -> None:
    found = load(project(tmp_path), {f"ATLAS_AGENT__{name.upper()}": text})
    assert getattr(found.agent, name) == value


def test_a_variable_may_set_one_key_of_a_mapping(tmp_path: Path) -> None:
    root = project(tmp_path, GATES + "prompt: {gates: {lint: a}}")
    found = load(root, {"ATLAS_PROMPT__GATES__TEST": "b"})
    assert dict(found.prompt.gates) == {"lint": "a", "test": "b"}


def test_a_variable_of_a_section_and_one_of_its_key_are_merged(tmp_path: Path) -> None:
    variables = {"ATLAS_RETRY": '{"flake_reruns": 4}', "ATLAS_RETRY__MAX_MINUTES": "2"}
    found = load(project(tmp_path), variables)
    assert (found.retry.flake_reruns, found.retry.max_minutes) == (4, 2)


@pytest.mark.parametrize("name", ["ATLAS_RETYR__X", "ATLAS_RETRY__X", "ATLAS_EXECUTOR__X"])
def test_a_variable_of_no_key_ends_with_exit_2(tmp_path: Path, name: str) -> None:
    error = refusal(project(tmp_path), {name: "1"})
    assert error.exit_code == 2
    assert str(error).splitlines()[1] == f"    {name}=1"


# --- other spellings, across sources ---------------------------------------------------------

SPELLINGS = [
    ("validation: {lint_commands: [u]}", "validation: {lint: [p]}"),
    ("validation: {lint: [u]}", "validation: {lint_commands: [p]}"),
    ("validation: {commands: {lint: [u]}}", "validation: {lint_commands: [p]}"),
]


@pytest.mark.parametrize(("user", "text"), SPELLINGS)
def test_a_project_overrides_the_users_file_in_any_spelling(
    tmp_path: Path, user: str, text: str
) -> None:
    user_file(tmp_path, user)
    root = project(tmp_path, text)
    assert [gate.run for gate in load(root).gates] == ["p"]
    assert origins(root)["validation.lint"] == ("[p]", f"{root}/.atlas/config.yaml:1")


def test_a_variable_overrides_a_file_in_any_spelling(tmp_path: Path) -> None:
    root = project(tmp_path, GATES + "executor: {quality_gate_max_retries: 1}")
    found = load(root, {"ATLAS_VALIDATION__MAX_AI_RETRY_ATTEMPTS": "2"})
    assert found.retry.max_ai_retry_attempts == 2


# --- origins ---------------------------------------------------------------------------------


def test_each_value_has_the_origin_of_the_source_that_won(tmp_path: Path) -> None:
    user = user_file(
        tmp_path, "validation:\n  lint: [{run: u, timeout: 9}]\nretry:\n  max_minutes: 2\n"
    )
    root = project(tmp_path, "validation:\n  lint:\n    - run: p\nretry:\n  flake_reruns: 3\n")
    shown = origins(root, ATLAS_PROMPT__GATES__LINT="x")
    file = f"{root}/.atlas/config.yaml"
    assert shown["validation.lint[0].run"] == ("p", f"{file}:3")
    assert "validation.lint[0].timeout" not in shown
    assert shown["retry.flake_reruns"] == ("3", f"{file}:5")
    assert shown["retry.max_minutes"] == ("2", f"{user}:4")
    assert shown["prompt.gates.lint"] == ("x", "ATLAS_PROMPT__GATES__LINT")
    assert shown["retry.max_cost_usd"][1] == "default"


def test_values_of_an_anchor_have_the_place_where_they_are_written(tmp_path: Path) -> None:
    text = "validation:\n  lint:\n    - &base {run: a, timeout: ten}\n    - {<<: *base, run: b}\n"
    lines = [line for line in str(refusal(project(tmp_path, text))).splitlines() if ": " in line]
    assert lines[0].partition(".yaml:")[2].startswith("3:31: validation.lint[0].timeout")


# --- YAML ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "word",
    ["yes", "no", "on", "off", "y", "1:30", "190:20:30", "2024-01-01", "=", "1.2.3", "!!str 3"],
)
def test_what_is_text_in_yaml_1_2_is_read_as_text(tmp_path: Path, word: str) -> None:
    root = project(tmp_path, f"validation: {{lint: [{word}]}}")
    assert [gate.run for gate in load(root).gates] == [word.removeprefix("!!str ")]


@pytest.mark.parametrize(
    ("word", "value"), [("12", 12), ("+12", 12), ("0xC", 12), ("12.5", 12.5), (".5", 0.5)]
)
def test_numbers_of_yaml_1_2_are_numbers(tmp_path: Path, word: str, value: float) -> None:
    assert (
        load(project(tmp_path, f"{GATES}retry: {{max_cost_usd: {word}}}")).retry.max_cost_usd
        == value
    )


@pytest.mark.parametrize("word", ["true", "True", "TRUE"])
def test_a_switch_may_be_written_in_three_ways(tmp_path: Path, word: str) -> None:
    root = project(tmp_path, f"{GATES}batch: {{cascade_detection: {{enabled: {word}}}}}")
    assert load(root).batch.cascade_detection.enabled is True


# --- each source is checked by itself -----------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    ["retry: 3", "retry: {flake_reruns: many}", "validation: {test: [3]}", "retry: {oops: 1}"],
)
def test_a_wrong_users_file_is_refused_whatever_the_project_sets(
    tmp_path: Path, wrong: str
) -> None:
    user = user_file(tmp_path, wrong)
    root = project(tmp_path, GATES + "retry: {flake_reruns: 1}")
    assert str(refusal(root)).startswith(f"{user}:1:")


def test_a_wrong_value_is_refused_although_a_flag_overrides_it(tmp_path: Path) -> None:
    root = project(tmp_path, GATES + "batch: {jobs: many}")
    with pytest.raises(ConfigError, match=r"config\.yaml:2:15: batch\.jobs: expected a whole"):
        load(root, {"ATLAS_BATCH__JOBS": "3"}, {"batch.jobs": 4})


def test_the_problems_of_all_sources_are_reported_at_once(tmp_path: Path) -> None:
    user = user_file(tmp_path, "batch: {jobs: 0}")
    root = project(tmp_path, GATES + "oops: 1")
    error = refusal(root, {"ATLAS_OOPS": "1"})
    places = [line.partition(": ")[0] for line in str(error).splitlines()[::2]]
    assert places == ["ATLAS_OOPS", f"{root}/.atlas/config.yaml:2:1", f"{user}:1:15"]


def test_aliases_are_known_in_the_json_of_a_variable(tmp_path: Path) -> None:
    found = load(project(tmp_path), {"ATLAS_VALIDATION": '{"lint_commands": ["a"]}'})
    assert [gate.run for gate in found.gates] == ["a", "pytest"]


@pytest.mark.parametrize(
    ("word", "value"), [("017", 17), ("0o17", 15), ("1e1", 10), ("1E+1", 10), ("5.", 5)]
)
def test_numbers_are_those_of_yaml_1_2_and_not_of_1_1(
    tmp_path: Path, word: str, value: float
) -> None:
    root = project(tmp_path, f"{GATES}retry: {{max_cost_usd: {word}}}")
    assert load(root).retry.max_cost_usd == value


@pytest.mark.parametrize("word", ["1_000", "0b11", "-0x1", "1:30"])
def test_a_number_of_yaml_1_1_alone_is_text(tmp_path: Path, word: str) -> None:
    error = refusal(project(tmp_path, f"{GATES}retry: {{max_cost_usd: {word}}}"))
    assert f"found '{word}'" in error.message


# --- files that extend others -------------------------------------------------------------------


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_an_extended_file_is_below_the_file_that_names_it(tmp_path: Path) -> None:
    shared = write(tmp_path / "shared.yaml", GATES + "retry: {flake_reruns: 3, max_minutes: 7}")
    root = project(tmp_path, "extends: ../../shared.yaml\nretry: {flake_reruns: 2}")
    settings = load(root)
    assert [gate.run for gate in settings.gates] == ["pytest"]
    assert (settings.retry.flake_reruns, settings.retry.max_minutes) == (2, 7)
    assert settings.sources == (f"{root}/.atlas/config.yaml", str(shared))
    assert origins(root)["retry.max_minutes"] == ("7", f"{shared}:2")


def test_of_a_list_the_later_file_wins_and_each_may_extend_others(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", "batch: {jobs: 3}\nretry: {flake_reruns: 3}")
    write(tmp_path / "b.yaml", "extends: deep/c.yaml\nbatch: {jobs: 4}")
    write(tmp_path / "deep" / "c.yaml", "batch: {jobs: 5}\ncontext: {max_chars: 5000}")
    settings = load(project(tmp_path, GATES + "extends: [../../a.yaml, ../../b.yaml]"))
    assert (settings.batch.jobs, settings.retry.flake_reruns) == (4, 3)
    assert settings.context.max_chars == 5000


def test_a_users_file_is_below_what_a_project_extends(tmp_path: Path) -> None:
    user_file(tmp_path, "extends: ~/mine.yaml\nbatch: {jobs: 3}")
    write(tmp_path / "home" / "mine.yaml", "batch: {jobs: 4}\nretry: {flake_reruns: 4}")
    write(tmp_path / "shared.yaml", "batch: {jobs: 5}")
    settings = load(project(tmp_path, GATES + "extends: ../../shared.yaml"))
    assert (settings.batch.jobs, settings.retry.flake_reruns) == (5, 4)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("extends: none.yaml", "2:10", "none.yaml: cannot be read"),
        ("extends: [shared.yaml, none.yaml]", "2:24", "none.yaml: cannot be read"),
        ("extends: config.yaml", "2:10", "config.yaml would extend itself"),
        ("extends: 3", "2:10", "a path or a list of paths, found 3"),
        ("extends: [[]]", "2:10", "a path or a list of paths"),
        ("extends: ..", "2:10", "not a regular file but a directory"),
    ],
)
def test_a_file_that_cannot_be_extended_is_refused_where_it_is_named(
    tmp_path: Path, text: str, place: str, words: str
) -> None:
    root = project(tmp_path, GATES + text)
    write(root / ".atlas" / "shared.yaml", "")
    error = refusal(root)
    assert str(error).startswith(f"{root}/.atlas/config.yaml:{place}: ")
    assert words in error.message


def test_a_cycle_is_refused_where_it_closes(tmp_path: Path) -> None:
    root = project(tmp_path, GATES + "extends: shared.yaml")
    shared = write(root / ".atlas" / "shared.yaml", "extends: config.yaml")
    assert str(refusal(root)).startswith(f"{shared}:1:10: {root}/.atlas/config.yaml would extend")


def test_a_wrong_value_in_an_extended_file_has_its_place(tmp_path: Path) -> None:
    root = project(tmp_path, GATES + "extends: shared.yaml\nbatch: {jobs: 3}")
    shared = write(root / ".atlas" / "shared.yaml", "batch: {jobs: many}")
    assert str(refusal(root)).startswith(f"{shared}:1:15: batch.jobs: expected a whole")


def test_a_link_out_of_the_repository_is_not_extended(tmp_path: Path) -> None:
    root = project(tmp_path, GATES + "extends: shared.yaml")
    write(tmp_path / "shared.yaml", "batch: {jobs: 3}")
    (root / ".atlas" / "shared.yaml").symlink_to(tmp_path / "shared.yaml")
    assert "a link out of the repository" in refusal(root).message


def test_a_variable_names_the_file_as_the_flag_does(tmp_path: Path) -> None:
    root = project(tmp_path)
    strict = write(root / "ci" / "strict.yaml", "validation: {test: [tox]}")
    environ = {config.FILE_VARIABLE: "ci/strict.yaml"}
    assert [gate.run for gate in load(root, environ).gates] == ["tox"]
    assert load(root, environ).sources == (str(strict),)
    overrides = config.naming(root / ".atlas" / "config.yaml")
    named = config.load(root, environ=environ, overrides=overrides)
    assert [gate.run for gate in named.gates] == ["pytest"]
    strict.unlink()
    assert "cannot be read" in refusal(root, environ).message


def test_files_that_extend_each_other_many_times_are_read_once(tmp_path: Path) -> None:
    for number in range(40):  # 2^40 readings, if each were read as often as it is named
        write(tmp_path / f"{number}.yaml", f"extends: [{number + 1}.yaml, ./{number + 1}.yaml]")
    write(tmp_path / "40.yaml", "batch: {jobs: 3}")
    assert load(project(tmp_path, GATES + "extends: ../../0.yaml")).batch.jobs == 3


def test_a_budget_is_refused_in_what_a_repository_extends(tmp_path: Path) -> None:
    shared = write(tmp_path / "shared.yaml", "budgets: {day: 3}")
    root = project(tmp_path, GATES + "extends: ../../shared.yaml")
    assert str(refusal(root)).startswith(f"{shared}:1:16: budgets.day: a repository cannot set")


def test_a_variable_cannot_extend(tmp_path: Path) -> None:
    error = refusal(project(tmp_path), {"ATLAS_EXTENDS": "other.yaml"})
    assert str(error).startswith("ATLAS_EXTENDS: extends: only a file can extend others")


def test_a_change_of_an_extended_file_invalidates_the_cache(tmp_path: Path) -> None:
    shared = write(tmp_path / "shared.yaml", "batch: {jobs: 3}")
    root = project(tmp_path, GATES + "extends: ../../shared.yaml")
    assert load(root).batch.jobs == load(root).batch.jobs == 3
    write(shared, "batch: {jobs: 4}")
    assert load(root).batch.jobs == 4
    shared.unlink()
    assert "cannot be read" in refusal(root).message

"""The configuration explained: example, effective values, JSON Schema."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from atlas_retry import config
from atlas_retry.config.keys import keys
from atlas_retry.config.sources import SAME
from atlas_retry.diagnostics import REPORT_FORMATS
from atlas_retry.errors import ConfigError
from docs import make_reference
from tests.configurations import GATES, project, user_file

CONFIGURATION = (Path(__file__).parents[1] / "docs" / "configuration.md").read_text("utf-8")


def test_the_example_explains_every_key() -> None:
    text = make_reference.example()
    for path in keys():
        assert re.search(rf"^\s*(#\s*)?{path[-1]}:", text, re.MULTILINE), path


@pytest.mark.parametrize("name", REPORT_FORMATS)
def test_the_key_of_a_report_names_every_format(name: str) -> None:
    assert re.search(rf"^\| `report` .*\b{name}[,.]", CONFIGURATION, re.MULTILINE)


def test_the_example_holds_the_defaults_and_shows_gates() -> None:
    example = config.load_text(make_reference.example().encode(), "example")
    plain = config.load_text(GATES.encode(), "plain")
    assert {gate.kind for gate in example.gates} >= {"format", "lint", "test", "pre-commit"}
    assert (example.agent, example.context, example.guard, example.batch) == (
        plain.agent,
        plain.context,
        plain.guard,
        plain.batch,
    )
    assert example.retry.budget == plain.retry.budget


def test_lines_of_the_example_have_at_most_100_characters() -> None:
    assert max(map(len, make_reference.example().splitlines())) <= 100


def rows(tmp_path: Path, text: str, **variables: str) -> dict[str, tuple[str, str]]:
    environ = {"HOME": str(tmp_path / "home"), **variables}
    flags = {"agent.models": ["opus"]}
    explained = config.explain(project(tmp_path, text), environ=environ, overrides=flags)
    return {row.key: (row.value, row.origin) for row in explained}


def test_every_value_is_shown_with_its_source(tmp_path: Path) -> None:
    user = user_file(tmp_path, "batch:\n  jobs: 3")
    text = "validation:\n  test: [{run: pytest, timeout: 10m}]\n  max_ai_retry_attempts: 4\n"
    shown = rows(tmp_path, text, ATLAS_CONTEXT__MAX_CHARS="4000", ATLAS_VALIDATION__LINT='["a"]')
    file = f"{tmp_path}/project/.atlas/config.yaml"
    assert shown["batch.jobs"] == ("3", f"{user}:2")
    assert shown["validation.test[0].timeout"] == ("10m", f"{file}:2")
    assert shown["retry.max_ai_retry_attempts"] == ("4", f"{file}:3")
    assert shown["context.max_chars"] == ("4000", "ATLAS_CONTEXT__MAX_CHARS")
    assert shown["validation.lint"] == ("[a]", "ATLAS_VALIDATION__LINT")
    assert shown["agent.models"] == ("[opus]", "the command line")
    assert shown["retry.on_exhausted"] == ("best", "default")
    assert shown["agent.session"] == ("[new, resume, new]", "default")


def test_every_key_is_shown(tmp_path: Path) -> None:
    shown = {re.sub(r"\[\d+\]", "", key) for key in rows(tmp_path, GATES)}
    sections = {path[:-1] for path in keys()}
    gates = ("validation", "quality_gates")
    lists = {path[:2] for path in sections if path == ("retry", "strategy")}  # null by default
    outer = {path for path in keys() if path not in sections and path[0] not in gates}
    scalars = {path for path in outer if path[:2] not in lists}
    assert {".".join(path) for path in scalars} <= shown


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    shown = rows(
        tmp_path, "validation: {test: [{run: a, env: {API_KEY: sk-ant-abc1234567890abcdefghij}}]}"
    )
    assert shown["validation.test[0].env.API_KEY"][0] == "[redacted:anthropic-key]"


def test_a_shown_value_can_be_read_back(tmp_path: Path) -> None:
    text = "validation: {test: [{run: 'a: b # c', env: {A: '1', B: 'true'}}]}"
    shown = rows(tmp_path, text)
    assert yaml.safe_load(shown["validation.test[0].run"][0]) == "a: b # c"
    assert yaml.safe_load(shown["validation.test[0].env.A"][0]) == "1"


# --- JSON Schema -----------------------------------------------------------------------------


def subschema(schema: dict[str, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
    node = schema
    for name in path:
        node = node["properties"][name]
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    return node


@pytest.mark.parametrize(("old", "new"), SAME.items(), ids=[".".join(map(str, k)) for k in SAME])
def test_old_and_new_spelling_have_the_same_schema(
    old: tuple[str | int, ...], new: tuple[str | int, ...]
) -> None:
    assert subschema(config.schema(), old) == subschema(config.schema(), new)


def test_the_schema_refuses_unknown_keys_and_explains_the_others() -> None:
    schema = config.schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["additionalProperties"] is False
    flake_reruns = subschema(schema, ("retry", "flake_reruns"))
    assert flake_reruns.items() >= {
        ("type", "integer"),
        ("minimum", 0),
        ("maximum", 10),
        ("default", 1),
    }
    assert flake_reruns["description"].startswith("Times a failed test gate is run again")


def test_the_schema_accepts_a_gate_as_text_or_mapping() -> None:
    items = subschema(config.schema(), ("validation", "lint"))["items"]
    assert [member.get("type", member.get("$ref")) for member in items["oneOf"]] == [
        "string",
        "#/$defs/CommandGate",
    ]


@pytest.mark.parametrize(
    "text",
    [
        make_reference.example(),
        "validation: {lint_commands: [a], test: [{run: b, timeout: 5}]}",
        "extends: [a.yaml]",
        "executor: {quality_gate_max_retries: null}",
        "retry: {strategy: [{ask: fix, models: {lint: haiku}}]}",
    ],
)
def test_the_schema_accepts_what_can_be_read(text: str) -> None:
    Draft202012Validator(config.schema()).validate(yaml.safe_load(text))


@pytest.mark.parametrize(
    "text",
    [
        "validation: {lint: [3]}",
        "agent: {models: []}",
        "batch: {jobs: 0}",
        "version: 2",
        "oops: 1",
        "retry: {strategy: [{models: {lnt: haiku}}]}",
    ],
)
def test_the_schema_refuses_what_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        config.load_text(text.encode(), "text")
    assert not Draft202012Validator(config.schema()).is_valid(yaml.safe_load(text))

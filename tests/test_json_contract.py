"""`--json`: one document with its schema on standard output, whatever happened."""

import json
from typing import Any

import jsonschema
import pytest

from atlas_retry.cli.documents import schema
from tests.projects import FIXED, Project, atlas

PUBLISHED = jsonschema.Draft202012Validator(schema())


def document(text: str) -> dict[str, Any]:
    """The only document in a text, checked by the published schema."""
    found: dict[str, Any] = json.loads(text)
    PUBLISHED.validate(found)
    return found


@pytest.fixture
def fixed(project: Project) -> Project:
    project.attempt(1, {"calc.py": FIXED})
    assert atlas(project, "retry", ".", "--ai-fix").code == 0
    return project


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("validate", "atlas.report/1"),
        ("validate --list", "atlas.gates/1"),
        ("init --print --no-try", "atlas.init/1"),
        ("guard . --base HEAD", "atlas.guard/1"),
        ("config show", "atlas.configuration/1"),
        ("config check", "atlas.configuration-check/1"),
        ("log", "atlas.log/1"),
        ("log RUN", "atlas.timeline/1"),
        ("diff RUN", "atlas.diff/1"),
        ("pick RUN 1", "atlas.restored/1"),
        ("undo RUN", "atlas.restored/1"),
        ("deliver RUN --patch fix.patch", "atlas.delivery/1"),
        ("prune --dry-run", "atlas.prune/1"),
        ("status", "atlas.status/1"),
        ("stats", "atlas.stats/1"),
        ("learnings list", "atlas.learnings/1"),
        ("workspace list", "atlas.workspaces/1"),
        ("resume --all", "atlas.batch/1"),
    ],
)
def test_every_command_prints_one_document_of_its_schema(
    line: str, name: str, fixed: Project
) -> None:
    run = atlas(fixed, "log").out.split()[0]
    ended = atlas(fixed, *line.replace("RUN", run).split(), "--json")
    assert ended.code == 0, ended.err
    assert document(ended.out)["schema"] == name


@pytest.mark.parametrize(
    "line",
    [
        "validate --nope",
        "validate nowhere",
        "retry --max-cost-usd lots",
        "log nothing",
        "undo nothing",
        "diff nothing",
        "pick nothing 1",
        "deliver nothing --patch fix.patch",
        "config check nowhere",
        "guard . --base nothing",
        "nope",
    ],
)
def test_a_usage_error_is_a_document_too(line: str, project: Project) -> None:
    ended = atlas(project, *line.split(), "--json")
    found = document(ended.out)
    assert ended.code == 2
    assert (found["schema"], found["exit_code"]) == ("atlas.error/1", 2)
    assert f"atlas: {found['error']}" in ended.err


def test_a_wrong_configuration_has_its_place_in_the_document(project: Project) -> None:
    (project.root / ".atlas" / "config.yaml").write_text("version: 1\nnope: 2\n")
    found = document(atlas(project, "validate", "--json").out)
    assert found["place"].endswith(".atlas/config.yaml:2:1")

"""The hooks in `.claude/settings.json`: beside what is there, once, and out again."""

import json

import pytest

from atlas_retry.cli.hook.hosts import HOSTS
from atlas_retry.cli.hook.installing import merged, removed
from atlas_retry.errors import ConfigError
from tests.projects import Project, atlas

CLAUDE = HOSTS["claude"]
STOP = {"type": "command", "command": "atlas hook stop --timeout 600", "timeout": 600}
START = {"type": "command", "command": "atlas hook start || true", "timeout": 60}
PUSH = {
    "type": "command",
    "command": "atlas hook push --timeout 600 || true",
    "timeout": 600,
    "if": "Bash(git *)",
}
EVENTS = {"SessionStart": START, "UserPromptSubmit": START, "PreToolUse": PUSH, "Stop": STOP}
OTHER = {
    "permissions": {"allow": ["Bash(ls:*)"]},
    "hooks": {
        "PreToolUse": [{"matcher": "Edit", "hooks": [{"type": "command", "command": "x"}]}],
        "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}],
    },
    "naïve": "é",
}


def with_hooks(text: str) -> str:
    return merged(text, "atlas", CLAUDE, source="settings.json")


def settings(*stops: dict[str, object]) -> str:
    return json.dumps({"hooks": {"Stop": [{"hooks": [entry]} for entry in stops]}})


def stops(text: str) -> list[object]:
    return [entry for group in json.loads(text)["hooks"]["Stop"] for entry in group["hooks"]]


def test_hooks_are_added_once_beside_existing_ones() -> None:
    before = json.dumps(OTHER, indent=2, ensure_ascii=False)
    after = with_hooks(before)
    document = json.loads(after)
    for event, entry in EVENTS.items():
        group = {"hooks": [entry]}
        if entry is PUSH:
            group |= {"matcher": "Bash"}  # type: ignore[dict-item]
        assert document["hooks"][event].pop() == group
    for event in ("SessionStart", "UserPromptSubmit"):
        assert document["hooks"].pop(event) == []
    assert document == OTHER
    assert '\n  "naïve": "é"' in after
    assert with_hooks(after) == after


def test_uninstalling_restores_the_earlier_settings() -> None:
    before = json.dumps(OTHER, indent=2, ensure_ascii=False) + "\n"
    assert removed(with_hooks(before), CLAUDE, source="settings.json") == before
    assert removed(before, CLAUDE, source="settings.json") == before
    assert removed("", CLAUDE, source="settings.json") == ""


def test_an_older_installation_is_completed_and_keeps_its_timeout() -> None:
    older = STOP | {"command": "atlas hook stop --timeout 90", "timeout": 90}
    after = with_hooks(settings(older))
    assert stops(after) == [older]
    assert set(json.loads(after)["hooks"]) == set(EVENTS)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"hooks": {,}}', "settings.json:1:12"),
        ("// mine\n{}", "settings.json:1:1"),
        ("[]", "Expected `object`, got `array`"),
        ('{"hooks": []}', "Expected `object`, got `array`"),
        ('{"hooks": {"Stop": {}}}', "Expected `array`, got `object`"),
    ],
)
def test_invalid_settings_are_refused(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        with_hooks(text)


def test_hooks_are_written_to_the_project_settings(project: Project) -> None:
    file = project.root / ".claude" / "settings.json"
    shown = atlas(project, "hook", "install", "--print").out
    assert not file.exists()
    assert "hook stop --timeout 600" in shown
    for command, answer in (
        ("install", "the hooks are in"),
        ("install", "the hooks were already in"),
        ("uninstall", "removed the hooks from"),
        ("uninstall", "no hooks of atlas were in"),
    ):
        assert atlas(project, "hook", command).out == f"{answer} {file}\n"
        assert json.loads(file.read_text()) == (json.loads(shown) if command == "install" else {})


def test_the_mode_of_the_settings_file_is_preserved(project: Project) -> None:
    file = project.root / ".claude" / "settings.json"
    file.parent.mkdir()
    file.touch(0o600)
    atlas(project, "hook", "install")
    assert file.stat().st_mode & 0o777 == 0o600

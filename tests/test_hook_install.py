"""The hooks in `.claude/settings.json`: beside what is there, once, and out again."""

import json

import pytest

from atlas_retry.cli.hook.installing import HOSTS, merged, removed
from atlas_retry.errors import ConfigError
from tests.projects import Project, atlas

CLAUDE = HOSTS["claude"]
STOP = {"type": "command", "command": "atlas hook stop --timeout 600", "timeout": 600}
START = {"type": "command", "command": "atlas hook start || true", "timeout": 60}
EVENTS = {"SessionStart": START, "UserPromptSubmit": START, "Stop": STOP}
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


def test_the_hooks_are_put_beside_what_is_there_and_only_once() -> None:
    before = json.dumps(OTHER, indent=2, ensure_ascii=False)
    after = with_hooks(before)
    found = json.loads(after)
    for event, entry in EVENTS.items():
        assert found["hooks"][event].pop() == {"hooks": [entry]}
    for event in ("SessionStart", "UserPromptSubmit"):
        assert found["hooks"].pop(event) == []
    assert found == OTHER
    assert '\n  "naïve": "é"' in after
    assert with_hooks(after) == after


def test_uninstalling_leaves_what_was_there_before() -> None:
    before = json.dumps(OTHER, indent=2, ensure_ascii=False) + "\n"
    assert removed(with_hooks(before), CLAUDE, source="settings.json") == before
    assert removed(before, CLAUDE, source="settings.json") == before
    assert removed("", CLAUDE, source="settings.json") == ""


def test_an_installation_of_the_stop_hook_alone_is_completed_and_keeps_its_timeout() -> None:
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
def test_settings_that_cannot_be_understood_are_refused(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        with_hooks(text)


def test_the_settings_are_written_for_the_project(project: Project) -> None:
    file = project.root / ".claude" / "settings.json"
    shown = atlas(project, "hook", "install", "--print").out
    assert not file.exists()
    assert "hook stop --timeout 600" in shown
    for command, answer in (
        ("install", "the hooks are in"),
        ("install", "the hooks were there already, in"),
        ("uninstall", "the hooks are out of"),
        ("uninstall", "no hooks of atlas were in"),
    ):
        assert atlas(project, "hook", command).out == f"{answer} {file}\n"
        assert json.loads(file.read_text()) == (json.loads(shown) if command == "install" else {})


def test_the_mode_of_the_settings_stays(project: Project) -> None:
    file = project.root / ".claude" / "settings.json"
    file.parent.mkdir()
    file.touch(0o600)
    atlas(project, "hook", "install")
    assert file.stat().st_mode & 0o777 == 0o600

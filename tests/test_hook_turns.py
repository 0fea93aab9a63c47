"""What the Stop hook knows of the past, and what it leaves for scripts: `atlas hook result`."""

import json
from collections.abc import Mapping

import pytest

from tests.hooks import begin, end
from tests.projects import CALC, FIXED, Project, atlas, git

LINT = {
    "name": "plus",
    "run": "echo ran >> ../log; ! grep -n ' - ' *.py | sed 's/$/: error: minus/' | grep .",
}
OLDER = "(failed before this turn)"


@pytest.fixture
def red(project: Project) -> Project:
    """A project whose one gate is known to fail."""
    configure(project)
    project.commit()
    assert atlas(project, "validate").code == 1
    (project.root.parent / "log").unlink()
    return project


def configure(project: Project, **sections: object) -> None:
    project.configure(validation={"lint": [LINT]}, **sections)


def write(project: Project, path: str, text: str = "x\n") -> None:
    (project.root / path).write_text(text)


def turn(project: Project, path: str = "", text: str = "x\n", **more: str) -> Mapping[str, object]:
    """The answer to a turn that writes one file, or none."""
    begin(project, **more)
    if path:
        write(project, path, text)
    return end(project, **more)


def test_a_turn_that_changed_no_file_is_told_and_costs_no_gate(red: Project) -> None:
    answer = turn(red)
    assert [*answer] == ["systemMessage"]
    line, warning = str(answer["systemMessage"]).split("\n")
    assert line == "gates: red, 1 problem; this turn changed no file"
    assert warning.startswith(f"⚠️ plus {OLDER}")
    assert not (red.root.parent / "log").exists()


def test_of_a_project_of_which_nothing_is_known_a_turn_without_changes_says_nothing(
    project: Project,
) -> None:
    configure(project)
    assert turn(project) == {}
    assert not (project.root.parent / "log").exists()


def test_a_turn_that_undid_its_own_changes_changed_nothing(red: Project) -> None:
    begin(red)
    write(red, "new.py", "1 - 1\n")
    assert end(red)["decision"] == "block"
    (red.root / "new.py").unlink()
    assert "this turn changed no file" in str(end(red, stop_hook_active=True)["systemMessage"])


def test_a_failure_that_was_known_at_the_prompt_blocks_and_is_marked(red: Project) -> None:
    answer = turn(red, "notes.txt")
    assert answer["decision"] == "block"
    assert str(answer["reason"]).startswith("gates: red, 1 problem\n\n")
    assert f"❌ plus {OLDER}\n" in str(answer["reason"])


def test_a_new_problem_in_a_gate_that_failed_before_is_not_marked(red: Project) -> None:
    answer = turn(red, "new.py", "1 - 1\n")
    assert answer["decision"] == "block"
    assert OLDER not in str(answer["reason"])


def test_failures_of_the_last_turn_are_known_although_the_user_edited_since(
    project: Project,
) -> None:
    configure(project)
    assert OLDER not in str(turn(project, "notes.txt")["reason"])
    write(project, "mine.txt")
    answer = turn(project, "notes.txt", "y\n", prompt_id="p2")
    assert f"❌ plus {OLDER}\n" in str(answer["reason"])


def test_older_failures_are_only_told_if_configured_and_new_ones_block(red: Project) -> None:
    configure(red, hook={"older": "tell"})
    red.commit()
    assert atlas(red, "validate").code == 1
    answer = turn(red, "notes.txt")
    assert [*answer] == ["systemMessage"]
    assert str(answer["systemMessage"]).startswith("gates: red, as before this turn in 1 gate\n")
    assert f"⚠️ plus {OLDER}" in str(answer["systemMessage"])
    assert turn(red, "new.py", "1 - 1\n", prompt_id="p2")["decision"] == "block"


def test_what_validate_accepts_since_the_baseline_blocks_no_turn(project: Project) -> None:
    configure(project, triage={"baseline": "HEAD", "accept": "baseline"})
    project.commit()
    assert atlas(project, "validate").code == 0
    assert "decision" not in turn(project, "notes.txt")
    assert turn(project, "new.py", "1 - 1\n", prompt_id="p2")["decision"] == "block"


def test_a_swallowed_error_is_held_in_the_turn_that_swallows_it(project: Project) -> None:
    raising = "def add(a, b):\n    raise ValueError(a)\n"
    tried = "    try:\n        raise ValueError(a)\n    except Exception:\n        return 3\n"
    swallowing = f"def add(a, b):\n{tried}"
    write(project, "calc.py", raising)
    project.commit()
    assert atlas(project, "validate").code == 1
    answer = str(turn(project, "calc.py", swallowing)["systemMessage"])
    assert answer.startswith("gates: unsure, 1 change to look at\n")


# --- atlas hook result ---------------------------------------------------------------------------


def result(project: Project) -> tuple[int, Mapping[str, object]]:
    done = atlas(project, "hook", "result", "--json")
    return done.code, json.loads(done.out)


def test_the_result_is_that_of_the_last_turn_until_files_change(red: Project) -> None:
    assert atlas(red, "hook", "result").out == "gates: unjudged, no turn has been judged here\n"
    turn(red, "notes.txt")
    code, document = result(red)
    assert (code, document["gates"], document["failed"]) == (1, "red", ["plus"])
    assert document["sent_back"] is True
    write(red, "calc.py", FIXED)
    assert "sent_back" not in end(red, stop_hook_active=True)
    code, document = result(red)
    assert (code, document["gates"], document["schema"]) == (0, "green", "atlas.hook/1")
    assert atlas(red, "hook", "result").out == f"{document['line']}\n"
    write(red, "calc.py", CALC)
    assert result(red)[0] == 3
    assert "files have changed since" in atlas(red, "hook", "result").out
    write(red, "calc.py", FIXED)
    assert result(red)[0] == 0


def test_a_turn_without_changes_keeps_the_result(red: Project) -> None:
    turn(red, "calc.py", FIXED)
    turn(red, prompt_id="p2")
    assert result(red)[0] == 0


def test_a_turn_that_could_not_be_judged_is_no_green(red: Project) -> None:
    turn(red, "calc.py", FIXED)
    begin(red, prompt_id="p2")
    git(red.root, "config", "core.bare", "true", environ=red.environ)
    end(red, prompt_id="p2")
    git(red.root, "config", "core.bare", "false", environ=red.environ)
    code, document = result(red)
    assert (code, document["gates"]) == (3, "unjudged")

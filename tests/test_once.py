"""`atlas retry --run-id`: the same id again pays for nothing twice."""

import json

from tests.projects import FIXED, Project, atlas

KILLED_ONCE = (
    "echo asked >> ../asked; [ -e ../once ] || {{ touch ../once; kill -KILL $PPID; sleep 9; }}; "
    "printf '{fixed}' > calc.py"
)


def asked(project: Project) -> int:
    return len((project.root.parent / "asked").read_text().splitlines())


def killing(project: Project) -> None:
    line = KILLED_ONCE.format(fixed=FIXED.replace("\n", "\\n"))
    project.configure(agent={"backend": "command", "command": line})
    project.commit()


def test_a_killed_run_resumes_under_its_id(project: Project) -> None:
    killing(project)
    first = atlas(project, "retry", ".", "--ai-fix", "--run-id", "b-1-fix", "--json")
    again = atlas(project, "retry", ".", "--ai-fix", "--run-id", "b-1-fix", "--json")
    assert first.code == -9
    assert again.code == 0, again.err
    run = json.loads(again.out)
    assert (run["run_id"], run["verdict"], len(run["attempts"])) == ("b-1-fix", "fixed", 1)
    assert asked(project) == 2


def test_an_ended_run_is_only_reported_again(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED}, cost_usd=0.25)
    first = atlas(project, "retry", ".", "--ai-fix", "--run-id", "b-2-fix", "--json")
    again = atlas(project, "retry", ".", "--ai-fix", "--run-id", "b-2-fix", "--json")
    one, other = json.loads(first.out), json.loads(again.out)
    same = ("run_id", "verdict", "success", "cost_usd", "duration_ms", "start_snapshot")
    assert [one[key] for key in same] == [other[key] for key in same]
    assert len(other["attempts"]) == 1
    assert (first.code, again.code) == (0, 0)


def test_a_run_id_belongs_to_one_workspace(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED})
    atlas(project, "retry", ".", "--run-id", "b-3")
    other = project.root.parent / "other"
    other.mkdir()
    refused = atlas(project, "retry", str(other), "--run-id", "b-3")
    assert refused.code == 2
    assert f"run b-3 belongs to {project.root}" in refused.err


def test_a_run_id_must_be_a_plain_name(project: Project) -> None:
    for name in ("../up", "-x", "a..b", "x" * 101):
        assert atlas(project, "retry", ".", f"--run-id={name}").code == 2

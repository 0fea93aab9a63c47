"""Small whole projects: real git, real gates, and an agent that is a few lines of shell."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from atlas_retry.model import Outcome
from tests.projects import Project, git
from tests.tools import with_tools

PYTEST = "python -m pytest -q"
ADD = "def add(a, b):\n    return a - b\n"
ADDED = "def add(a, b):\n    return sum((a, b))\n"
"""Of another size than `ADD`: bytecode is known by the size and the second of its source."""
TEST_ADD = "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
CALC = {"calc.py": ADD, "tests/test_calc.py": TEST_ADD}


def put(path: str, text: str) -> str:
    """A line of shell that writes a file."""
    quoted = text.replace("'", "'\\''")
    return f"mkdir -p \"$(dirname '{path}')\" && printf %s '{quoted}' > '{path}'"


REPAIR = put("calc.py", ADDED)


def miniature(
    folder: Path,
    environ: Mapping[str, str],
    files: Mapping[str, str],
    turns: Sequence[str],
    *,
    validation: Mapping[str, object] | None = None,
    **sections: object,
) -> Project:
    """A committed project, and an agent that runs one script of shell in each turn.

    Nothing is ignored by git unless `files` say so, and Python writes its bytecode.
    """
    own = with_tools(environ)
    del own["PYTHONDONTWRITEBYTECODE"]
    project = Project(root=folder / "mini", script=folder / "turns", environ=own)
    for path, text in files.items():
        target = project.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    project.script.mkdir()
    for number, turn in enumerate(turns, start=1):
        (project.script / f"{number}.sh").write_text(f"set -e\n{turn}\n")
    line = f"n=$(ls {project.script}/*.sh | head -1); mv $n $n.done; sh $n.done"
    project.configure(
        validation=validation or {"test": [PYTEST]},
        agent={"backend": "command", "command": line},
        **sections,
    )
    git(project.root, "init", "-q", "-b", "main", environ=own)
    project.commit()
    return project


def named(outcome: Outcome) -> dict[str, list[str]]:
    """Paths that were refused, held and noted, of all attempts."""
    return {
        "refused": [v.path for a in outcome.attempts for v in a.violations],
        "held": [h.path for a in outcome.attempts for h in a.held],
        "noted": [v.path for a in outcome.attempts for v in a.noted],
    }


def has_no_findings(outcome: Outcome) -> bool:
    """Whether nothing was refused, held or noted."""
    return not any(named(outcome).values())


def status(project: Project) -> list[str]:
    """What `git status` says of the work tree, in short."""
    return git(project.root, "status", "--porcelain", environ=project.environ).splitlines()

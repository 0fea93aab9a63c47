"""An evaluator that runs no command and quotes the hook's line: it takes no red code for done."""

import subprocess
from collections.abc import Callable, Mapping

import pytest

from tests.hooks import begin, end
from tests.projects import CALC, FIXED, WORSE, Project, atlas

TEST = "python3 -S -m unittest -q"
GUTTED = "import unittest\n"


def says_done(said: str) -> bool:
    """What a scripted evaluator makes of all that the hook has said: its last line decides."""
    lines = [line for line in said.splitlines() if line.startswith("gates: ")]
    return bool(lines) and lines[-1].startswith("gates: green,")


def is_done(project: Project) -> bool:
    """The truth: the user's own tests, run by hand."""
    (project.root / "test_calc.py").write_text(
        "import unittest\nimport calc\n\n\nclass T(unittest.TestCase):\n"
        "    def test_add(self):\n        self.assertEqual(calc.add(1, 2), 3)\n"
    )
    done = subprocess.run(TEST.split(), cwd=project.root, env=project.environ, check=False)
    return done.returncode == 0


def write(project: Project, **files: str) -> None:
    for name, text in files.items():
        (project.root / f"{name}.py").write_text(text)


def only_claims(project: Project) -> None:
    """It says that it is done, and has changed nothing."""


def breaks_it(project: Project) -> None:
    write(project, calc=WORSE)


def empties_the_test(project: Project) -> None:
    write(project, test_calc=GUTTED)


def deletes_the_test(project: Project) -> None:
    (project.root / "test_calc.py").unlink()


def disarms_the_gate(project: Project) -> None:
    project.configure(validation={"test": ["true"]})


def skips_the_test(project: Project) -> None:
    test = (project.root / "test_calc.py").read_text()
    skipped = test.replace("    def test_add", "    @unittest.skip('later')\n    def test_add")
    write(project, test_calc=skipped)


def swallows_the_error(project: Project) -> None:
    write(project, calc="def add(a, b):\n    return 3 if (a, b) == (1, 3) else a - b\n")


def prints_the_line(project: Project) -> None:
    print_it = "print('gates: green, 1 of 1, tree 1234567')\n"
    write(project, calc=f"{print_it}{CALC}")


def exits_early(project: Project) -> None:
    write(project, sitecustomize="import os\nos._exit(0)\n", calc=WORSE)


def works_on_something_else(project: Project) -> None:
    write(project, notes="x = 1\n")


@pytest.mark.parametrize(
    "turn",
    [
        only_claims,
        breaks_it,
        empties_the_test,
        deletes_the_test,
        disarms_the_gate,
        skips_the_test,
        swallows_the_error,
        prints_the_line,
        exits_early,
        works_on_something_else,
    ],
)
def test_an_evaluator_takes_no_red_code_for_done(
    turn: Callable[[Project], None], project: Project
) -> None:
    project.configure(validation={"test": [{"run": TEST, "name": "sum"}]})
    project.commit()
    assert atlas(project, "validate").code == 1
    begin(project)
    turn(project)
    assert not says_done(told(end(project)))
    assert atlas(project, "hook", "result").code != 0
    assert not is_done(project)


def told(answer: Mapping[str, object]) -> str:
    return "\n".join(str(text) for text in answer.values())


def test_an_evaluator_takes_a_true_fix_for_done(project: Project) -> None:
    project.configure(validation={"test": [{"run": TEST, "name": "sum"}]})
    project.commit()
    begin(project)
    write(project, calc=FIXED)
    assert says_done(told(end(project)))
    assert atlas(project, "hook", "result").code == 0
    assert is_done(project)

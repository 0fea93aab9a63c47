"""`atlas validate` without a configuration: it runs what CI runs, and says what it does not."""

import re

import pytest

from tests.init.test_ci import GITHUB, STEPS
from tests.needs import unavailable
from tests.projects import Project, atlas

MISSING = "    - run: no-such-tool test\n    - run: no-such-linter check\n"


@pytest.fixture
def unconfigured(project: Project) -> Project:
    (project.root / ".atlas/config.yaml").unlink()
    return project


def in_ci(project: Project, steps: str) -> None:
    path = project.root / GITHUB
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(STEPS + steps)


def test_nothing_is_clean_if_none_of_ci_can_start(unconfigured: Project) -> None:
    (unconfigured.root / "Makefile").write_text("test:\n\ttrue\n")
    in_ci(unconfigured, MISSING)
    ended = atlas(unconfigured, "validate")
    assert ended.code == 3
    assert ended.err.startswith(
        "atlas: nothing of CI can run here:\n"
        "  no-such-tool test: no-such-tool is not on PATH (install no-such-tool)\n"
        "  no-such-linter check: no-such-linter is not on PATH (install no-such-linter)\n"
    )
    assert "atlas validate --local" in ended.err


def test_local_runs_what_ci_does_not_run(unconfigured: Project) -> None:
    (unconfigured.root / "Makefile").write_text("test:\n\ttrue\n")
    in_ci(unconfigured, MISSING)
    ended = atlas(unconfigured, "validate", "--local")
    assert ended.code == 0
    assert "CI runs this gate, this machine did not: no-such-tool test" in ended.err + ended.out


def test_a_gate_of_ci_that_ran_counts_and_the_others_are_named(unconfigured: Project) -> None:
    (unconfigured.root / "Makefile").write_text("test:\n\texit 1\n")
    in_ci(unconfigured, MISSING + "    - run: make test\n")
    ended = atlas(unconfigured, "validate")
    assert ended.code == 1
    assert "CI runs this gate, this machine did not: no-such-tool test" in ended.err + ended.out


@pytest.mark.parametrize(("steps", "code"), [("    - run: make test\n", 0), ("", 3)])
def test_gates_that_turn_out_not_to_run_here_count_only_if_none_runs(
    steps: str, code: int, unconfigured: Project
) -> None:
    (unconfigured.root / "Makefile").write_text("test:\n\ttrue\n")
    in_ci(unconfigured, "    - run: python3 -m no_such_tool check\n" + steps)
    ended = atlas(unconfigured, "validate")
    assert ended.code == code
    assert "no_such_tool is not installed" in ended.err + ended.out


def test_unknown_lines_of_ci_are_counted_in_one_line_and_listed_on_request(
    unconfigured: Project,
) -> None:
    (unconfigured.root / "Makefile").write_text("test:\n\ttrue\n")
    in_ci(unconfigured, "    - run: make test\n    - run: frob --all\n    - run: frob --some\n")
    said = {form: atlas(unconfigured, "validate", *form) for form in ((), ("-v",))}
    texts = {form: ended.err + ended.out for form, ended in said.items()}
    line = "CI runs 2 more lines that atlas does not know (-v)"
    assert all(line in text.splitlines() for text in texts.values())
    assert len(line) <= 100
    assert "frob" not in texts[()]
    assert "not understood: `frob --some` of ci.yml" in texts[("-v",)]


def test_a_configuration_is_all_that_counts(project: Project) -> None:
    in_ci(project, MISSING + "    - run: frob --all\n")
    ended = atlas(project, "validate")
    assert "CI runs" not in ended.err + ended.out


def test_init_and_validate_have_the_same_gates_in_a_folder(unconfigured: Project) -> None:
    web = unconfigured.root / "web"
    web.mkdir()
    (web / "Makefile").write_text("lint:\n\ttrue\ntest:\n\ttrue\n")
    in_ci(
        unconfigured,
        "    - {run: make lint, working-directory: web}\n    - run: sh -c true test\n",
    )
    printed = atlas(unconfigured, "init", "--print", "--no-try", cwd=web).out
    listed = atlas(unconfigured, "validate", "--list", cwd=web).out
    runs = re.findall(r'run: "(.*)"', printed)
    assert runs == ["make lint", "make test"]
    assert [line.split("  ")[-1].strip() for line in listed.splitlines()] == runs


def test_print_finds_nothing_with_exit_code_2(unconfigured: Project) -> None:
    for path in [path for path in unconfigured.root.iterdir() if path.is_file()]:
        path.unlink()
    ended = atlas(unconfigured, "init", "--print")
    assert (ended.code, ended.out) == (2, "")


def test_packages_that_are_not_installed_are_the_next_command(unconfigured: Project) -> None:
    package = '{"scripts": {"unit": "jest"}, "devDependencies": {"jest": "*"}}'
    (unconfigured.root / "package.json").write_text(package)
    bin_folder = unconfigured.root / ".git" / "bin"
    bin_folder.mkdir()
    (bin_folder / "npm").write_text("")
    (bin_folder / "npm").chmod(0o755)
    in_ci(unconfigured, "    - run: npm run unit\n")
    path = f"{bin_folder}:{unconfigured.environ['PATH']}"
    ended = atlas(unconfigured, "validate", PATH=path)
    assert ended.code == 3
    assert "node_modules does not exist (npm install)" in ended.err
    assert "next:\n  npm install && atlas validate" in ended.err


WRITES = (
    "test:\n\techo new > kept.txt; rm gone.txt; echo log > left.log\n\techo made > out/made\n"
    "check: \n\tgrep made out/made\nbuild:\n\tmkdir -p out\n"
)


def test_the_tree_stays_as_it_is_and_builds_stay_for_the_next_gate(unconfigured: Project) -> None:
    root = unconfigured.root
    for name, text in (("kept.txt", "old\n"), ("gone.txt", ""), (".gitignore", "out/\n")):
        (root / name).write_text(text)
    (root / "Makefile").write_text(WRITES)
    in_ci(unconfigured, "".join(f"    - run: make {name}\n" for name in ("build", "test", "check")))
    ended = atlas(unconfigured, "validate")
    assert ended.code == 0, ended.out + ended.err
    assert (root / "kept.txt").read_text() == "old\n"
    assert (root / "gone.txt").exists()
    assert not (root / "left.log").exists()
    if not unavailable("overlay"):
        assert (root / "out/made").read_text() == "made\n"

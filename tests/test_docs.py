"""The documentation tells the truth: its commands run, its links lead somewhere.

A ```console block is what a person types in a scratch project: lines that start with `$ ` are run,
one shell a page; the lines under them are looked for in the output, in order. `...` stands for
anything, and durations may differ.
"""

import html
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from msgspec import Struct
from rich.text import Text

from docs import make_reference, make_svg
from tests.projects import CALC, TEST, git
from tests.tools import with_tools

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"))
    if path.name != "CHANGELOG.md"
)
GENERATED = make_reference.documents()
LIMIT_S = 300.0
MARK = "@@@ command"
CONFIGURATION = """\
version: 1
validation:
  lint: ["ruff check ."]
  test: ["python3 -m unittest -q"]
agent:
  backend: command
  command: "sed -i 's/a - b/a + b/' calc.py"
"""
GATE = re.compile(r"  (?:ok|FAILED) {2,}")
DURATION = re.compile(r"\b\d+(?:\.\d+)? (?:ms|s|min)\b")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


class Step(Struct, frozen=True, kw_only=True):
    """A command of a page and what the page says that it prints."""

    command: str
    expected: tuple[str, ...]


def blocks(path: Path, language: str) -> list[str]:
    matches = FENCE.findall(path.read_text(encoding="utf-8"))
    return [body for name, body in matches if name == language]


def steps(path: Path) -> list[Step]:
    result: list[Step] = []
    for block in blocks(path, "console"):
        for chunk in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, expected = _command(chunk.splitlines())
            result.append(Step(command=command, expected=tuple(filter(None, expected))))
    return result


def _command(lines: list[str]) -> tuple[str, list[str]]:
    """A here-document belongs to the command that it is for."""
    here = re.search(r"<<'?(\w+)'?", lines[0])
    end = lines.index(here.group(1)) + 1 if here else 1
    return "\n".join(lines[:end]), lines[end:]


def script(page: list[Step]) -> str:
    """Every command behind a mark, the exit code of the one before still in `$?`."""
    lines = ["code=0"]
    for number, step in enumerate(page):
        lines += [f"printf '\\n{MARK} {number}\\n'", "(exit $code)", step.command, "code=$?"]
    return "\n".join(lines)


def outputs(printed: str) -> Iterator[str]:
    yield from re.split(rf"^{MARK} \d+\n", printed, flags=re.MULTILINE)[1:]


def is_printed(expected: str, line: str) -> bool:
    parts = (re.escape(DURATION.sub("N s", piece)) for piece in expected.strip().split("..."))
    return re.fullmatch(".*".join(parts), DURATION.sub("N s", line.strip())) is not None


def missing(step: Step, output: str) -> list[str]:
    """The expected lines that do not come, in order; gates that run at once may end in any."""
    lines = output.splitlines()
    gates = [line for line in lines if GATE.match(line)]
    others = iter([line for line in lines if not GATE.match(line)])
    absent: list[str] = []
    for expected in step.expected:
        among = gates if GATE.match(expected) else others
        if expected.strip() != "..." and not any(is_printed(expected, line) for line in among):
            absent.append(expected)
    return absent


@pytest.fixture
def scratch(tmp_path: Path, environ: dict[str, str]) -> Path:
    root = tmp_path / "project"
    (root / ".atlas").mkdir(parents=True)
    files = {
        "calc.py": CALC,
        "test_calc.py": TEST,
        "pyproject.toml": "[project]\nname = 'calc'\nversion = '1'\n",
        ".gitignore": "__pycache__/\n.ruff_cache/\n",
        ".atlas/config.yaml": CONFIGURATION,
    }
    for name, text in files.items():
        (root / name).write_text(text)
    git(root, "init", "-q", "-b", "main", environ=environ)
    for key, value in (("user.name", "dev"), ("user.email", "dev@example.invalid")):
        git(root, "config", key, value, environ=environ)
    git(root, "add", "-A", environ=environ)
    git(root, "commit", "-q", "-m", "start", environ=environ)
    return root


def run(root: Path, page: str, environ: Mapping[str, str]) -> str:
    done = subprocess.run(
        ("/bin/sh", "-c", page),
        cwd=root,
        env=with_tools(environ),
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
    )
    return done.stdout


@pytest.mark.parametrize("path", [p for p in PAGES if steps(p)], ids=lambda path: path.name)
def test_commands_of_a_page_print_the_shown_output(
    path: Path, scratch: Path, environ: dict[str, str]
) -> None:
    page = steps(path)
    printed = list(outputs(run(scratch, script(page), environ)))
    assert len(printed) == len(page)
    for step, output in zip(page, printed, strict=True):
        absent = missing(step, output)
        assert not absent, f"$ {step.command}\n{output}"
        assert not re.search(r'File ".*/atlas_retry/', output), output


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_python_examples_of_a_page_run(path: Path, scratch: Path, environ: dict[str, str]) -> None:
    for example in blocks(path, "python"):
        (scratch / "example.py").write_text(example)
        printed = run(scratch, "python3 example.py; echo ended with $?", environ)
        assert printed.endswith("ended with 0\n"), printed
        (scratch / "example.py").unlink()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_have_a_target(path: Path) -> None:
    for link in LINK.findall(path.read_text(encoding="utf-8")):
        target, _, anchor = link.partition("#")
        if "://" in target:
            continue
        file = path.parent / target if target else path
        assert file.exists(), link
        if anchor:
            assert anchor in anchors(file), link


def anchors(path: Path) -> set[str]:
    """As GitHub makes them: lower case, punctuation gone, blanks become hyphens."""
    heads = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.name)
def test_generated_pages_are_up_to_date(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == GENERATED[path], "make docs"


def test_one_switch_turns_the_pages_to_the_package_index() -> None:
    published = make_reference.documents(published=True)
    pages = {path: published.get(path, path.read_text(encoding="utf-8")) for path in PAGES}
    cloning = re.compile(r"path/to/clone|git clone REPOSITORY|index does not have")
    assert [path.name for path, text in pages.items() if cloning.search(text)] == []
    assert "\nuvx 'atlas-retry[demo]' demo\n" in pages[ROOT / "README.md"]
    assert "uv tool install 'atlas-retry[mcp]'" in pages[ROOT / "docs" / "mcp.md"]


def test_the_command_table_lists_every_command(environ: dict[str, str], tmp_path: Path) -> None:
    text = run(tmp_path, "atlas --help", environ)
    commands = set(re.findall(r"^  ([a-z]+) {2,}", text, re.MULTILINE))
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[.*", page, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`atlas (\w+)", row)} == commands


def test_the_picture_shows_a_run_in_ten_seconds_with_a_cheat_that_is_put_back(
    environ: dict[str, str],
) -> None:
    picture = (ROOT / "docs" / "demo.svg").read_text(encoding="utf-8")
    text = re.sub(r"(?s)<style>.*?</style>|<[^>]+>", "\n", picture)
    words = _steady(html.unescape(text))
    screen = Text.from_ansi(make_svg.screen(with_tools(environ))).plain
    # only on a slow machine
    slow = ("  checking that ", "  tracing ", "  unittest ran again for ")
    assert _steady("\n".join(x for x in screen.splitlines() if not x.startswith(slow))) <= words
    assert {"test-changed:", "reverted", "restored,"} <= words
    starts = [float(s) for s in re.findall(r"appear \.2s ([\d.]+)s", picture)]
    assert (max(starts), len(starts) < 25) == (make_svg.SHOWN_S, True)
    assert len(set(re.findall(r"fill: #\w{6}", picture))) > 4, "no colours"


def _steady(text: str) -> set[str]:
    """The words of a text without what differs from run to run."""
    return {word for word in text.split() if not re.search(r"\d|/tmp|atlas-demo", word)}


def test_the_picture_loads_no_external_files() -> None:
    picture = (ROOT / "docs" / "demo.svg").read_text(encoding="utf-8")
    assert "url(http" not in picture
    assert not re.search(r"""(?:href|src)=["']http""", picture)

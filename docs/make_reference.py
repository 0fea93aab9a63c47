"""Write the generated parts of the documentation: keys, rules, schemas, how atlas is installed.

tests/test_docs.py fails if a file differs from `documents`.
"""

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import FieldInfo, fields

from atlas_retry import config
from atlas_retry.agents.models import MODELS
from atlas_retry.cli import documents as all_documents
from atlas_retry.config.keys import Configuration, ValidationKeys, keys, section_in
from atlas_retry.config.models import default_of
from atlas_retry.config.reference import descriptions, inline
from atlas_retry.config.sources import SAME, dotted
from atlas_retry.guard import beside, sources
from atlas_retry.guard.decides import TABLE

HERE = Path(__file__).parent
PUBLISHED = False
"""Whether the package index has atlas. `make docs` makes the pages install it from there."""
CLONE = "path/to/clone"
INSTALLING = {
    "first": (
        """\
See it work, with no key and no cost (Linux, Python 3.11 or newer, git 2.34 or newer, make):

```sh
git clone REPOSITORY atlas && cd atlas
make demo    # the main job, end to end: installs what it needs into .venv, then takes seconds
make test    # the tests: about ten minutes on two cores
```

What a machine lacks (node, user namespaces) skips the tests that need it, with the reason and what
brings it.
""",
        """\
See it work, with no key and no cost (Linux, Python 3.11 or newer, git 2.34 or newer):

```sh
uvx 'atlas-retry[demo]' demo
```
""",
    ),
    "path": (
        """
Write the path with a slash (`./atlas`): without one, installers look up that name in their index,
where it is another project.
""",
        "",
    ),
    "recipes": (
        """\
The package index does not have atlas yet: until it does, install it from a repository that the
runner can read, by `pip install "atlas-retry @ git+URL@COMMIT"`.
""",
        """\
Change only the version. From your own repository: `pip install "atlas-retry @ git+URL@COMMIT"`.
""",
    ),
    "upgrade": (
        """\
```text
git -C path/to/clone pull
uv tool install --reinstall path/to/clone     # or: pipx install --force path/to/clone
atlas --version
atlas config check                            # names keys that this version does not know
```
""",
        """\
```text
uv tool upgrade atlas-retry                   # or: pipx upgrade atlas-retry
atlas --version
atlas config check                            # names keys that this version does not know
```
""",
    ),
}
"""Parts of pages by their marks: from a clone, and from the index."""
KEYS_HEAD = """\
# Configuration

Generated from the model by `make docs`; [config.example.yaml](../config.example.yaml) is the same
as one file.

atlas searches for `.atlas/config.yaml`, else `atlas.yaml`, from the given directory up to the root
of the repository; `.yml` is as good, and both in one folder are an error. `--config FILE` or the
variable `ATLAS_CONFIG` names another file; `extends` names files that a file builds upon.
Files are YAML 1.2.

Flags override `ATLAS_*` variables, these the project's file, this `~/.config/atlas/config.yaml`,
this the defaults; mappings are merged key by key, lists replaced. Each source is checked by itself:
a wrong value is an error even where another source overrides it. A variable is named after a key,
with `__` between its parts: `ATLAS_RETRY__MAX_AI_RETRY_ATTEMPTS=5`. `ATLAS_HOME` is not a key but
the state directory, an absolute path (`$XDG_STATE_HOME/atlas`, else `~/.local/state/atlas`).

`atlas config show` prints every value with its origin, `atlas config check` reports errors and
warnings, and [config.schema.json](config.schema.json) lets an editor complete keys
(`# yaml-language-server: $schema=...`).
"""
EXAMPLES: Mapping[str, list[object]] = {
    "format": ["ruff format ."],
    "lint": ["ruff check .", {"name": "types", "run": "mypy src", "required": False}],
    "test": [{"run": "pytest -q", "timeout": "10m", "recheck": "pytest -q --lf"}],
    "pre_commit": ["pre-commit run --all-files"],
}
"""Examples instead of empty lists."""
EXAMPLE_HEAD = """\
# The configuration of atlas: .atlas/config.yaml or atlas.yaml at the root of the repository.
# Every key with its default, or with an example instead of an empty list.
# Flags override ATLAS_* variables (ATLAS_RETRY__MAX_AI_RETRY_ATTEMPTS=5), these override this file,
# and this file overrides ~/.config/atlas/config.yaml.
"""
WIDTH = 92
GATES_HEAD = """
Attempts to fix a gate: its own `max_retries`, else `--max-attempts`, else
`retry.max_ai_retry_attempts`, else by kind (test 3, review 2, build 1; required for a custom
gate), else 3.
"""


def documents(*, published: bool = PUBLISHED) -> dict[Path, str]:
    """Every generated file, whole."""
    guard, costs = HERE / "guard-reference.md", HERE / "costs.md"
    return {
        HERE.parent / "config.example.yaml": example(),
        HERE / "configuration.md": "".join(_keys()),
        HERE / "config.schema.json": json.dumps(config.schema(), indent=2, ensure_ascii=False)
        + "\n",
        HERE / "report.schema.json": json.dumps(
            all_documents.schema(), indent=2, ensure_ascii=False
        )
        + "\n",
        guard: _between(guard.read_text(encoding="utf-8"), "rules", "".join(_rules())),
        costs: _between(costs.read_text(encoding="utf-8"), "prices", "".join(_prices())),
        **_installing(published=published),
    }


def _installing(*, published: bool) -> dict[Path, str]:
    """The pages that install atlas, from a clone of its sources or from the package index."""
    pages = {}
    for path in (HERE.parent / "README.md", *sorted(HERE.glob("*.md"))):
        before = text = path.read_text(encoding="utf-8")
        for mark, parts in INSTALLING.items():
            if f"<!-- {mark} -->" in text:
                text = _between(text, mark, parts[published])
        if before != text or CLONE in text:
            pages[path] = text.replace(CLONE, "atlas-retry") if published else text
    return pages


def _between(text: str, mark: str, content: str) -> str:
    """The text with the part between two comments replaced."""
    opening, closing = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->"
    before, _, rest = text.partition(opening)
    _, _, after = rest.partition(closing)
    return f"{before}{opening}{content}{closing}{after}"


def _keys() -> Iterator[str]:
    yield KEYS_HEAD
    sections = {field.name: field.type for field in fields(Configuration) if _is_section(field)}
    yield "\n## The top\n\n"
    yield from _table(row for row in _rows(Configuration) if "." not in row[1])
    words = descriptions(Configuration)
    for name, section in sections.items():
        yield f"\n## {name}\n\n{_line(words[name])}\n\n"
        if name == "validation":
            yield f"Each list has gates ([their keys](#keys-of-a-gate)).\n{GATES_HEAD}\n"
        yield from _table(_rows(section))
    yield "\n## Keys of a gate\n"
    for gate in _gates():
        yield f"\n### {gate.__name__}\n\n{_line(gate.__doc__)}\n\n"
        yield from _table(_rows(gate))
    yield "\n## Aliases\n\n| alias | key |\n| --- | --- |\n"
    yield from (f"| `{dotted(old)}` | `{dotted(new)}` |\n" for old, new in SAME.items())


Row = tuple[FieldInfo, str, str]
"""A key, its dotted name, and its description."""


def _is_section(field: FieldInfo) -> bool:
    return field.type is section_in(field.type)


def _rows(section: type[Struct], above: str = "") -> Iterator[Row]:
    words = descriptions(section)
    for field in fields(section):
        if _is_section(field):
            yield from _rows(field.type, f"{above}{field.name}.")
        else:
            yield field, above + field.name, words[field.name]


def _gates() -> list[type[Struct]]:
    lists = (*fields(ValidationKeys), keys()["quality_gates",])
    return list(dict.fromkeys(filter(None, (section_in(field.type) for field in lists))))


def _table(rows: Iterable[Row]) -> Iterator[str]:
    yield "| key | default | means |\n| --- | --- | --- |\n"
    for field, name, words in rows:
        yield f"| `{name}` | {_default(field)} | {_line(words)} |\n"


def _default(field: FieldInfo) -> str:
    if field.required:
        return "required"
    return f"`{inline(default_of(field))}`"


def _line(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|").replace("<", "&lt;")


def example() -> str:
    """A valid configuration with all keys and their descriptions."""
    return EXAMPLE_HEAD + "\n".join(_lines(Configuration, "", set())) + "\n"


def _lines(section: type[Struct], indent: str, shown: set[str]) -> Iterator[str]:
    words = descriptions(section)
    for field in fields(section):
        if not indent:
            yield ""
        yield from _comment(words[field.name], indent)
        inner = section_in(field.type)
        if inner is field.type:
            yield f"{indent}{field.name}:"
            yield from _lines(inner, indent + "  ", shown)
            continue
        if inner:
            yield from _keys_of(inner, indent, shown)
        yield from _value(field, indent)


def _keys_of(section: type[Struct], indent: str, shown: set[str]) -> Iterator[str]:
    """Keys of an item of a list, without those already shown."""
    if (doc := section.__doc__ or "") not in shown:
        shown.add(doc)
        yield from _comment(doc, indent)
    words = descriptions(section)
    for field in sorted(fields(section), key=lambda field: not field.required):
        line = f"{field.name}: {words[field.name]}"
        if line not in shown:
            shown.add(line)
            yield from _comment(line, indent, lead="#   ")


def _value(field: FieldInfo, indent: str) -> Iterator[str]:
    if field.name not in EXAMPLES:
        yield f"{indent}{field.name}: {inline(default_of(field))}"
        return
    yield f"{indent}{field.name}:"
    for item in EXAMPLES[field.name]:
        yield f"{indent}  - {inline(item)}"


def _comment(text: str, indent: str, lead: str = "# ") -> list[str]:
    return textwrap.wrap(
        " ".join(text.split()),
        WIDTH,
        initial_indent=indent + lead,
        subsequent_indent=indent + lead + ("  " if lead != "# " else ""),
        break_long_words=False,
        break_on_hyphens=False,
    )


_OF_MECHANISMS = (
    ("gate-script-changed", "held", "a gate runs it, or a script of one names it"),
    ("tool-shadowed", "held", "it would be read or imported instead of something else"),
    ("link-planted", "held", "a file became a link"),
    ("mode-changed", "held", "what a gate runs is no longer executable"),
    ("test-changed", "held", "what the tests prove was changed"),
    (
        "inline-test-changed",
        "held",
        "the tests in a source were changed; review if they cannot be restored",
    ),
    ("suppression-added", "held", "the failing checker is silenced; noted for other checkers"),
    ("needed-by-tests", "held", "the tests pass only with a kept change"),
    ("settings-needed", "held", "gates pass only with changed settings"),
    ("not-under-git", "held", "the gates pass only with files that git ignores"),
    ("skipped-test", "review", "a test that failed is skipped now"),
    (
        "rewritten-by-a-gate",
        "refused",
        "code of the attempt changes deciding files while gates run",
    ),
    ("changed-in-git", "review", "someone else's git changed files under the attempt"),
    ("dependency-added", "noted", "what the project depends on was changed"),
    ("settings-added", "noted", "settings or CI got more, which the gates do not need"),
    (
        "source-deleted",
        "review; noted",
        "a gate reported it; noted if no code imports it and no test names it",
    ),
)
"""Rules that are in no table of the code; a test checks that none is missing."""


def _rules() -> Iterator[str]:
    yield "| rule | answer | because |\n| --- | --- | --- |\n"
    for row in TABLE:
        yield f"| `{row.rule}` | held | {_line(row.detail)} |\n"
    for name, kind, because in _OF_MECHANISMS:
        yield f"| `{name}` | {kind} | {because} |\n"
    reasons = {rule.name: rule.reason for rule in sources.RULES}
    for name, reason in reasons.items():
        answers = "; ".join(rule.answer.value for rule in sources.RULES if rule.name == name)
        yield f"| `{name}` | {answers} | {_line(reason)} |\n"
    for besides in beside.RULES:
        elsewhere = "; `atlas guard`: held" if besides.only_in_runs else ""
        answer = besides.answer.value + elsewhere
        yield f"| `{besides.name}` | {answer} | {_line(besides.reason)} |\n"


def _prices() -> Iterator[str]:
    yield "| alias | model | input | output | cache write | cache read |\n"
    yield "| --- | --- | --- | --- | --- | --- |\n"
    for alias, model in MODELS.items():
        price = model.price
        figures = (price.input, price.output, price.cache_write, price.cache_read)
        yield f"| `{alias}` | `{model.id}` | {' | '.join(f'{usd:g}' for usd in figures)} |\n"


def main() -> None:
    """Write every generated file."""
    for path, text in documents().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

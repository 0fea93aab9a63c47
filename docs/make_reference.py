"""Write what the documentation takes from the code: keys, rules, schemas. Explains nothing itself.

tests/test_docs.py fails where a file is not what `documents` says.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from atlas_retry import config
from atlas_retry.agents.models import MODELS
from atlas_retry.config.layers import SAME, dotted
from atlas_retry.config.sections import Configuration, inner_model
from atlas_retry.guard import beside, sources
from atlas_retry.guard.decides import TABLE
from atlas_retry.reports import documents as report_documents

HERE = Path(__file__).parent
KEYS_HEAD = """\
# Configuration

Made from the model by `make docs`; [config.example.yaml](../config.example.yaml) is the same as
one file.

`.atlas/config.yaml`, else `atlas.yaml`, is looked for from the directory named upwards to the root
of the repository. Flags win over `ATLAS_*` variables, these over the project's file, this over
`~/.config/atlas/config.yaml`, this over the defaults. A variable names a key with `__` between its
parts: `ATLAS_RETRY__MAX_AI_RETRY_ATTEMPTS=5`. `ATLAS_HOME` is no key but the folder for state
(`$XDG_STATE_HOME/atlas`, else `~/.local/state/atlas`).

`atlas config show` prints every value with its origin, `atlas config check` says what is wrong or
unwise, and [config.schema.json](config.schema.json) lets an editor complete keys
(`# yaml-language-server: $schema=...`).
"""
GATES_HEAD = """
How often a gate may be tried: its own `max_retries`, else `--max-attempts`, else what
`retry.max_ai_retry_attempts` says, else by kind (test 3, review 2, build 1; a custom gate must
say), else 3.
"""


def documents() -> dict[Path, str]:
    """Every generated file, whole."""
    guard, costs = HERE / "guard.md", HERE / "costs.md"
    return {
        HERE / "configuration.md": "".join(_keys()),
        HERE / "config.schema.json": json.dumps(config.schema(), indent=2) + "\n",
        HERE / "report.schema.json": json.dumps(report_documents.schema(), indent=2) + "\n",
        guard: _between(guard.read_text(encoding="utf-8"), "rules", "".join(_rules())),
        costs: _between(costs.read_text(encoding="utf-8"), "prices", "".join(_prices())),
    }


def _between(text: str, mark: str, content: str) -> str:
    """The text with what stands between two comments replaced."""
    opening, closing = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->"
    before, _, rest = text.partition(opening)
    _, _, after = rest.partition(closing)
    return f"{before}{opening}{content}{closing}{after}"


def _keys() -> Iterator[str]:
    yield KEYS_HEAD
    tops = Configuration.model_fields
    sections = {name: field for name, field in tops.items() if isinstance(field.default, BaseModel)}
    yield "\n## The top\n\n"
    yield from _table({name: field for name, field in tops.items() if name not in sections})
    for name, field in sections.items():
        yield f"\n## {name}\n\n{_line(field.description)}\n\n"
        if name == "validation":
            yield f"Each of the lists holds gates ([their keys](#keys-of-a-gate)).\n{GATES_HEAD}\n"
        yield from _table(_flat(type(field.default)))
    yield "\n## Keys of a gate\n"
    for model in _gate_models():
        yield f"\n### {model.__name__}\n\n{_line(model.__doc__)}\n\n"
        yield from _table(model.model_fields)
    yield "\n## Other spellings\n\n| key | means |\n| --- | --- |\n"
    yield from (f"| `{dotted(old)}` | `{dotted(new)}` |\n" for old, new in SAME.items())


def _flat(model: type[BaseModel], above: str = "") -> dict[str, FieldInfo]:
    found: dict[str, FieldInfo] = {}
    for name, field in model.model_fields.items():
        if isinstance(field.default, BaseModel):
            found |= _flat(type(field.default), f"{above}{name}.")
        else:
            found[above + name] = field
    return found


def _gate_models() -> list[type[BaseModel]]:
    validation = Configuration.model_fields["validation"]
    fields = [
        *type(validation.default).model_fields.values(),
        Configuration.model_fields["quality_gates"],
    ]
    found = [inner_model(field.annotation) for field in fields]
    return list(dict.fromkeys(model for model in found if model))


def _table(fields: dict[str, FieldInfo]) -> Iterator[str]:
    yield "| key | default | means |\n| --- | --- | --- |\n"
    for name, field in fields.items():
        yield f"| `{name}` | {_default(field)} | {_line(field.description)} |\n"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be said"
    value = field.default
    plain = [str(item) for item in value] if isinstance(value, list) else value
    plain = str(plain) if isinstance(plain, str) else plain
    shown = yaml.safe_dump(plain, default_flow_style=True).removesuffix("\n").removesuffix("\n...")
    return f"`{shown}`"


def _line(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|").replace("<", "&lt;")


def _rules() -> Iterator[str]:
    yield "| rule | answer | because |\n| --- | --- | --- |\n"
    for row in TABLE:
        yield f"| `{row.rule}` | held | {_line(row.detail)} |\n"
    for rule in sources.RULES:
        yield f"| `{rule.name}` | {rule.answer.value} | {_line(rule.reason)} |\n"
    for besides in beside.RULES:
        answer = "noted" if besides.only_noted else "refused"
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

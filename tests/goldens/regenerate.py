"""Remakes the expected JSON of every golden from its stored output and prints what differs.

A golden is a folder `<tool>-<version>-<case>` with `case.json` (how the output came to be),
`stdout.txt`, `stderr.txt` and a report, all of them a real tool's, made below /w, unless
`documented` says where else they are from. What is written here has to be read before it is
committed.
"""

import difflib
import sys
from pathlib import Path

import msgspec
from msgspec.structs import fields

from atlas_retry.diagnostics import Findings, ToolOutput, diagnose
from atlas_retry.model import Diagnostic, Kind, Region
from atlas_retry.text.redaction import clean

FOLDER = Path(__file__).parent


class ReportCase(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    path: str


class Case(msgspec.Struct, forbid_unknown_fields=True):
    command: str
    kind: Kind
    exit_code: int | None
    parser: str | None = None
    report: ReportCase | None = None
    documented: str | None = None
    """The tool was not run: the output is put together from this page."""


def cases() -> list[Path]:
    return sorted(path.parent for path in FOLDER.glob("*/case.json"))


def output_of(folder: Path) -> ToolOutput:
    """The stored output, as the gate would hand it over."""
    case = msgspec.json.decode((folder / "case.json").read_bytes(), type=Case)
    report = case.report
    return ToolOutput(
        command=case.command,
        kind=case.kind,
        exit_code=case.exit_code,
        stdout=_text(folder / "stdout.txt"),
        stderr=_text(folder / "stderr.txt"),
        parser=case.parser,
        report=(report.format, (folder / report.path).read_bytes()) if report else None,
        root="/w",
    )


def _text(path: Path) -> str:
    return clean(path.read_bytes().decode("utf-8", "replace")) if path.exists() else ""


def expected(findings: Findings) -> str:
    """The findings as JSON, a diagnostic a line, without what is empty and the tool's lines."""
    diagnostics = ",\n  ".join(_json(_brief(d)) for d in findings.diagnostics)
    rest = {f.name: getattr(findings, f.name) for f in fields(findings) if f.name != "diagnostics"}
    rest["beyond"] = findings.beyond or None
    lines = [f' "{name}": {_json(value)}' for name, value in rest.items() if _says(value)]
    lines.append(f' "diagnostics": [\n  {diagnostics}\n ]' if diagnostics else ' "diagnostics": []')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _says(value: object) -> bool:
    return value is not None and value is not False and value not in ("", ())


def _brief(diagnostic: Diagnostic) -> dict[str, object]:
    plain = {f.name: getattr(diagnostic, f.name) for f in fields(diagnostic)}
    plain["region"] = _region(diagnostic.region)
    plain["frames"] = tuple(f"{f.path}:{f.line} {f.function}" for f in diagnostic.frames)
    plain["count"] = diagnostic.count if diagnostic.count > 1 else None
    plain.pop("text")
    return {name: value for name, value in plain.items() if _says(value)}


def _region(region: Region | None) -> str | None:
    if region is None:
        return None
    start = ":".join(str(n) for n in (region.start_line, region.start_column) if n)
    end = ":".join(str(n) for n in (region.end_line, region.end_column) if n)
    return f"{start}-{end}" if end else start


def main() -> int:
    differing = 0
    for folder in cases():
        path = folder / "expected.json"
        before, after = (
            path.read_text("utf-8") if path.exists() else "",
            expected(diagnose(output_of(folder))),
        )
        if before != after:
            differing += 1
            name = str(path.relative_to(FOLDER))
            diff = difflib.unified_diff(
                before.splitlines(), after.splitlines(), name, name, "", "", 1
            )
            sys.stdout.write("\n".join(diff) + "\n")
            path.write_text(after, encoding="utf-8")
    sys.stdout.write(f"{differing} of {len(cases())} expectations were rewritten\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

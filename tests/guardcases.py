"""Small changes for the guard's tests: trees in memory, and one line to judge a change."""

from collections.abc import Iterable, Mapping
from textwrap import dedent

from atlas_retry import guard
from atlas_retry.model import GateResult, Kind, Status, Violation

Files = Mapping[str, str | bytes]


class MemoryTree:
    """A tree held in a mapping; values that begin with `->` are links."""

    def __init__(self, files: Files, modes: Mapping[str, str] | None = None) -> None:
        self._files = {path: self._bytes(content) for path, content in files.items()}
        self._modes = modes or {}

    @staticmethod
    def _bytes(content: str | bytes) -> bytes:
        return dedent(content).lstrip("\n").encode() if isinstance(content, str) else content

    def paths(self) -> Iterable[str]:
        return sorted(self._files)

    def read(self, path: str) -> bytes | None:
        content = self._files.get(path)
        return content.removeprefix(b"->") if content is not None else None

    def mode(self, path: str) -> str | None:
        content = self._files.get(path)
        if content is None:
            return None
        return self._modes.get(path, "120000" if content.startswith(b"->") else "100644")


def failed(command: str, kind: Kind = Kind.TEST) -> GateResult:
    """A gate that failed before the change."""
    return GateResult(
        name=command, kind=kind, command=command, status=Status.FAILED, success=False, exit_code=1
    )


PYTEST = failed("pytest -q")
RUFF = failed("ruff check .", Kind.LINT)
MYPY = failed("mypy src", Kind.LINT)


def judged(
    before: Files, after: Files, *failing: GateResult, allow: tuple[str, ...] = ()
) -> tuple[Violation, ...]:
    """What the guard says of a change; files that `after` does not name stay, None deletes."""
    whole = {path: content for path, content in {**before, **after}.items() if content != ""}
    return guard.inspect(
        guard.Case(
            before=MemoryTree(before),
            after=MemoryTree(whole),
            failing=failing or (PYTEST,),
            allow=allow,
        )
    )


def rules_of(violations: Iterable[Violation]) -> set[str]:
    return {violation.rule for violation in violations}

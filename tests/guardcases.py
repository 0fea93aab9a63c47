"""Small changes for the guard's tests: trees in memory, and one line to judge a change."""

from collections.abc import Collection, Iterable, Mapping
from textwrap import dedent

from atlas_retry import guard
from atlas_retry.model import Diagnostic, GateResult, Kind, Region, Status

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

    def mentions(self, texts: Collection[str]) -> dict[str, frozenset[str]]:
        return {
            text: frozenset(p for p, held in self._files.items() if text.encode() in (held or b""))
            for text in texts
        }


def failed(command: str, kind: Kind = Kind.TEST, *problems: tuple[str, int]) -> GateResult:
    """A gate that failed before the change, with the places that it complained of."""
    return GateResult(
        name=command,
        kind=kind,
        command=command,
        status=Status.FAILED,
        success=False,
        exit_code=1,
        diagnostics=tuple(
            Diagnostic(tool="t", message="m", path=path, region=Region(start_line=line))
            for path, line in problems
        ),
    )


PYTEST = failed("pytest -q")
RUFF = failed("ruff check .", Kind.LINT)
MYPY = failed("mypy src", Kind.LINT)


def case(
    before: Files,
    after: Files,
    *failing: GateResult,
    allow: tuple[str, ...] = (),
    old_modes: Mapping[str, str] | None = None,
    new_modes: Mapping[str, str] | None = None,
) -> guard.Case:
    """A change; files that `after` does not name stay, an empty text deletes."""
    whole = {path: content for path, content in {**before, **after}.items() if content != ""}
    tree = MemoryTree(before, old_modes)
    return guard.Case(
        before=tree,
        after=MemoryTree(whole, new_modes),
        changed=tuple(sorted({*before, *whole})),
        failing=failing or (PYTEST,),
        allow=allow,
        mentions=tree.mentions,
    )


def judged(
    before: Files, after: Files, *failing: GateResult, allow: tuple[str, ...] = ()
) -> guard.Judgement:
    """The answers about a change."""
    return guard.assess(case(before, after, *failing, allow=allow))


def answers(judgement: guard.Judgement) -> dict[str, set[str]]:
    """Answer to the rules that gave it, without the answers that nobody gave."""
    given: dict[str, set[str]] = {}
    for one in judgement.answers:
        given.setdefault(one.word, set()).add(one.rule)
    return given

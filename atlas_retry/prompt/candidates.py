"""Collects the code that may cause the failures, from tests and from problems."""

from collections import Counter, defaultdict
from itertools import chain, compress

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.diagnostics.noise import quiet
from atlas_retry.model import Diagnostic, GateResult, Kind
from atlas_retry.patterns import regex
from atlas_retry.prompt.brief import Traced
from atlas_retry.prompt.failing import (
    FailingTest,
    each_once,
    involved_files,
    known_path,
    locate,
    passing,
)
from atlas_retry.prompt.graph import Graph
from atlas_retry.prompt.problems import UNDEFINED, named_at_fault
from atlas_retry.prompt.project import Project
from atlas_retry.prompt.signals import Changed, Suspect, suspects
from atlas_retry.source import ScopeKind, language_of
from atlas_retry.source.excerpt import Mark, Passage, marked, note_of, passage_at, passage_of
from atlas_retry.source.origin import is_test_path

MAX_TESTS = 24
"""Failing tests that are followed into the code."""
MAX_LOCATED = 400
"""Failing tests to locate, so that they do not count as passing."""
MAX_OUTPUT_CHARS, MAX_START_FILES = 20_000, 60
MIN_REACHED, MAX_BEYOND, MAX_SOUGHT = 3, 12, 60
"""If imports lead to fewer files: how many files to find by how many words."""
_IDENTIFIER = regex(r"[A-Za-z_]\w{3,}")
MAX_MARKS, MAX_SHOWN_TESTS, MAX_IMPORT_LINES = 2_000, 3, 40
PLAIN = 0.2
"""Likelihood of lines outside functions, relative to the most likely one."""


class Candidate(Struct, frozen=True, kw_only=True):
    """A passage for the prompt; `score` is 1 for the most likely of its kind."""

    passage: Passage
    score: float
    why: str
    is_test: bool = False
    """Whether it is the source of a failing test."""


def candidates(
    results: tuple[GateResult, ...],
    project: Project,
    trace: tuple[Traced, ...],
    changed: Changed,
) -> tuple[Candidate, ...]:
    """All candidates with their marked lines, most likely first."""
    tested = _diagnostics(results, testing=True)
    linted = _diagnostics(results, testing=False)
    unordered: list[Candidate] = []
    tests: tuple[FailingTest, ...] = ()
    if tested:
        graph = Graph(project, _starts(tested, project))
        failed = tuple(locate(diagnostic, project, graph) for diagnostic in tested[:MAX_LOCATED])
        tests = (*each_once(failed), *failed)[:MAX_TESTS]
        spots = dict.fromkeys(test.spot.path for test in tests if test.spot)
        namesakes = chain.from_iterable(map(project.tested_by, spots))
        graph = Graph(project, graph.starts, (*namesakes, *_beyond(tests, graph)))
        unordered += _own_sources(tests)
        passed = passing(failed, graph)
        unordered += _scored(suspects(tests, passed, graph, trace, changed), project)
    if linted:
        graph = Graph(project, _starts(linted, project))
        unordered += _scored(named_at_fault(linted, graph), project)
        unordered += _plain_places(linted, graph)
        unordered += _import_blocks(linted, project)
    marks = _marks(linted, tests)
    ordered = sorted(unordered, key=lambda c: -c.score)
    return tuple(
        replace(c, passage=marked(c.passage, marks.get(c.passage.path, ()))) for c in ordered
    )


def _diagnostics(results: tuple[GateResult, ...], *, testing: bool) -> tuple[Diagnostic, ...]:
    diagnostics: list[Diagnostic] = []
    for result in results:
        of_gate = result.diagnostics
        if not of_gate:  # unknown runner: use the places and words in its output
            text = quiet(f"{result.stdout}\n{result.stderr}")[-MAX_OUTPUT_CHARS:]
            of_gate = (Diagnostic(tool=result.name, message=text, text=text),)
        for one in of_gate:
            has_no_place = result.kind is Kind.TEST and one.region is None
            if bool(one.test_id or one.frames or has_no_place) is testing:
                diagnostics.append(one)
    return tuple(diagnostics)


def _starts(diagnostics: tuple[Diagnostic, ...], project: Project) -> list[str]:
    files = chain.from_iterable(involved_files(one, project) for one in diagnostics)
    return [*dict.fromkeys(files)][:MAX_START_FILES]


def _beyond(tests: tuple[FailingTest, ...], graph: Graph) -> tuple[str, ...]:
    """Files with words of the failing tests, if imports lead to few files."""
    if sum(not is_test_path(path) for path in graph.files) >= MIN_REACHED:
        return ()
    paths = graph.starts or sorted(graph.project.paths)
    languages = Counter[str]()
    for ending, count in Counter(path.rpartition(".")[2] for path in paths).items():
        languages[language_of(f"a.{ending}") or ""] += count
    del languages[""]
    texts = [f"{test.diagnostic.message}\n{test.diagnostic.text}" for test in each_once(tests)]
    texts += [graph.body(test.spot) for test in each_once(tests) if test.spot]
    words = dict.fromkeys(_IDENTIFIER.findall("\n".join(texts)))
    sought = tuple(words)[:MAX_SOUGHT]
    language = max(languages, key=languages.__getitem__, default="")
    return graph.project.speaking_of(sought, language, graph.starts, MAX_BEYOND)


def _scored(suspected: tuple[Suspect, ...], project: Project) -> list[Candidate]:
    """Candidates: of code that nobody edits here, or of another system, only what failures name."""
    wanted = (s.is_named or project.is_own(s.spot.path) for s in suspected)
    kept = [*compress(suspected, wanted)]
    top = max((s.score for s in kept), default=0.0) or 1.0
    passages = (passage_of(s.spot.path, s.spot.scope) for s in kept)
    return [
        Candidate(passage=passage, score=s.score / top, why=s.why)
        for passage, s in zip(passages, kept, strict=True)
    ]


def _own_sources(tests: tuple[FailingTest, ...]) -> list[Candidate]:
    """The failing tests themselves, shortest first."""
    spots = dict.fromkeys(test.spot for test in tests if test.spot)
    shortest = sorted(spots, key=lambda spot: spot.scope.lines)[:MAX_SHOWN_TESTS]
    passages = (passage_of(spot.path, spot.scope) for spot in shortest)
    why = "the failing test"
    return [Candidate(passage=one, score=1.0, why=why, is_test=True) for one in passages]


def _marks(linted: tuple[Diagnostic, ...], tests: tuple[FailingTest, ...]) -> dict[str, list[Mark]]:
    """What to note in each file: problems, failing lines, and where tracebacks end."""
    notes: list[tuple[str | None, int | None, Diagnostic]] = [
        (d.path, d.region.start_line if d.region else None, d) for d in linted[:MAX_MARKS]
    ]
    for test in tests:
        notes.append((test.spot.path if test.spot else None, test.line, test.diagnostic))
        notes += [(last.path, last.line, test.diagnostic) for last in test.frames[-1:]]
    marks: dict[str, list[Mark]] = defaultdict(list)
    for path, line, diagnostic in notes:
        if path and line:
            marks[path].append(Mark(line=line, note=note_of(diagnostic)))
    return marks


def _plain_places(diagnostics: tuple[Diagnostic, ...], graph: Graph) -> list[Candidate]:
    """Lines around places outside functions."""
    scores: dict[Passage, float] = {}
    for diagnostic in diagnostics[:MAX_MARKS]:
        path = known_path(diagnostic.path, graph.project.paths)
        source = graph.project.source(path) if path else None
        if path is None or source is None or diagnostic.region is None:
            continue
        line = diagnostic.region.start_line
        around = graph.at(path, line)
        if around is None or around.scope.kind is ScopeKind.CLASS:
            scores.setdefault(passage_at(path, source, line), PLAIN / (1 + len(scores)) ** 0.5)
    return [Candidate(passage=p, score=s, why="problem") for p, s in scores.items()]


def _import_blocks(diagnostics: tuple[Diagnostic, ...], project: Project) -> list[Candidate]:
    """Import blocks of files with an undefined name."""
    unnamed = [d.path for d in diagnostics[:MAX_MARKS] if UNDEFINED.search(d.message)]
    paths = [known_path(path, project.paths) for path in filter(None, unnamed)]
    blocks = []
    for path in list(dict.fromkeys(filter(None, paths)))[:5]:
        starts = (s.start_line for s in project.definitions(path) if s.end_line > s.start_line)
        first = min(starts, default=1 << 30)  # imports below a definition are local
        lines = [one for one in project.imports(path) if one.start_line < first]
        if lines:
            start = lines[0].start_line
            end = min(lines[-1].end_line, start + MAX_IMPORT_LINES)
            passage = Passage(
                path=path, start_line=start, end_line=end, def_line=start, symbol="imports"
            )
            blocks.append(Candidate(passage=passage, score=0.6, why="where names come from"))
    return blocks

"""Can each gate fail? Plants faults on a copy of the workspace, and runs the gates on it."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, filterfalse, islice, zip_longest
from pathlib import Path
from posixpath import splitext
from time import monotonic

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.errors import UsageError
from atlas_retry.events import Emit, Notice, unseen
from atlas_retry.gates.plan import Plan
from atlas_retry.gates.state import is_writer
from atlas_retry.gates.validation import run_gates
from atlas_retry.guard.places import is_build_output, is_product, is_test
from atlas_retry.model import Gate, GateResult, Kind, Status, Tree
from atlas_retry.patterns import regex
from atlas_retry.run.open import OpenWorkspace, beside
from atlas_retry.source.faults import PLANTED, Fault, mutants, planted
from atlas_retry.source.hunks import FileHunk
from atlas_retry.source.origin import is_vendored
from atlas_retry.workspace import place
from atlas_retry.workspace.files import FILE
from atlas_retry.workspace.isolation.isolated import Beside, lock
from atlas_retry.workspace.snapshot import trees

MOST_FILES = 3
"""Files of a language that get a fault at once: a tool's own settings may leave one of them out."""
MAX_FILE_BYTES = 200_000
INTERPRETED = (".py", ".rb", ".php", ".sh", ".bash", ".yaml", ".yml", ".md", ".css")
_CLAIMS_CODE = (Kind.LINT, Kind.FORMAT, Kind.BUILD)
SLOWER, MORE_S = 10, 10.0
"""A fault may make tests wait: their time limit is so much of what they took, and so much more."""
MAX_TOUCHED, TOUCHED_S = 5, 120.0
"""Functions of a fix that get a fault, and the time after which none further does."""
_MIGRATIONS = regex(r"(^|/)migrations/")


class ProvenGate(Struct, frozen=True, kw_only=True):
    """What one gate noticed."""

    gate: str
    kind: Kind
    command: str
    seen: int = 0
    """Of how many planted faults it failed."""
    tried: int = 0
    unseen: tuple[str, ...] = ()
    """Each fault that it did not notice: `path:line: what`."""
    not_covered: tuple[str, ...] = ()
    """Folders with files of its languages in which it noticed nothing, ending with `/`."""
    why_not: str = ""
    """Why nothing was tried."""

    @property
    def is_blind(self) -> bool:
        """Whether it noticed no fault at all."""
        return self.tried > 0 and self.seen == 0


class Planting(Struct, frozen=True, kw_only=True):
    """Where faults are planted, and how many."""

    opened: OpenWorkspace
    how: Plan
    emit: Emit
    functions: int
    """Most functions that get a fault, one after the other."""
    ends_s: float
    """No further one does after this time, as of `time.monotonic`."""


def prove(gates: Sequence[Gate], planting: Planting) -> tuple[ProvenGate, ...]:
    """Show each gate faults, in the order of the gates. The workspace stays as it is.

    Test gates get one exchanged operator or constant in a function at a time, changed ones first;
    the others a wrong piece of code at the end of some files. Raises UsageError without git.
    """
    opened = planting.opened
    if not opened.has_git:
        raise UsageError("atlas prove needs git, to plant faults on a copy", remedy="git init")
    with lock(opened.git):
        base = _run(planting, gates)
        able = [gate for gate in gates if base[gate].status is Status.PASSED]
        files = _sources(trees.DirectoryTree(opened.root, opened.environ))
        proofs = dict[Gate, ProvenGate]()
        for cwd in dict.fromkeys(gate.cwd for gate in able):
            there = {gate: base[gate] for gate in able if gate.cwd == cwd}
            proofs |= _proved_in_folder(planting, there, files, cwd)
    return tuple(
        proofs.get(gate) or _proof(gate, why_not=f"it is {base[gate].status.value} without a fault")
        for gate in gates
    )


def _proved_in_folder(
    planting: Planting, base: Mapping[Gate, GateResult], every: Mapping[str, bytes], cwd: str
) -> dict[Gate, ProvenGate]:
    prefix = "" if cwd == "." else f"{cwd}/"
    files = {path: text for path, text in every.items() if path.startswith(prefix)}
    others = [gate for gate in base if gate.kind is not Kind.TEST]
    tests = {_bounded(gate, base[gate]): gate for gate in base if gate.kind is Kind.TEST}
    proofs = _proved_by_pieces(planting, others, files)
    faults = _chosen_mutants(planting.opened, files) if tests else iter(())
    for gate, proof in _proved_by_mutants(planting, [*tests], faults).items():
        proofs[tests[gate]] = proof
    return proofs


def unproven(
    opened: OpenWorkspace,
    how: Plan,
    base: Mapping[Gate, GateResult],
    touched: Mapping[str, Sequence[FileHunk]],
) -> tuple[str, ...]:
    """Faults in functions with these hunks with which every test gate passes, as `path:line: what`.

    `base` are the gates' results without a fault. The caller holds the workspace's lock.
    """
    able = [gate for gate, result in base.items() if result.status is Status.PASSED]
    tests = [_bounded(gate, base[gate]) for gate in able if gate.kind is Kind.TEST]
    product = filterfalse(is_test, filter(_is_own, touched))
    faults = chain.from_iterable(_in_hunks(opened.root, path, touched[path]) for path in product)
    planting = Planting(
        opened=opened,
        how=how,
        emit=unseen,
        functions=MAX_TOUCHED,
        ends_s=monotonic() + TOUCHED_S,
    )
    proofs = _proved_by_mutants(planting, tests, faults)
    return next((proof.unseen for proof in proofs.values()), ())


def _in_hunks(root: Path, path: str, hunks: Iterable[FileHunk]) -> Iterator[Fault]:
    """The faults of functions that one of these hunks touches."""
    touched = [hunk.new for hunk in hunks]
    for scope, fault in mutants(path, place.read(root, path, MAX_FILE_BYTES) or b""):
        lines = range(scope.start_line - 1, scope.end_line)
        if any(lines.start < new.stop + 1 and new.start < lines.stop for new in touched):
            yield fault


def _proof(gate: Gate, **more: object) -> ProvenGate:
    return ProvenGate(gate=gate.name, kind=gate.kind, command=gate.run, **more)  # type: ignore[arg-type]


def _bounded(gate: Gate, result: GateResult) -> Gate:
    limit_s = result.duration_ms / 1000 * SLOWER + MORE_S
    return replace(gate, timeout_s=min(gate.timeout_s, limit_s))


def _run(
    planting: Planting, gates: Iterable[Gate], faults: Iterable[Fault] = ()
) -> dict[Gate, GateResult]:
    """The results of these gates with the faults in the files.

    Gates that write run alone: `changed` of each are the faults that it has corrected.
    """
    opened = planting.opened
    wrong = {one.path: (_mode(opened, one.path), one.content) for one in faults}
    ran = dict[Gate, GateResult]()
    chosen = [*gates]
    groups = [[gate] for gate in chosen if is_writer(gate)]
    groups.append([gate for gate in chosen if not is_writer(gate)])
    for group in filter(None, groups):
        with beside(opened, group, wrong, planting.how) as (how, there):
            aside = replace(how, watched=None, learns=False)
            ran |= zip(group, run_gates(group, aside).results, strict=True)
            if is_writer(group[0]):
                changed = tuple(path for path in wrong if _content(there, path) != wrong[path][1])
                ran[group[0]] = replace(ran[group[0]], changed=changed)
    return ran


def _mode(opened: OpenWorkspace, path: str) -> str:
    file = place.look(opened.root, path)
    return file.mode if file else FILE


def _content(there: Beside, path: str) -> bytes | None:
    file = there.file(path)
    return file.read_bytes() if file else None


def _notices(result: GateResult) -> bool:
    return not result.success or bool(result.changed)


# --- which files -------------------------------------------------------------------------------


def _sources(tree: Tree) -> dict[str, bytes]:
    """The project's own files of which a fault is known, tests included."""
    read = {path: tree.read(path) or b"" for path in tree.paths() if _is_own(path)}
    return {path: text for path, text in read.items() if 0 < len(text) <= MAX_FILE_BYTES}


def _is_own(path: str) -> bool:
    if path.startswith(".") or splitext(path)[1].lower() not in PLANTED:
        return False
    is_written = is_vendored(path) or _MIGRATIONS.search(path)
    return not (is_written or is_build_output(path) or is_product(path))


def _folder(path: str, above: str) -> str:
    """The first folder below `above`; `./` for its own files."""
    inner = path if above == "." else path.removeprefix(f"{above}/")
    return inner.partition("/")[0] + "/" if "/" in inner else "./"


# --- linters, type checkers, formatters, builds ------------------------------------------------


class _Pieces(Struct, frozen=True, kw_only=True):
    main: list[Fault]
    """In the folder with most of each language's product."""
    beside: list[Fault]
    """In the other folders, one in each."""
    cwd: str

    def folders(self, faults: Iterable[Fault]) -> tuple[str, ...]:
        return tuple(sorted({_folder(fault.path, self.cwd) for fault in faults}))


def _proved_by_pieces(
    planting: Planting, gates: Sequence[Gate], files: Mapping[str, bytes]
) -> dict[Gate, ProvenGate]:
    """First the main folder of each language, then one file in each of the others."""
    if not gates:
        return {}
    pieces = _pieces(files, gates[0].cwd)
    if not pieces.main:
        return {gate: _proof(gate, why_not="no file of a known language") for gate in gates}
    on_main = _run(planting, gates, pieces.main)
    may_differ = [gate for gate in gates if gate.kind in (Kind.LINT, Kind.FORMAT)]
    on_others = _run(planting, may_differ if pieces.beside else (), pieces.beside)
    covered = {gate.kind for gate, result in on_main.items() if _notices(result)}
    return {
        gate: _judged(gate, on_main[gate], on_others.get(gate), pieces, covered) for gate in gates
    }


def _judged(
    gate: Gate,
    on_main: GateResult,
    on_others: GateResult | None,
    pieces: _Pieces,
    covered: Collection[Kind],
) -> ProvenGate:
    can_fail = _proof(gate, tried=1, seen=1)
    if _notices(on_main):
        return replace(can_fail, not_covered=_unnamed(on_main, on_others, pieces))
    if on_others and _notices(on_others) and gate.kind in covered:
        # it is enough if another gate of this kind has the main folder
        return replace(can_fail, not_covered=pieces.folders(pieces.main))
    if gate.kind not in _CLAIMS_CODE:
        return _proof(gate, why_not="it noticed nothing, and may check something else")
    if gate.kind is Kind.BUILD and all(one.path.endswith(INTERPRETED) for one in pieces.main):
        return _proof(gate, why_not="a build of an interpreted language runs none of it")
    return _proof(gate, tried=1, unseen=tuple(map(_shown, pieces.main)))


def _unnamed(on_main: GateResult, on_others: GateResult | None, pieces: _Pieces) -> tuple[str, ...]:
    """The other folders that the gate does not see; none if it names no files.

    Only those with files of the languages that it has named.
    """
    if on_others is None:
        return ()
    languages = {splitext(one.path)[1] for one in _named(on_main, pieces.main)}
    own = [one for one in pieces.beside if splitext(one.path)[1] in languages]
    seen = pieces.folders(_named(on_others, own))
    if _notices(on_others) and not seen:
        return ()
    return tuple(one for one in pieces.folders(own) if one not in seen)


def _pieces(files: Mapping[str, bytes], cwd: str) -> _Pieces:
    product: Counter[tuple[str, str]] = Counter()
    largest = sorted(files, key=lambda path: -len(files[path]))
    for path in largest:
        product[splitext(path)[1], _folder(path, cwd)] += 0 if is_test(path) else len(files[path])
    of_main = dict[str, str]()
    for (language, folder), _ in product.most_common():
        of_main.setdefault(language, folder)
    main, beside = list[str](), dict[tuple[str, str], str]()
    for path in largest:
        language, folder = splitext(path)[1], _folder(path, cwd)
        if folder != of_main[language]:
            beside.setdefault((language, folder), path)
        elif not is_test(path) and sum(splitext(p)[1] == language for p in main) < MOST_FILES:
            main.append(path)
    others = _planted_in(files, beside.values())
    return _Pieces(main=_planted_in(files, main), beside=others, cwd=cwd)


def _planted_in(files: Mapping[str, bytes], paths: Iterable[str]) -> list[Fault]:
    return list(filter(None, (planted(path, files[path]) for path in paths)))


def _named(result: GateResult, faults: Iterable[Fault]) -> list[Fault]:
    named = {*result.changed, *(diagnostic.path for diagnostic in result.diagnostics)}
    return [fault for fault in faults if fault.path in named]


def _shown(fault: Fault) -> str:
    return f"{fault.path}:{fault.line}: {fault.what}"


# --- tests -------------------------------------------------------------------------------------


def _chosen_mutants(opened: OpenWorkspace, files: Mapping[str, bytes]) -> Iterator[Fault]:
    """Faults in functions: changed files first, then what tests name, each file in turn."""
    head = trees.revision_tree(opened.root, "HEAD", environ=opened.environ)
    tests = b"\n".join(text for path, text in files.items() if is_test(path))
    words = {*regex(r"\w+").findall(tests.decode("utf-8", "replace"))}
    ranked: dict[str, list[Fault]] = {}
    for path, text in files.items():
        if is_test(path):
            continue
        found = [(scope.name in words, fault) for scope, fault in mutants(path, text)]
        ranked[path] = [fault for _, fault in sorted(found, key=lambda one: not one[0])]
    head.preload(ranked)
    is_named = {path: splitext(path.rpartition("/")[2])[0] in words for path in ranked}
    order = sorted(
        ranked, key=lambda path: (files[path] == head.read(path), not is_named[path], path)
    )
    turns = zip_longest(*(ranked[path] for path in order))
    return (fault for fault in chain.from_iterable(turns) if fault is not None)


def _proved_by_mutants(
    planting: Planting, gates: Sequence[Gate], faults: Iterator[Fault]
) -> dict[Gate, ProvenGate]:
    """A fault that one test gate notices is none that another has to."""
    if not gates:
        return {}
    seen: Counter[Gate] = Counter()
    tried, left = 0, list[str]()
    for fault in islice(faults, planting.functions):
        if tried and monotonic() > planting.ends_s:
            planting.emit(Notice(text=f"time is up: {tried} functions were tried"))
            break
        planting.emit(Notice(text=f"planted {_shown(fault)}"))
        noticed = [gate for gate, ran in _run(planting, gates, [fault]).items() if _notices(ran)]
        tried += 1
        seen.update(noticed)
        left += [] if noticed else [_shown(fault)]
    why = "" if tried else "no function with an operator or a constant"
    unseen = tuple(left)
    return {g: _proof(g, seen=seen[g], tried=tried, unseen=unseen, why_not=why) for g in gates}

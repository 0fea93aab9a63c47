"""Turns what was read into `Settings`, and checks keys against each other."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.config.checking import refused, together, without_secrets
from atlas_retry.config.files import ConfigFile, ConfigSources, processors
from atlas_retry.config.keys import (
    Check,
    CommandGate,
    CommandKeys,
    Configuration,
    QualityGate,
    ReviewGate,
)
from atlas_retry.config.neutralised import neutraliser
from atlas_retry.config.reading import Reading, read_sources
from atlas_retry.config.sources import Path, Sources, dotted
from atlas_retry.diagnostics.tools import short_name
from atlas_retry.errors import ConfigError, near
from atlas_retry.model import WRITERS, Gate, Kind, ReportFile
from atlas_retry.settings import CLI_BACKENDS, UNLIMITED_ATTEMPTS, Settings, seconds
from atlas_retry.text.file_names import is_misplaced
from atlas_retry.text.redaction import redact

MANY_ATTEMPTS = 5


class Understood(Struct, frozen=True, kw_only=True):
    """A valid configuration."""

    settings: Settings
    reading: Reading


def understand(given: ConfigSources, overrides: Mapping[str, object]) -> Understood:
    """The settings of these sources. Raises one ConfigError with all problems."""
    reading = read_sources(given, overrides)
    top, sources = reading.configuration, reading.sources
    gates = tuple(_named(_written_gates(top)))
    configured = _Configured(top, sources, given, gates)
    contradictions = (*configured.contradictions(), *configured.impossible_here())
    if contradictions:
        raise together([refused(path, words, sources) for path, words in contradictions])
    if not gates:
        nothing = ConfigError(
            "nothing to validate: no gate is configured",
            place=sources.place(("validation",), of_key=True),
            remedy='add one, for example  validation: {test: ["pytest -q"]}',
        )
        raise together([nothing])
    warnings = (*configured.warnings(), *chain.from_iterable(map(_secrets, reading.files)))
    jobs = processors() if top.validation.jobs == "auto" else top.validation.jobs
    attempts = ("retry", "max_ai_retry_attempts")
    unlimited = top.retry.max_ai_retry_attempts is None
    most = UNLIMITED_ATTEMPTS if unlimited else top.retry.max_ai_retry_attempts
    # the default model names are Claude's
    is_chosen = top.agent.backend not in CLI_BACKENDS or sources.sets(("agent", "models"))
    settings = Settings(
        gates=tuple(_gate(each, top, given.folder) for each in gates),
        jobs=jobs if top.validation.parallel else 1,
        auto_jobs=top.validation.jobs == "auto" and top.validation.parallel,
        setup=top.validation.setup,
        retry=top.retry,
        ai_retry_origin=sources.origin(("retry", "ai_retry_enabled")) or "the defaults",
        attempts_configured=most if sources.sets(attempts) else None,
        agent=top.agent if is_chosen else replace(top.agent, models=()),
        context=top.context,
        prompt=top.prompt,
        guard=top.guard,
        hook=top.hook,
        batch=top.batch,
        budgets=tuple(top.budgets.items()),
        triage_baseline=top.triage.baseline,
        triage_place=without_secrets(sources.place(("triage", "baseline"))),
        parsers=tuple(top.parsers.items()),
        sources=tuple(file.path for file in reading.files if file.path.startswith("/")),
        warnings=warnings,
    )
    return Understood(settings=settings, reading=reading)


# --- gates -----------------------------------------------------------------------------------


class _WrittenGate(Struct, frozen=True, kw_only=True):
    """One gate as configured."""

    path: Path
    kind: Kind
    keys: Check
    run: str = ""
    name: str
    is_own: bool
    """Whether the name was written, and not derived from the command or the kind."""


def _written_gates(top: Configuration) -> Iterator[_WrittenGate]:
    """All gates by `Kind`, then in order; those of `quality_gates` last."""
    quality = list(_quality_gates(top.quality_gates))
    for kind in Kind:
        key = kind.value.replace("-", "_")
        gates: tuple[str | CommandGate | ReviewGate, ...] = getattr(top.validation, key)
        for position, written in enumerate(gates):
            keys = CommandGate(run=written) if isinstance(written, str) else written
            run = keys.run.strip() if isinstance(keys, CommandGate) else ""
            yield _WrittenGate(
                path=("validation", key, position),
                kind=kind,
                keys=keys,
                run=run,
                name=keys.name or short_name(run),
                is_own=keys.name is not None,
            )
        yield from (each for each in quality if each.kind is kind)


def _quality_gates(gates: Sequence[QualityGate]) -> Iterator[_WrittenGate]:
    kinds = {kind.value: kind for kind in Kind if kind is not Kind.REVIEW}
    for position, keys in enumerate(gates):
        kind = kinds.get(keys.name.replace("_", "-"))
        yield _WrittenGate(
            path=("quality_gates", position),
            kind=kind or Kind.CUSTOM,
            keys=keys,
            run=keys.command.strip(),
            name=keys.name,
            is_own=kind is None,
        )


def _named(written: Iterable[_WrittenGate]) -> Iterator[_WrittenGate]:
    """The gates with a name each: a derived one that is taken gets a number."""
    gates = tuple(written)
    taken = {each.name for each in gates if each.is_own}
    repeated: Counter[str] = Counter()
    for each in gates:
        name = each.name
        while name in taken and not each.is_own:
            repeated[each.name] += 1
            name = f"{each.name} {repeated[each.name] + 1}"
        taken.add(name)
        yield replace(each, name=name)


def _gate(written: _WrittenGate, whole: Configuration, folder: str) -> Gate:
    gate = written.keys
    review = gate if isinstance(gate, ReviewGate) else None
    keys = gate if isinstance(gate, CommandKeys) else CommandKeys()
    report, cannot_fail = keys.report, neutraliser(written.run)
    return Gate(
        name=written.name,
        kind=written.kind,
        run=written.run,
        prompt=review.prompt if review else None,
        fix=keys.fix,
        recheck=keys.recheck,
        required=gate.required and not cannot_fail,
        max_retries=gate.max_retries,
        timeout_s=seconds(gate.timeout or whole.validation.timeout),
        cwd=_joined(folder, keys.cwd),
        env=tuple(keys.env.items()),
        pass_env=tuple(keys.pass_env),
        inputs=tuple(keys.inputs),
        files=tuple(keys.files),
        after=tuple(keys.after),
        only_in_ci=keys.when == "ci",
        writes=written.kind in WRITERS if keys.writes is None else keys.writes,
        accepts_baseline=(keys.accept or whole.triage.accept) == "baseline",
        trusts_exit_code=keys.exit_code == "trust",
        cannot_fail=cannot_fail,
        keep_daemons=keys.keep_daemons,
        network=keys.network != "none",
        parser=keys.parser,
        report=ReportFile(format=report.format, path=report.path) if report else None,
        agent=review.agent if review else None,
        paths=tuple(review.paths) if review else (),
    )


def _joined(folder: str, cwd: str) -> str:
    parts = [name for name in (*folder.split("/"), *cwd.split("/")) if name not in ("", ".")]
    return "/".join(parts) or "."


# --- contradictions between keys ---------------------------------------------------------------


Problem = tuple[Path, str]
"""What is wrong, and where."""


def _misplaced_files(path: Path, keys: CommandKeys) -> Iterator[Problem]:
    for key in ("run", "command", "fix", "recheck"):
        if is_misplaced(getattr(keys, key, None) or ""):
            yield (*path, key), "{files} must be a word of its own: it becomes several"


def _known(name: str, names: Sequence[str]) -> str:
    return near(name, names) or f"; known: {', '.join(names)}"


def _secrets(file: ConfigFile) -> Iterator[str]:
    text = file.content.decode("utf-8-sig")
    lines = zip(text.split("\n"), redact(text).split("\n"), strict=True)
    for number, (line, shown) in enumerate(lines, start=1):
        if line != shown:
            yield (
                f"{file.name}:{number}: a secret in plain text: {shown.strip()}"
                " (keep it in the environment and name it in pass_env)"
            )


class _Configured(Struct, frozen=True):
    """A configuration whose values are valid, each on its own."""

    top: Configuration
    sources: Sources
    given: ConfigSources
    gates: Sequence[_WrittenGate]

    def contradictions(self) -> Iterator[Problem]:
        """Keys that are valid on their own but not together."""
        if self.top.agent.backend == "command" and self.top.agent.command is None:
            yield ("agent", "backend"), "the command backend needs agent.command"
        cascade = self.top.batch.cascade_detection
        if cascade.threshold > cascade.window_size:
            words = f"more than the window_size of {cascade.window_size}"
            yield ("batch", "cascade_detection", "threshold"), words
        first: dict[str, _WrittenGate] = {}
        for each in self.gates:
            if (other := first.setdefault(each.name, each)) is not each:
                words = f"{dotted(other.path)} has the name {each.name!r} as well"
                yield (*each.path, "name"), words
        known = list(dict.fromkeys([*Kind, *first]))
        for name in self.top.prompt.gates:
            if name not in known:
                words = f"no kind or gate of that name{_known(name, known)}"
                yield ("prompt", "gates", name), words
        yield from self._impossible_orders(first)

    def _impossible_orders(self, named: Mapping[str, _WrittenGate]) -> Iterator[Problem]:
        """Problems of `after`: names of no gate, and gates that wait for each other."""
        waits = {name: getattr(each.keys, "after", ()) for name, each in named.items()}
        for name, each in named.items():
            for other in (other for other in waits[name] if other not in named):
                words = f"{other!r}: no gate of that name{_known(other, [*named])}"
                yield (*each.path, "after"), words
        try:
            TopologicalSorter(waits).prepare()
        except CycleError as error:
            for name in dict.fromkeys(error.args[1]):
                yield (*named[name].path, "after"), f"{name} would wait for itself"

    def impossible_here(self) -> Iterator[Problem]:
        """What a repository cannot say, or this one has not."""
        for name in self.top.budgets if self.given.root else ():
            if self.sources.place(("budgets", name)).source in self.sources.project:
                words = "a repository cannot set a user's budget: use ~/.config/atlas/config.yaml"
                yield ("budgets", name), words
        for each in self.gates:
            if isinstance(each.keys, CommandKeys):
                yield from self._impossible_keys(each.path, each.keys)
                yield from _misplaced_files(each.path, each.keys)

    def _impossible_keys(self, path: Path, keys: CommandKeys) -> Iterator[Problem]:
        cwd = _joined(self.given.folder, keys.cwd)
        if not self.given.is_folder(cwd):
            yield (*path, "cwd"), f"{cwd} is not a folder of the repository"
        if keys.accept == "baseline" and self.top.triage.baseline is None:
            yield (*path, "accept"), "needs triage.baseline, a revision"
        if keys.parser or keys.report:
            from atlas_retry.diagnostics import PARSERS, REPORT_FORMATS

            parsers = [*self.top.parsers, *PARSERS]
            if keys.parser and keys.parser not in parsers:
                yield (*path, "parser"), f"no parser {keys.parser!r}{_known(keys.parser, parsers)}"
            if keys.report and keys.report.format not in REPORT_FORMATS:
                name = keys.report.format
                words = f"no format {name!r}{_known(name, [*REPORT_FORMATS])}"
                yield (*path, "report", "format"), words

    def warnings(self) -> Iterator[str]:
        """Warnings about allowed but unwise values."""
        limits = [((*each.path, "max_retries"), each.keys.max_retries) for each in self.gates]
        limits.append((("retry", "max_ai_retry_attempts"), self.top.retry.max_ai_retry_attempts))
        for path, limit in limits:
            if limit is not None and limit > MANY_ATTEMPTS:
                where = f"{self.sources.place(path)}: {dotted(path)}"
                yield f"{where}: more than {MANY_ATTEMPTS} attempts seldom help"

"""Turns what was read into `Settings`, and checks keys against each other."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from atlas_retry.config.reading import Reading, read
from atlas_retry.config.sources import Path, Sources, dotted
from atlas_retry.diagnostics.tools import short_name
from atlas_retry.errors import ConfigError, near
from atlas_retry.model import Gate, Kind, ReportFile
from atlas_retry.settings import CLI_BACKENDS, UNLIMITED_ATTEMPTS, Settings, seconds
from atlas_retry.text.redaction import redact

MANY_ATTEMPTS = 5
WRITERS = (Kind.FORMAT, Kind.PRE_COMMIT)


class Understood(Struct, frozen=True, kw_only=True):
    """A valid configuration."""

    settings: Settings
    reading: Reading


def understand(given: ConfigSources, overrides: Mapping[str, object]) -> Understood:
    """The settings of these sources. Raises one ConfigError with all problems."""
    reading = read(given, overrides)
    top, sources = reading.configuration, reading.sources
    if wrong := tuple(_contradictions(top, sources, given)):
        raise together(wrong)
    gates = tuple(_written_gates(top))
    if not gates:
        nothing = ConfigError(
            "nothing to validate: no gate is configured",
            place=sources.place(("validation",), of_key=True),
            remedy='add one, for example  validation: {test: ["pytest -q"]}',
        )
        raise together((nothing,))
    warnings = (*_warnings(gates, top, sources), *chain.from_iterable(map(_secrets, reading.files)))
    settings = _settings(gates, reading, given.folder)
    return Understood(settings=replace(settings, warnings=warnings), reading=reading)


def _settings(gates: "Sequence[_WrittenGate]", reading: Reading, folder: str) -> Settings:
    top, sources = reading.configuration, reading.sources
    jobs = processors() if top.validation.jobs == "auto" else top.validation.jobs
    attempts = ("retry", "max_ai_retry_attempts")
    unlimited = top.retry.max_ai_retry_attempts is None
    configured = UNLIMITED_ATTEMPTS if unlimited else top.retry.max_ai_retry_attempts
    # the default model names are Claude's
    is_chosen = top.agent.backend not in CLI_BACKENDS or sources.sets(("agent", "models"))
    return Settings(
        gates=tuple(
            _gate(each, name, top, folder) for each, name in zip(gates, _names(gates), strict=True)
        ),
        jobs=jobs if top.validation.parallel else 1,
        auto_jobs=top.validation.jobs == "auto" and top.validation.parallel,
        retry=top.retry,
        ai_retry_origin=sources.origin(("retry", "ai_retry_enabled")) or "the defaults",
        attempts_configured=configured if sources.sets(attempts) else None,
        agent=top.agent if is_chosen else replace(top.agent, models=()),
        context=top.context,
        prompt=top.prompt,
        guard=top.guard,
        batch=top.batch,
        budgets=tuple(top.budgets.items()),
        triage_baseline=top.triage.baseline,
        triage_place=without_secrets(sources.place(("triage", "baseline"))),
        parsers=tuple(top.parsers.items()),
        sources=tuple(file.path for file in reading.files if file.path.startswith("/")),
    )


# --- gates -----------------------------------------------------------------------------------


class _WrittenGate(Struct, frozen=True):
    """One gate as configured."""

    path: Path
    kind: Kind
    gate: Check
    run: str = ""


def _written_gates(top: Configuration) -> Iterator[_WrittenGate]:
    """All gates by `Kind`, then in order; those of `quality_gates` last."""
    quality = list(_quality_gates(top.quality_gates))
    for kind in Kind:
        key = kind.value.replace("-", "_")
        gates: tuple[str | CommandGate | ReviewGate, ...] = getattr(top.validation, key)
        for position, written in enumerate(gates):
            gate = CommandGate(run=written) if isinstance(written, str) else written
            run = gate.run.strip() if isinstance(gate, CommandGate) else ""
            yield _WrittenGate(("validation", key, position), kind, gate, run)
        yield from (each for each in quality if each.kind is kind)


def _quality_gates(gates: Sequence[QualityGate]) -> Iterator[_WrittenGate]:
    kinds = {kind.value: kind for kind in Kind if kind is not Kind.REVIEW}
    for position, gate in enumerate(gates):
        kind = kinds.get(gate.name.replace("_", "-"), Kind.CUSTOM)
        yield _WrittenGate(("quality_gates", position), kind, gate, gate.command.strip())


def _names(gates: Iterable[_WrittenGate]) -> Iterator[str]:
    """Names of the gates; repeated derived names get a number."""
    seen: Counter[str] = Counter()
    for each in gates:
        name = each.gate.name or short_name(each.run)
        seen[name] += 1
        yield f"{name} {seen[name]}" if each.gate.name is None and seen[name] > 1 else name


def _gate(written: _WrittenGate, name: str, whole: Configuration, folder: str) -> Gate:
    gate = written.gate
    review = gate if isinstance(gate, ReviewGate) else None
    keys = gate if isinstance(gate, CommandKeys) else CommandKeys()
    report = keys.report
    return Gate(
        name=name,
        kind=written.kind,
        run=written.run,
        prompt=review.prompt if review else None,
        fix=keys.fix,
        recheck=keys.recheck,
        required=gate.required,
        max_retries=gate.max_retries,
        timeout_s=seconds(gate.timeout or whole.validation.timeout),
        cwd=_joined(folder, keys.cwd),
        env=tuple(keys.env.items()),
        pass_env=tuple(keys.pass_env),
        inputs=tuple(keys.inputs),
        after=tuple(keys.after),
        only_in_ci=keys.when == "ci",
        writes=written.kind in WRITERS if keys.writes is None else keys.writes,
        accepts_baseline=(keys.accept or whole.triage.accept) == "baseline",
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


def _contradictions(
    top: Configuration, sources: Sources, given: ConfigSources
) -> Iterator[ConfigError]:
    """Errors about keys that are valid on their own but not together."""
    gates = tuple(_written_gates(top))
    if top.agent.backend == "command" and top.agent.command is None:
        path: Path = ("agent", "backend")
        yield refused(path, "the command backend needs agent.command", sources)
    for name in top.budgets:
        if given.root and sources.place(("budgets", name)).source in sources.project:
            words = "a repository cannot set a user's budget: use ~/.config/atlas/config.yaml"
            yield refused(("budgets", name), words, sources)
    cascade = top.batch.cascade_detection
    if cascade.threshold > cascade.window_size:
        path = ("batch", "cascade_detection", "threshold")
        yield refused(path, f"more than the window_size of {cascade.window_size}", sources)
    yield from _unknown_gates(top, gates, sources)
    yield from _impossible_orders(gates, sources)
    for each in gates:
        yield from _impossible(each, top, sources, given)


def _impossible(
    each: _WrittenGate, top: Configuration, sources: Sources, given: ConfigSources
) -> Iterator[ConfigError]:
    if not isinstance(each.gate, CommandKeys):
        return
    cwd = _joined(given.folder, each.gate.cwd)
    if not given.is_folder(cwd):
        yield refused((*each.path, "cwd"), f"{cwd} is not a folder of the repository", sources)
    if each.gate.accept == "baseline" and top.triage.baseline is None:
        yield refused((*each.path, "accept"), "needs triage.baseline, a revision", sources)
    if each.gate.parser or each.gate.report:
        yield from _unknown_readers(each.path, each.gate, top, sources)


def _unknown_readers(
    path: Path, gate: CommandKeys, top: Configuration, sources: Sources
) -> Iterator[ConfigError]:
    from atlas_retry.diagnostics import PARSERS, REPORT_FORMATS

    parsers = [*top.parsers, *PARSERS]
    if gate.parser and gate.parser not in parsers:
        words = f"no parser {gate.parser!r}{near(gate.parser, parsers) or _known(parsers)}"
        yield refused((*path, "parser"), words, sources)
    if gate.report and gate.report.format not in REPORT_FORMATS:
        name = gate.report.format
        words = f"no format {name!r}{near(name, [*REPORT_FORMATS]) or _known([*REPORT_FORMATS])}"
        yield refused((*path, "report", "format"), words, sources)


def _known(names: Sequence[str]) -> str:
    return f"; known: {', '.join(names)}"


def _unknown_gates(
    top: Configuration, gates: tuple[_WrittenGate, ...], sources: Sources
) -> Iterator[ConfigError]:
    names = [each.gate.name or short_name(each.run) for each in gates]
    known = list(dict.fromkeys([*Kind, *names]))
    for name in top.prompt.gates:
        if name not in known:
            words = f"no kind or gate of that name{near(name, known) or _known(known)}"
            yield refused(("prompt", "gates", name), words, sources)


def _impossible_orders(gates: tuple[_WrittenGate, ...], sources: Sources) -> Iterator[ConfigError]:
    """Errors about `after`: names of no gate, and gates that wait for each other."""
    named = dict(zip(_names(gates), gates, strict=True))
    commands = {n: e.gate for n, e in named.items() if isinstance(e.gate, CommandKeys)}
    waits = {name: keys.after for name, keys in commands.items()}
    for name, before in waits.items():
        path: Path = (*named[name].path, "after")
        for other in (other for other in before if other not in named):
            words = f"no gate of that name{near(other, [*named]) or _known([*named])}"
            yield refused(path, f"{other!r}: {words}", sources)
        if name in _ahead_of(name, waits):
            yield refused(path, f"{name} would wait for itself", sources)


def _ahead_of(name: str, waits: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Every gate that ends before this one starts."""
    ahead, open_names = set[str](), [*waits[name]]
    while open_names:
        if (other := open_names.pop()) not in ahead:
            ahead.add(other)
            open_names += waits.get(other, ())
    return ahead


# --- warnings ---------------------------------------------------------------------------------


def _warnings(
    gates: "Sequence[_WrittenGate]", top: Configuration, sources: Sources
) -> Iterator[str]:
    """Warnings about allowed but unwise values."""
    limits = [((*each.path, "max_retries"), each.gate.max_retries) for each in gates]
    limits.append((("retry", "max_ai_retry_attempts"), top.retry.max_ai_retry_attempts))
    for path, limit in limits:
        if limit is not None and limit > MANY_ATTEMPTS:
            where = f"{sources.place(path)}: {dotted(path)}"
            yield f"{where}: more than {MANY_ATTEMPTS} attempts seldom help"


def _secrets(file: ConfigFile) -> Iterator[str]:
    text = file.content.decode("utf-8-sig")
    lines = zip(text.split("\n"), redact(text).split("\n"), strict=True)
    for number, (line, shown) in enumerate(lines, start=1):
        if line != shown:
            yield (
                f"{file.name}:{number}: a secret in plain text: {shown.strip()}"
                " (keep it in the environment and name it in pass_env)"
            )

"""The HTML report: one file that needs no other, no script and no network."""

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from importlib.resources import files
from xml.etree.ElementTree import Element

from atlas_retry import __version__
from atlas_retry.diagnostics.counting import course_of
from atlas_retry.model import Outcome, Verdict
from atlas_retry.reports.page.attempts import attempts
from atlas_retry.reports.page.course import course
from atlas_retry.reports.page.elements import Node, html, tag
from atlas_retry.reports.page.gates import gates
from atlas_retry.reports.phrases import fraction, headline, next_steps
from atlas_retry.reports.subject import Subject
from atlas_retry.text.units import counted, seconds, spent


def report(subject: Subject) -> str:
    """Verdict, course, gates as they stand, attempts, and the state before the first one."""
    sign = "✓" if subject.success else "✗"
    title = f"{sign} {subject.workspace.name}: {headline(subject)}"
    return html(document(title, _body(subject, sign)))


def document(title: str, body: Node) -> Element:
    """A whole page that loads nothing, with our style."""
    return tag("html", _head(title), body, lang="en")


def _head(title: str) -> Node:
    sheet = (files(__package__) / "page.css").read_text(encoding="utf-8")
    # the page's policy allows this style sheet and no other
    digest = b64encode(sha256(sheet.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        tag("style", sheet),
    )


def _body(subject: Subject, sign: str) -> Node:
    run = subject.run
    return tag(
        "body",
        tag("a", "Skip to the gates", href="#gates", class_="skip"),
        _verdict(subject, sign),
        tag(
            "main",
            course(run) if run and run.attempts else None,
            tag(
                "section",
                tag("h2", "Gates now" if run else "Gates"),
                gates(subject.validation, unfolded=True),
                id="gates",
            ),
            *(attempts(subject, run) if run else ()),
        ),
        tag("footer", f"atlas {__version__}"),
    )


def _verdict(subject: Subject, sign: str) -> Node:
    weight = "good" if subject.success else "bad"
    if subject.run and subject.run.verdict in (Verdict.INTERRUPTED, Verdict.BROKEN):
        sign, weight = "!", "warn"
    where = subject.workspace
    dirty = " with uncommitted changes" if where.dirty else ""
    head = f"{where.head[:12]}{dirty}" if where.head else None
    return tag(
        "header",
        tag("p", where.name, class_="workspace"),
        tag("h1", tag("span", sign, class_="sign", aria_hidden="true"), headline(subject)),
        *(_outcome(subject.run) if subject.run else ()),
        tag(
            "p",
            *(tag("span", fact) for fact in _facts(subject)),
            tag("span", tag("code", head)) if head else None,
            class_="facts",
        ),
        class_=weight,
    )


def _outcome(run: Outcome) -> Iterable[Node]:
    if run.final_error:
        yield tag("p", run.final_error)
    if problems := course_of(run):
        yield tag("p", f"Problems: {problems}")
    yield from (tag("p", f"{text}: ", tag("code", command)) for text, command in next_steps(run))
    if run.learning_record_id:
        yield tag("p", "Recorded as ", tag("code", run.learning_record_id))


def _facts(subject: Subject) -> Iterable[str]:
    run, validation = subject.run, subject.validation
    yield fraction(validation)
    if run:
        yield counted(len(run.attempts), "attempt")
        yield spent(run.cost_usd, run.interrupted_usd)
    yield seconds(run.duration_ms if run else validation.duration_ms)
    if validation.completed_at or validation.started_at:
        yield (validation.completed_at or validation.started_at)[:19].replace("T", " ") + " UTC"
    if run:
        yield f"run {run.run_id}"

"""Parses the output of test runners that are no row of `blocks`, and that of pre-commit."""

import re
from collections.abc import Iterator, Sequence
from itertools import filterfalse, pairwise, takewhile

from msgspec.structs import replace

from atlas_retry.diagnostics.failures import (
    PHP_FRAME,
    RUBY_FRAME,
    above,
    failure,
    first_match,
    java_frames,
    javascript_frames,
    matching,
    php_frames,
    ruby_frames,
    rust_frames,
    shortened,
    tap_frames,
    titled,
)
from atlas_retry.diagnostics.lines import NODE
from atlas_retry.diagnostics.table import groups
from atlas_retry.diagnostics.values import Located, Log, parses
from atlas_retry.model import Diagnostic, Frame
from atlas_retry.patterns import regex

# https://doc.rust-lang.org/rustc/tests/index.html: with --nocapture, panics are where they happen,
# also those that are expected, and only the list at the end says which tests failed
_CARGO_BLOCK = regex(r"^---- (.+) stdout ----$")
_CARGO_LIST, _CARGO_NAMED = regex(r"^failures:$"), regex(r"^ {4}(\S.*)$")
_CARGO_PANIC = regex(
    r"^thread '(.+)' (?:\(\d+\) )?panicked at (?P<path>[^:]+):(?P<line>\d+):(?P<column>\d+):$"
)
_CARGO_TRACE = regex(r"^note: run with |^stack backtrace:|^$")
_CARGO_END = regex(r"^test .+ \.\.\. |^failures:$|^test result: |^thread '")


@parses(
    "cargo-test-uncaptured", commands=("cargo test", "cargo t"), marks=("\ntest result: FAILED",)
)
def cargo_uncaptured(log: Log) -> Iterator[Located]:
    """The failed tests whose panics were printed where they happened."""
    lines = log.lines
    quoted = {match[1] for match in matching(lines, _CARGO_BLOCK).values()}
    panics = {match[1]: (at, match) for at, match in matching(lines, _CARGO_PANIC).items()}
    failed: dict[int, str] = {}  # by the line in a list of failures
    for start in matching(lines, _CARGO_LIST):
        named = takewhile(_CARGO_NAMED.match, lines[start + 1 :])
        failed.update(enumerate(map(str.strip, named), start + 1))
    for number, name in failed.items():
        if name in panics and name not in quoted:
            at, place = panics[name]
            body = above(lines[at + 1 :], _CARGO_END)
            message, frames = above(body, _CARGO_TRACE), rust_frames(body)
            problem = failure("cargo-test", message, frames, name, place.groupdict())
            yield Located(replace(problem, rule_id="panic"), at, at + len(body))
        elif name not in quoted:
            yield Located(failure("cargo-test", (), (), name, {}), number, number)


# https://maven.apache.org/surefire/maven-surefire-plugin/
_MAVEN_TITLE = regex(r"""(?x)^
    (?:\[ERROR\][ ])?
    (?P<name>[\w.$]+(?:\(.*?\))?(?:\[[^\]]*\])?)  # a method, its parameters and their number
    (?:\((?P<owner>[\w.$]+)\))?
    (?:[ ]--|)[ ]{1,2}Time[ ]elapsed:[ ][\d.,]+[ ]s(?:ec)?
    [ ]+<<<[ ](?:FAILURE|ERROR)!
    $""")
_MAVEN_RAISED = regex(r"^([\w.$]+)(?::|$)")
_MAVEN_STACK = regex(r"\tat ")


@parses("maven", commands=("mvn", "mvnw", "mvnd"), marks=("Tests run: ", "No tests to run."))
def maven(log: Log) -> Iterator[Located]:
    """The failing methods, each with its stack."""
    lines = log.lines
    for first, title in matching(lines, _MAVEN_TITLE).items():
        after = (n for n in range(first + 1, len(lines)) if _ends_failure(lines, n))
        last = next(after, len(lines)) - 1
        name = title["name"]
        owner = title["owner"] or name.partition("(")[0].partition("[")[0].rpartition(".")[0]
        body = lines[first + 1 : last + 1]
        raised = first_match(_MAVEN_RAISED, body[:1])
        test_id = name if name.startswith(owner) else f"{owner}.{name}"
        message = above(body, _MAVEN_STACK)
        problem = failure("maven", message, java_frames(body, owner), test_id, {})
        rule = raised[1].rpartition(".")[2] if raised else None
        yield Located(replace(problem, rule_id=rule), first, last)


def _ends_failure(lines: Sequence[str], number: int) -> bool:
    """Whether it is another title, or the empty line after the stack, not one in the message."""
    below = lines[number + 1] if number + 1 < len(lines) else ""
    is_over = not below.strip() or below.startswith("[") or _MAVEN_TITLE.match(below)
    is_end = not lines[number].strip() and is_over
    return bool(is_end or _MAVEN_TITLE.match(lines[number]))


_STACK = regex(r"^ +at | \u276f ")

# https://mochajs.org/running/reporters; lib/reporters/base.js: Base.list, epilogue
_MOCHA_LIST = regex(r"^  \d+ failing$")
_MOCHA_TITLE = regex(r"^  \d+\) (\S.*)$")
_MOCHA_END = regex(r"^(?:-{5,}|={5,}|npm (?:ERR!|error) )")
_MOCHA_HOOK = regex(r'^"(?:before|after)(?: each| all)?" hook(?:: .+)? for "(.+)"$')
_MOCHA_TIMED_OUT = regex(r"^ *Error: Timeout of .+ \((\S+)\)$")


@parses("mocha", commands=("mocha",), marks=(" passing (",))
def mocha(log: Log) -> Iterator[Located]:
    """The failures in the list at the end; the titles above it have no messages."""
    start = max(matching(log.lines, _MOCHA_LIST), default=len(log.lines))
    lines = log.lines[start:]
    for first, last, _ in titled(lines, _MOCHA_TITLE, _MOCHA_END):
        names = _mocha_names(lines[first : last + 1])
        body = lines[first + len(names) : last + 1]
        frames = javascript_frames(body)
        timed_out = first_match(_MOCHA_TIMED_OUT, body)
        file = timed_out[1] if timed_out else ""
        if frames:
            file = frames[0].path
        title = " > ".join(names)
        test_id = f"{file}::{title}" if file else title
        problem = failure("mocha", above(body, _STACK), frames, test_id, {"path": file})
        yield Located(problem, start + first, start + last)


def _mocha_names(lines: Sequence[str]) -> list[str]:
    """Names of suites and test, one a line, the last with a colon; for a hook, its test."""
    title = _MOCHA_TITLE.match(lines[0])
    names = [title[1] if title else lines[0].strip()]
    for line in lines[1:]:
        if names[-1].endswith(":") or not line.strip():
            break
        names.append(line.strip())
    names[-1] = names[-1].removesuffix(":")
    hook = _MOCHA_HOOK.match(names[-1])
    return [*names[:-1], hook[1]] if hook else names


# https://github.com/avajs/ava, lib/reporters/default.js: writeFailure, writeErr
_AVA_PLACE = regex(r"^  (?P<path>\S+\.[cm]?[jt]sx?):(?P<line>\d{1,9})$")
_AVA_CODE = regex(r"^ {1,7}\d{1,9}: ")
_AVA_STACK = regex(r"^  \u203a ")
_AVA_END = regex(r"^  \u2500+$")


@parses("ava", commands=("ava",), marks=(" test failed", " tests failed"))
def ava(log: Log) -> Iterator[Located]:
    """The failures after the first rule: a title, an empty line, a place, then the message."""
    lines = log.lines
    rules = list(matching(lines, _AVA_END))
    if not rules:
        return
    places = matching(lines, _AVA_PLACE)
    below = [n for n in places if n - 2 > rules[0]]
    titles = [n - 2 for n in below if not lines[n - 1]]
    stops = sorted({*titles, *rules, len(lines)})
    for first in titles:
        after = next(stop for stop in stops if stop > first)
        where = places[first + 2].groupdict()
        body = [*filterfalse(_AVA_CODE.match, lines[first + 3 : after])]
        message = [*filter(str.strip, above(body, _AVA_STACK))]
        frames = javascript_frames([_AVA_STACK.sub("    at ", line) for line in body])
        test_id = f"{where['path']}::{lines[first].strip()}"
        yield Located(failure("ava", message, frames, test_id, where), first, after - 1)


# https://nodejs.org/api/test.html#test-reporters; https://testanything.org
_NODE_AT = regex(r"^test at (?P<path>.+?):(?P<line>\d+):(?P<column>\d+)$")
_NODE_SPEC = regex(r"^✖ (.+?) \([\d.]+ms\)$")
_TAP = regex(r"^ *not ok \d+(?!.*# (?:TODO|SKIP)\b)(?: -)?(?: (.+))?$")
_TAP_COMMENT = regex(r"^\s*#")
_TAP_AT = regex(r"^\s*#.*?(?:at|in test file) (?P<path>[^\s,]+)(?:,| ) ?line (?P<line>\d+)")
_TAP_BEGIN, _TAP_END = regex(r"^ *---$"), regex(r"^ *\.\.\.$")
_TAP_PLACE = regex(r"^ *location: '?(?P<path>[^']+?):(?P<line>\d+):(?P<column>\d+)'?$")
_TAP_VALUE = regex(r"^ *(?:expected|actual) *: (?!\|)")
_TAP_ERROR = regex(r"^( *)error: (?:\|-?|'(.*)'|\"(.*)\"|(.*))$")
_MAX_TAP_LINES = 200
_NODE_FILE_FAILED = "test failed"


@parses("node-test", commands=("--test",), marks=("TAP version 1", "\nnot ok ", "\n\u2139 tests "))
def node_test(log: Log) -> list[Located]:
    """The failures below `failing tests:`, and those in the Test Anything Protocol."""
    lines = log.lines
    failures = [*_node_spec(lines), *_tap(lines)]
    if any(f.diagnostic.message == _NODE_FILE_FAILED for f in failures):
        plain = tuple(line.removeprefix("# ") for line in lines)
        failures += NODE.read(Log(plain, ""))
    return failures


def _node_spec(lines: Sequence[str]) -> Iterator[Located]:
    """The failures below `failing tests:`, each with its place."""
    places = matching(lines, _NODE_AT)
    for first, after in pairwise((*places, len(lines))):
        title = first_match(_NODE_SPEC, lines[first + 1 : min(first + 2, after)])
        if title:
            body = lines[first + 2 : after]
            frames = javascript_frames(body)
            message = [line for line in above(body, _STACK) if line.strip()]
            if len(message) == 1:  # a string that was thrown
                message = [message[0].strip().strip("'")]
            problem = _node_failure(title[1], message, frames, places[first].groupdict())
            yield Located(problem, first, after - 1)


def _tap(lines: Sequence[str]) -> Iterator[Located]:
    for first, title in matching(lines, _TAP).items():
        name = title[1] or ""
        below = lines[first + 1 : first + _MAX_TAP_LINES]
        body = above(below, _TAP_END)
        if len(body) == len(below) or not _TAP_BEGIN.match(body[0] if body else ""):
            # comments explain it: Perl's Test::More and bats
            comments = list(takewhile(_TAP_COMMENT.match, below))
            message = [name, *(line.strip().removeprefix("#") for line in comments)]
            where = groups(first_match(_TAP_AT, comments))
            problem = failure("tap", message, (), name or None, where)
            yield Located(problem, first, first + len(comments))
        elif not any("subtestsFailed" in line for line in body):
            yield Located(_tap_problem(name, body), first, first + len(body) + 1)


def _tap_problem(name: str, body: Sequence[str]) -> Diagnostic:
    """The problem that a block of YAML describes; only Node's has a location."""
    if where := groups(first_match(_TAP_PLACE, body)):
        return _node_failure(name, _tap_error(body), tap_frames(body), where)
    values = (line.strip() for line in filter(_TAP_VALUE.match, body))
    frames = tap_frames(body) or javascript_frames(body)
    return failure("tap", _tap_error(body) or [name, *values], frames, name or None, {})


def _tap_error(body: Sequence[str]) -> list[str]:
    """The scalar after `error:`, or the lines of a block."""
    for number, match in matching(body, _TAP_ERROR).items():
        inline = match[2] or match[3] or match[4]
        deeper = re.compile(rf"(?!{match[1]}  |\s*$)")
        return [inline] if inline else above(body[number + 1 :], deeper)
    return []


# https://perldoc.perl.org/Test::More
_PERL_FAILED = regex(r"# {3}Failed test(?: '(.+)')?$")
_PERL_VALUE = regex(r"# +(?:got|expected): ")


@parses("prove", marks=("\n#   Failed test",))
def prove(log: Log) -> Iterator[Located]:
    """What the tests of Perl say on stderr; `prove` keeps their results to itself."""
    for first, title in matching(log.lines, _PERL_FAILED).items():
        said = list(takewhile(_TAP_COMMENT.match, log.lines[first + 1 : first + _MAX_TAP_LINES]))
        where = groups(first_match(_TAP_AT, said))
        values = [line.lstrip("# ") for line in said if _PERL_VALUE.match(line)]
        problem = failure("prove", values, (), title[1], where)
        yield Located(problem, first, first + len(said), otherwise=True)


def _node_failure(
    title: str, message: Sequence[str], frames: tuple[Frame, ...], place: dict[str, str]
) -> Diagnostic:
    file = place.get("path", "")
    test_id = file if not file or title.endswith(file) else f"{file}::{title}"
    return failure("node-test", message, frames, test_id, place)


# https://docs.phpunit.de; src/TextUI/Output/Default/ResultPrinter.php: printListHeader
_PHPUNIT_LIST = regex(r"There (?:was|were) \d+ (?:failures?|errors?):$")
_PHPUNIT_OTHER = regex(r"There (?:was|were) \d+ |\d+ tests? triggered ")
_PHPUNIT_TITLE = regex(
    r'\d+\) (?P<test>(?P<owner>[\w\\]+)::\w+(?: with data set (?:#\d+|"[^"]*"))?)'
)
_PHPUNIT_END = regex(r"(?:FAILURES|ERRORS|WARNINGS)!$|There (?:was|were) \d+ |--$")


@parses("phpunit", commands=("phpunit", "pest"), marks=("\nFAILURES!\n", "\nERRORS!\n"))
def phpunit(log: Log) -> Iterator[Located]:
    """The tests below the headings of failures and errors; others only warn."""
    lines = log.lines
    is_bad = {n: bool(_PHPUNIT_LIST.match(lines[n])) for n in matching(lines, _PHPUNIT_OTHER)}
    for first, last, title in titled(lines, _PHPUNIT_TITLE, _PHPUNIT_END):
        heading = max((number for number in is_bad if number < first), default=None)
        if heading is not None and is_bad[heading]:
            body = lines[first + 1 : last + 1]
            message = above(body, PHP_FRAME)
            problem = failure("phpunit", message, php_frames(body), title["test"], {})
            yield Located(problem, first, last)


# https://rspec.info; rspec-core, lib/rspec/core/formatters/exception_presenter.rb
_RSPEC_LIST = regex(r"Failures:$")
_RSPEC_TITLE = regex(r"  \d+\) (?P<test>\S.*)$")
_RSPEC_END = regex(r"Finished in |Failed examples:$|Top \d+ slowest |\d+ examples?, ")
_RSPEC_PLACE = regex(r"rspec (?P<path>\S+?):(?P<line>\d{1,9}) # (?P<test>.+)$")


@parses("rspec", commands=("rspec",), marks=("\nFailed examples:\n",))
def rspec(log: Log) -> Iterator[Located]:
    """The failures below their heading; above it are the pending examples, numbered as well."""
    start = max(matching(log.lines, _RSPEC_LIST), default=len(log.lines))
    lines = log.lines[start:]
    examples = {m["test"]: m for m in matching(lines, _RSPEC_PLACE).values()}
    for first, last, named in titled(lines, _RSPEC_TITLE, _RSPEC_END):
        title = named["test"]
        body = lines[first + 1 : last + 1]
        example = examples.get(title)
        place = {"path": example["path"], "line": example["line"]} if example else {}
        test_id = f"{example['path'].removeprefix('./')}::{title}" if example else title
        message = above(body, RUBY_FRAME)
        problem = failure("rspec", message, ruby_frames(body), test_id, place)
        yield Located(problem, start + first, start + last)


# https://cmake.org/cmake/help/latest/manual/ctest.1.html; Source/CTest/cmCTestTestHandler.cxx
_CTEST_ENDED = regex(
    r" {0,9}\d+/\d+ Test +#(?P<number>\d+): (?P<test>.+?) ?\.{3,}(?P<how>[^*]*)\*{3}(?P<why>\S.*?)"
    r" +[\d.]+ sec$"
)
_CTEST_END = regex(r" {0,9}(?:Start +\d+: |\d+/\d+ Test +#\d+: )|\d+% tests passed, ")
_CTEST_PLACE = regex(
    r".{0,300}?(?P<path>[^\s:\"'(<]{1,300}\.(?:c|cc|cpp|cxx|h|hh|hpp|hxx)):(?P<line>\d{1,9})\b"
    r"(?!:\w{1,200}:(?:PASS|IGNORE)\b)"  # Unity's
)
_CTEST_UNTRIED = ("Skipped", "Not Run (Disabled)")


@parses("ctest", commands=("ctest",), marks=("\nThe following tests FAILED:\n",))
def ctest(log: Log) -> Iterator[Located]:
    """Each failing test with what it printed, unless another parser reads that."""
    for first, last, title in titled(log.lines, _CTEST_ENDED, _CTEST_END):
        if title["why"] not in _CTEST_UNTRIED:
            live = _ctest_live(log.lines[:first], f"{title['number']}: ")
            below = log.lines[first + 1 : last + 1]
            printed = [*filter(str.strip, (*live, *below))]
            places = matching(printed, _CTEST_PLACE)
            told = min(places, default=len(printed))
            where = places[told].groupdict() if places else {}
            message = [*printed[told:], title["how"] or title["why"]]
            problem = failure("ctest", message, (), title["test"], where)
            yield Located(problem, first - len(live), last, otherwise=True)


def _ctest_live(lines: Sequence[str], prefix: str) -> list[str]:
    """What `ctest -V` printed of a test while it ran: directly above the title, with its number."""
    own = takewhile(lambda line: line.startswith(prefix.rstrip()), reversed(lines))
    return [line.removeprefix(prefix) for line in own][::-1]


# https://pre-commit.com/#pre-commit-run; pre_commit/commands/run.py: _run_single_hook
_HOOK = regex(r"^- hook id: (\S+)$")
_FACT = regex(r"^- (?:hook id|exit code|duration|files were modified by this hook)\b")
_MODIFIED = "files were modified by this hook"
_OUTCOMES = ("Passed", "Failed", "Skipped")


@parses("pre-commit", commands=("pre-commit", "prek"), marks=("\n- hook id: ",))
def pre_commit(log: Log) -> Iterator[Located]:
    """The failed hooks; what they printed counts only if nobody else reads it."""
    lines = log.lines
    ended = [i for i, line in enumerate(lines) if line.endswith(_OUTCOMES)]
    titles = [i for i in ended if "..." in lines[i]]
    for title, after in pairwise([*titles, len(lines)]):
        hook = first_match(_HOOK, lines[title + 1 : min(title + 2, after)])
        if hook and lines[title].endswith("Failed"):
            body = lines[title + 1 : after]
            printed = filter(str.strip, filterfalse(_FACT.match, body))
            modified = _MODIFIED if f"- {_MODIFIED}" in body else "the hook failed"
            message = shortened([modified, *printed])
            problem = Diagnostic(tool=hook[1], rule_id="hook", message=message)
            yield Located(problem, title + 1, after - 1, otherwise=True)

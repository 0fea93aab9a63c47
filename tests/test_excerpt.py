import pytest

from atlas_retry.model import Diagnostic, Region
from atlas_retry.source.excerpt import Mark, anchor, excerpt, marked, note_of, passage_at
from tests.test_syntax import SOURCES

COMMENTS = {"py": "#", "pyi": "#", "rb": "#", "sh": "#"}


def _diagnostic(path: str, line: int, message: str = "wrong") -> Diagnostic:
    return Diagnostic(
        tool="tool", rule_id="R1", message=message, path=path, region=Region(start_line=line)
    )


@pytest.mark.parametrize(("path", "source", "symbol", "line"), SOURCES)
def test_the_enclosing_function_is_shown_with_the_error_at_its_line(
    path: str, source: str, symbol: str, line: int
) -> None:
    passage = marked(passage_at(path, source.encode(), line), [Mark(line=line, note="R1 wrong")])
    cut = excerpt(passage, source.encode(), max_chars=2_000)
    assert cut is not None
    assert passage.symbol == symbol
    comment = COMMENTS.get(path.rpartition(".")[2], "//")
    shown = cut.text.splitlines()[line - passage.start_line]
    assert shown == f"{source.splitlines()[line - 1]}  {comment} <-- ERROR: R1 wrong"


def test_several_errors_of_one_function_share_an_excerpt() -> None:
    source = b"def f():\n    a\n    b\n"
    marks = [Mark(line=2, note="A"), Mark(line=3, note="B"), Mark(line=3, note="B")]
    cut = excerpt(marked(passage_at("a.py", source, 2), marks), source, max_chars=500)
    assert cut is not None
    assert cut.text == "def f():\n    a  # <-- ERROR: A\n    b  # <-- ERROR: B"


def test_a_long_function_keeps_signature_and_lines_around_the_error() -> None:
    body = "".join(f"    value_{n} = {n}\n" for n in range(200))
    source = f"def f(\n    a,\n):\n{body}".encode()
    passage = marked(passage_at("a.py", source, 100), [Mark(line=100, note="R1 wrong")])
    cut = excerpt(passage, source, max_chars=600)
    assert cut is not None
    assert len(cut.text) <= 600
    assert cut.text.startswith("def f(\n    a,\n):\n")
    assert "value_96 = 96  # <-- ERROR: R1 wrong" in cut.text
    assert "value_95" in cut.text
    assert "value_97" in cut.text
    assert f"{cut.omitted_lines}" != "0"
    assert "lines left out)" in cut.text


def test_a_top_level_line_is_shown_with_its_surroundings() -> None:
    source = b"import a\nimport b\n\nx = a\n\n\ndef f():\n    return 1\n"
    passage = passage_at("a.py", source, 2)
    assert (passage.start_line, passage.end_line) == (1, 6)


@pytest.mark.parametrize(
    "source",
    [b"def f(:\n  bad bad\n" * 3, "caf\xe9 = 1\n".encode("latin-1") * 9, b"", b"\n"],
)
def test_unparsable_sources_are_shown_as_plain_lines(source: bytes) -> None:
    passage = passage_at("a.py", source, 3)
    cut = excerpt(passage, source, max_chars=400)
    assert cut is None or len(cut.text) <= 400


def test_a_binary_file_has_no_excerpt() -> None:
    source = b"\x00\x01\n" * 20
    assert excerpt(passage_at("a.bin", source, 2), source, max_chars=400) is None


def test_a_very_long_line_is_cut_in_the_middle() -> None:
    source = b"x = '" + b"y" * 50_000 + b"'\n"
    cut = excerpt(passage_at("a.py", source, 1), source, max_chars=1_000)
    assert cut is not None
    assert len(cut.text) < 500


def test_anchoring_adds_symbol_and_fingerprint_and_reads_each_file_once() -> None:
    read: list[str] = []

    def source(path: str) -> bytes | None:
        read.append(path)
        return b"class K:\n    def m(self):\n        return x\n" if path == "a.py" else None

    anchored = anchor(
        [_diagnostic("a.py", 3), _diagnostic("a.py", 3, "other"), _diagnostic("gone.py", 1)], source
    )
    assert [one.symbol for one in anchored] == ["K.m", "K.m", None]
    assert len({one.fingerprint for one in anchored}) == 3
    assert all(one.fingerprint for one in anchored)
    assert read == ["a.py", "gone.py"]


def test_a_fingerprint_survives_shifted_lines() -> None:
    before = b"def f():\n    return x\n"
    [one] = anchor([_diagnostic("a.py", 2)], lambda _: before)
    [other] = anchor([_diagnostic("a.py", 7)], lambda _: b"\n" * 5 + before)
    assert one.fingerprint == other.fingerprint


def test_a_note_is_the_rule_and_the_first_line_of_the_message() -> None:
    assert note_of(_diagnostic("a.py", 1, "first\nsecond")) == "R1 first"


LONG_DOC = (
    "class A:\n    def f(self, x):\n        '''Add one.\n\n"
    + "".join(f"        Sentence number {n} of many.\n" for n in range(4))
    + "        '''\n"
    + "".join(f"        x = step_number_{n}(x)\n" for n in range(20))
    + "        return x\n"
).encode()


def test_whitespace_is_preserved() -> None:
    source = b"def f():\n\tif x:  \n\t    return 1 \n"
    cut = excerpt(passage_at("a.py", source, 2), source, max_chars=500)
    assert cut is not None
    assert cut.text == source.decode().removesuffix("\n")


def test_a_function_that_fits_is_shown_completely() -> None:
    cut = excerpt(passage_at("a.py", LONG_DOC, 12), LONG_DOC, max_chars=5_000)
    assert cut is not None
    assert cut.omitted_lines == 0

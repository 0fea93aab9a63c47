import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas_retry.process import Ended, run
from atlas_retry.process.output import HEAD_BYTES, TAIL_BYTES, HeadAndTail, seam
from tests.processes import run_python, shell

COLOURED = "é\x1b[1;31mred\x1b[0m€\x1b]8;;http://x/y\x1b\\link\x1b]8;;\x07😀\x1b(B\n"
WHOLE = re.compile(r"\x1b(\[[0-9;]*m|\][^\x07\x1b]*(\x07|\x1b\\)|\(B)")


def excerpt(data: bytes, step: int = 65536) -> HeadAndTail:
    kept = HeadAndTail()
    for start in range(0, len(data), step):
        kept.feed(data[start : start + step])
    return kept


@pytest.mark.parametrize("shift", range(len(COLOURED.encode())))
def test_a_cut_never_splits_a_character_or_escape_sequence(shift: int) -> None:
    data = b"x" * shift + COLOURED.encode() * 5000
    output = excerpt(data).output()
    assert "\ufffd" not in output.text
    assert "\x1b" not in WHOLE.sub("", output.head) + WHOLE.sub("", output.tail)
    parts = output.head.encode(), output.tail.encode()
    assert data.startswith(parts[0])
    assert data.endswith(parts[1])
    assert all(65536 - 100 < len(half) <= 65536 for half in parts)
    assert sum(map(len, parts)) + output.omitted_bytes == output.size_bytes == len(data)
    assert f"... {output.omitted_bytes} bytes omitted ..." in output.text


@pytest.mark.parametrize("size", [0, 1, HEAD_BYTES + TAIL_BYTES])
@pytest.mark.parametrize("step", [1000, 65536, 10**6])
def test_short_output_is_kept_completely(size: int, step: int) -> None:
    data = bytes(97 + n % 26 for n in range(size))
    output = excerpt(data, step).output()
    assert (output.text.encode(), output.omitted_bytes) == (data, 0)


@given(st.binary(max_size=60), st.integers(0, 60))
def test_a_seam_encloses_its_position(data: bytes, at: int) -> None:
    at = min(at, len(data))
    start, end = seam(data, at)
    assert 0 <= start <= at <= end <= len(data)


@given(st.text(max_size=40), st.integers(0, 100))
def test_a_seam_keeps_text_decodable(text: str, at: int) -> None:
    data = text.encode()
    start, end = seam(data, min(at, len(data)))
    data[:start].decode()
    data[end:].decode()


def test_an_endless_escape_sequence_does_not_hide_the_tail() -> None:
    data = b"x" * 100_000 + b"\x1b]0;" + b"y" * 200_000
    output = excerpt(data).output()
    assert output.tail == "y" * TAIL_BYTES


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"", ""),
        (b"a\nb\n\n \n", "b"),
        (b"10%\r20%\r", "20%"),
        (b"x" * 5000, "x" * 1024),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_the_last_line_is_the_last_one_with_text(data: bytes, line: str) -> None:
    assert excerpt(data).last_line() == line


def test_invalid_bytes_are_replaced(tmp_path: Path) -> None:
    done = run(shell(r"printf 'a\000b\377c\n'", log_dir=tmp_path))
    assert done.stdout.text == "a\0b\ufffdc\n"
    assert (tmp_path / "stdout.log").read_bytes() == b"a\0b\xffc\n"


def test_one_very_long_line_keeps_head_and_tail(tmp_path: Path) -> None:
    done = run(shell("printf start; head -c 100000000 /dev/zero; printf end", log_dir=tmp_path))
    assert done.stdout.head.startswith("start\0")
    assert done.stdout.tail.endswith("\0end")
    assert done.stdout.size_bytes == (tmp_path / "stdout.log").stat().st_size == 100_000_008


def test_two_loud_streams_do_not_block_each_other() -> None:
    done = run(shell("head -c 3000000 /dev/zero >&2 & head -c 3000000 /dev/zero; wait"))
    assert (done.stdout.size_bytes, done.stderr.size_bytes) == (3_000_000, 3_000_000)


def test_endless_output_ends_the_command_at_the_limit(tmp_path: Path) -> None:
    done = run(shell("yes", log_dir=tmp_path, max_output_bytes=5_000_000))
    assert (done.ended, done.exit_code) == (Ended.OUTPUT_LIMIT, None)
    assert done.error == "it printed more than 5000000 bytes and was stopped"
    assert (tmp_path / "stdout.log").stat().st_size == 5_000_000


def test_memory_stays_constant_for_any_output(tmp_path: Path) -> None:
    code = """
from pathlib import Path
from atlas_retry.process import Command, run
def peak():  # ru_maxrss would be that of whoever started us, if greater
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])
def sh(line):
    return run(Command(argv=("sh", "-c", line), cwd=Path("/"), env={"PATH": "/usr/bin:/bin"},
               log_dir=Path(sys.argv[1])))
sh("true")
before = peak()
size = sh("yes | head -c 200000000").stdout.size_bytes
print(size, peak() - before, peak())
"""
    code_, out = run_python(code, str(tmp_path))
    size, grown_kib, peak_kib = map(int, out.split())
    assert (code_, size) == (0, 200_000_000)
    assert grown_kib < 15 << 10
    assert peak_kib < 60 << 10

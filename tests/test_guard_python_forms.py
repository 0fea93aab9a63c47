"""Python tests that say the same in another form: of errors, moments, stand-ins and files."""

import pytest

from tests.guardcases import judged

IMPORTS = """\
import io
import re
import json
import textwrap
import unittest
from dataclasses import replace
from http import HTTPStatus
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from unittest.mock import mock_open, patch

import pytest
from freezegun import freeze_time

from pkg.a import Pair, Store, f


"""
CAUGHT = "def test_a():\n    with pytest.raises(ValueError) as caught:\n        f(-1)\n    assert str(caught.value) == 'less: -1'\n"
MATCHED = "def test_a():\n    with pytest.raises(ValueError, match={}):\n        f(-1)\n"
OF_UNITTEST = "class TestA(unittest.TestCase):\n    def test_a(self):\n        with self.assertRaises{}:\n            f(-1)\n{}"
TRIED = "def test_a():\n    try:\n        f(-1)\n    except {} as error:\n        assert str(error) == 'less: -1'\n{}"
EQUAL = "def test_a():\n    assert f(1) == {}\n"
HANDED = (
    "def test_a():\n    store = Store(datetime(2024, 5, 6, 9))\n    assert f(store).start == {}\n"
)
FROZEN = "@freeze_time('2024-03-04')\ndef test_a():\n    assert f(1) == {}\n"
OPENED = "def test_a():\n    with patch('builtins.open', mock_open(read_data='a=1')):\n        assert f('x') == {'a': '1'}\n"
FILED = "def test_a(tmp_path):\n    path = tmp_path / 'x'\n    path.write_text('a=1', encoding='utf-8')\n    assert f(path) == {'a': '1'}\n"
STREAM = "def test_a():\n    with patch('sys.stdout', new_callable=io.StringIO) as out:\n        f(1)\n    assert out.getvalue() == 'one'\n"
READ = "def test_a(capsys):\n    f(1)\n    assert capsys.readouterr().out == 'one'\n"
PATCHED = "def test_a():\n    with patch('pkg.b.get', return_value=2) as get:\n        assert f(1) == 2\n    get.assert_called_once_with(1)\n"
MEMBERS = "def test_a():\n    got = f(1)\n    assert len(got) == 2\n    assert got[0].name == 'a'\n    assert got[1].name == 'b'\n"
LISTED = "def test_a():\n    assert [item.name for item in f(1)] == {}\n"
MATCHES = "class TestA(unittest.TestCase):\n    def test_a(self):\n        self.assertRegex(f(1), r'^a+$')\n"
PAIR = "('a', 1)"
SAME = {
    "pair-with-a-name": (EQUAL.format(PAIR), EQUAL.format("Pair('a', 1)")),
    "mapping-with-a-name": (EQUAL.format("{'key': 'a', 'value': 1}"), EQUAL.format("Pair(key='a', value=1)")),
    "members-listed": (MEMBERS, LISTED.format("['a', 'b']")),
    "status-named": (EQUAL.format("404"), EQUAL.format("HTTPStatus.NOT_FOUND")),
    "text-indented": (EQUAL.format("'a: 1\\n'"), EQUAL.format("textwrap.dedent('    a: 1\\n')")),
    "text-made": (EQUAL.format("'[1, 2]'"), EQUAL.format("json.dumps([1, 2])")),
    "slice": ("def test_a():\n    assert f(1)[0:2] == 'ab'\n", "def test_a():\n    assert f(1)[:2] == 'ab'\n"),
    "value-replaced": (
        "def test_a():\n    assert f(Store(price=10, city='x')) == 20\n",
        "BASE = Store(price=30, city='x')\n\n\ndef test_a():\n    assert f(replace(BASE, price=10)) == 20\n",
    ),
    "pattern-searched": (MATCHES, "def test_a():\n    assert re.search(r'^a+$', f(1))\n"),
    "file-instead-of-mock": (OPENED, FILED),
    "stream-captured": (STREAM, READ),
    "patched-where-it-is-looked-up": (PATCHED, PATCHED.replace("pkg.b", "pkg.a")),
    "moment-stamped": (EQUAL.format("1714953600"), EQUAL.format("datetime(2024, 5, 6, tzinfo=timezone.utc).timestamp()")),
    "moment-of-stamp": (EQUAL.format("datetime.fromtimestamp(1714953600, tz=timezone.utc)"), EQUAL.format("datetime(2024, 5, 6, tzinfo=timezone.utc)")),
    "day-parsed": (EQUAL.format("datetime.strptime('2024-05-06', '%Y-%m-%d').date()"), EQUAL.format("date(2024, 5, 6)")),
    "span": (EQUAL.format("timedelta(seconds=3600)"), EQUAL.format("timedelta(hours=1)")),
    "clock-stopped": (EQUAL.format("f'at {date.today().isoformat()}'"), FROZEN.format("'at 2024-03-04'")),
    "noise": (EQUAL.format("0.1 + 0.2"), EQUAL.format("pytest.approx(0.3)")),
    "close": (EQUAL.replace("f(1) == {}", "abs(f(1) - 0.3) < 1e-9"), EQUAL.format("pytest.approx(0.3)")),
    "closer": (EQUAL.format("pytest.approx(0.3, abs=0.01)"), EQUAL.format("pytest.approx(0.3, abs=0.001)")),
    "message-matched": (CAUGHT, MATCHED.format("r'^less: -1$'")),
    "message-escaped": (CAUGHT, MATCHED.format("f\"^{re.escape('less: -1')}$\"")),
    "message-compared": (MATCHED.format("r'^less: -1$'"), CAUGHT),
    "message-in-part": (CAUGHT.replace("==", ">=").replace("str(caught.value) >= 'less: -1'", "'less' in str(caught.value)"), MATCHED.format("'less'")),
    "message-of-unittest": (
        OF_UNITTEST.format("(ValueError) as caught", "        self.assertEqual(str(caught.exception), 'less')\n"),
        OF_UNITTEST.format("Regex(ValueError, '^less$')", ""),
    ),
    "tried": (TRIED.format("ValueError", "    else:\n        pytest.fail('no error')\n"), MATCHED.format("'^less: -1$'")),
}  # fmt: skip
OTHER = {
    "pair-of-another": (EQUAL.format(PAIR), EQUAL.format("Pair('a', 2)")),
    "mapping-turned-round": (EQUAL.format("{'key': 1, 'value': 2}"), EQUAL.format("Pair(key=2, value=1)")),
    "members-fewer": (MEMBERS, LISTED.format("['a']")),
    "members-other": (MEMBERS, LISTED.format("['a', 'c']")),
    "members-chosen": (MEMBERS, LISTED.format("['a', 'b']").replace("f(1)]", "f(1) if item.name]")),
    "status-other": (EQUAL.format("404"), EQUAL.format("HTTPStatus.OK")),
    "text-of-another": (EQUAL.format("'a: 1\\n'"), EQUAL.format("textwrap.dedent('    a: 2\\n')")),
    "slice-shorter": ("def test_a():\n    assert f(1)[0:2] == 'ab'\n", "def test_a():\n    assert f(1)[:1] == 'ab'\n"),
    "value-replaced-by-another": (
        "def test_a():\n    assert f(Store(price=10, city='x')) == 20\n",
        "BASE = Store(price=30, city='x')\n\n\ndef test_a():\n    assert f(replace(BASE, price=11)) == 20\n",
    ),
    "pattern-wider": (MATCHES, "def test_a():\n    assert re.search(r'a', f(1))\n"),
    "file-of-other-text": (OPENED, FILED.replace("a=1", "a=2")),
    "stream-of-other-text": (STREAM, READ.replace("'one'", "'two'")),
    "patched-with-another-value": (PATCHED, PATCHED.replace("pkg.b", "pkg.a").replace("value=2", "value=3")),
    "patched-something-else": (PATCHED, PATCHED.replace("pkg.b.get", "pkg.a.f")),
    "patched-where-nothing-looks": (PATCHED, PATCHED.replace("pkg.b", "pkg.c")),
    "moment-later": (EQUAL.format("1714953600"), EQUAL.format("datetime(2024, 5, 7, tzinfo=timezone.utc).timestamp()")),
    "zone-lost": (EQUAL.format("datetime.fromtimestamp(1714953600, tz=timezone.utc)"), EQUAL.format("datetime(2024, 5, 6)")),
    "zone-of-machine": (EQUAL.format("1714953600"), EQUAL.format("datetime(2024, 5, 6).timestamp()")),
    "span-longer": (EQUAL.format("timedelta(seconds=3600)"), EQUAL.format("timedelta(hours=2)")),
    "moment-that-hung-on-the-zone": (HANDED.format("datetime.fromtimestamp(1714978800)"), HANDED.format("datetime(2024, 5, 6, 9)")),
    "moment-in-no-zone": (HANDED.format("datetime.fromtimestamp(1714979100)"), HANDED.format("datetime(2024, 5, 6, 9)")),
    "clock-stopped-elsewhere": (EQUAL.format("f'at {date.today().isoformat()}'"), FROZEN.format("'at 2024-03-05'")),
    "not-noise": (EQUAL.format("0.1 + 0.2"), EQUAL.format("pytest.approx(0.31)")),
    "far": (EQUAL.replace("f(1) == {}", "abs(f(1) - 0.3) < 1e-9"), EQUAL.format("pytest.approx(0.3, abs=0.1)")),
    "farther": (EQUAL.format("pytest.approx(0.3, abs=0.01)"), EQUAL.format("pytest.approx(0.3, rel=0.5)")),
    "message-begun": (CAUGHT, MATCHED.format("'^less'")),
    "message-any": (CAUGHT, MATCHED.format("'^.*$'")),
    "message-of-choice": (CAUGHT, MATCHED.format("'^(less: -1|.*)$'")),
    "message-other": (CAUGHT, MATCHED.format("'^less: 1$'")),
    "kind-wider": (CAUGHT, MATCHED.format("'^less: -1$'").replace("ValueError", "Exception")),
    "raised-here": (CAUGHT, MATCHED.format("'^less: -1$'").replace("f(-1)", "raise ValueError('less: -1')")),
    "tried-without-failing": (CAUGHT, TRIED.format("ValueError", "")),
    "tried-and-caught": (CAUGHT, TRIED.format("Exception", "").replace("f(-1)\n", "f(-1)\n        self.fail()\n")),
}  # fmt: skip


def changed(old: str, new: str) -> tuple[str, ...]:
    before, after = ({"tests/test_a.py": IMPORTS + text} for text in (old, new))
    source = {
        "pkg/b.py": "def get(n):\n    return n\n",
        "pkg/c.py": "",
        "pkg/__init__.py": "",
        "pkg/a.py": "from pkg.b import get\n\n\nclass Store: ...\n\n\nclass Pair(NamedTuple):\n    key: str\n    value: int\n\n\ndef f(n):\n    return n\n",
    }
    return tuple(found.rule for found in judged({**source, **before}, {**source, **after}))


@pytest.mark.parametrize(("old", "new"), SAME.values(), ids=SAME)
def test_the_same_claim_may_have_another_form(old: str, new: str) -> None:
    assert changed(old, new) == ()


@pytest.mark.parametrize(("old", "new"), OTHER.values(), ids=OTHER)
def test_another_form_claims_no_less(old: str, new: str) -> None:
    assert changed(old, new)

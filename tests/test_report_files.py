"""Reports in files: whole, several at once, refused in words."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from atlas_retry.cli.output import targets, write_reports
from atlas_retry.errors import AtlasError, UsageError
from atlas_retry.reports.formats import REPORTS
from tests.reports.samples import SUBJECTS

RED = SUBJECTS["red validation"]
ROOT = Path(__file__).parent.parent


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_several_reports_are_written_into_new_folders(tmp_path: Path) -> None:
    wanted = [(name, tmp_path / "out" / f"report.{name}") for name in REPORTS]
    write_reports(RED, wanted)
    for name, path in wanted:
        assert path.read_bytes().decode() == REPORTS[name](RED)
    assert names_in(tmp_path / "out") == sorted(path.name for _, path in wanted)


def test_an_older_report_is_replaced_and_readable_by_others(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("old")
    write_reports(RED, [("json", path)])
    assert path.read_text().startswith("{")
    assert path.stat().st_mode & 0o044 == 0o044 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_link_is_followed_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    write_reports(RED, [("json", tmp_path / "link")])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text().startswith("{")


def test_a_report_can_be_written_to_a_device() -> None:
    write_reports(RED, [("json", Path(os.devnull))])
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("blocked", ["file/report.json", "file/no/report.json", "."])
def test_a_path_that_cannot_be_a_file_is_refused_before_any_gate(
    tmp_path: Path, blocked: str
) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UsageError, match=r"is a folder|is not a folder"):
        targets([f"json={tmp_path / blocked}"])


def test_two_reports_to_one_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="two reports are written to"):
        targets([f"json={tmp_path}/r", f"junit={tmp_path}/./r"])
    assert len(targets([f"json={tmp_path}/r", f"junit={tmp_path}/s"])) == 2


def test_an_unwritable_report_is_reported_and_others_are_written(tmp_path: Path) -> None:
    wanted = [("json", Path("/dev/full")), ("html", tmp_path / "report.html")]
    with pytest.raises(AtlasError, match="/dev/full") as caught:
        write_reports(RED, wanted)
    assert caught.value.exit_code == 3
    assert names_in(tmp_path) == ["report.html"]


ENDLESS = """
import sys
from pathlib import Path
from atlas_retry.cli.output import write_reports
from tests.reports.samples import SUBJECTS
print("ready", flush=True)
while True:
    write_reports(SUBJECTS["fixed run"], [("html", Path(sys.argv[1])), ("json", Path(sys.argv[2]))])
"""


def test_a_killed_writer_leaves_complete_reports(tmp_path: Path) -> None:
    page, document = tmp_path / "report.html", tmp_path / "report.json"
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", ENDLESS, str(page), str(document)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, cwd=tmp_path) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        while not document.exists():
            assert writer.poll() is None
        writer.send_signal(signal.SIGKILL)
    subject = SUBJECTS["fixed run"]
    assert page.read_bytes().decode() == REPORTS["html"](subject)
    assert document.read_bytes().decode() == REPORTS["json"](subject)


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("junit", "no path"),
        ("junit=", "no path"),
        ("xml=a", "unknown format; use one of json, junit, sarif, gitlab, markdown, github, html"),
        ("", "unknown format"),
    ],
)
def test_an_invalid_option_is_refused_with_the_valid_ones(option: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        targets([option])


def test_a_path_may_contain_an_equals_sign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert targets(["json=a=b.json"]) == (("json", Path("a=b.json")),)

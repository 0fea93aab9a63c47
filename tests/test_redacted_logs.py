"""What an agent may read of what gates have printed."""

from pathlib import Path

from msgspec.structs import replace

from atlas_retry.gates.logs import MAX_COPIED_BYTES, shown_logs
from atlas_retry.model import GateResult, Kind, Status, Validation

SECRET = "hunter2-and-more-99"
KEY = (
    "-----BEGIN PRIVATE KEY-----\n"
    + "MIIabc0123456789abcdef/+ABCDEF01\n" * 40
    + "-----END PRIVATE KEY-----\n"
)
FAILED = GateResult(
    name="lint",
    kind=Kind.LINT,
    command="lint",
    required=True,
    status=Status.FAILED,
    success=False,
    output_omitted_bytes=1,
)


def shown(tmp_path: Path, raw: str, **fields: object) -> str | None:
    logs = tmp_path / "state" / "run" / "0"
    logs.mkdir(parents=True)
    (logs / "stdout.log").write_text(raw)
    result = replace(FAILED, log_path=str(logs), **fields)
    target = tmp_path / "state" / "shown"
    validation = shown_logs(
        Validation(results=(result,)), tmp_path / "state", target, frozenset({SECRET})
    )
    path = validation.results[0].log_path
    return (Path(path) / "stdout.log").read_text() if path else None


def test_secrets_are_redacted_in_the_copy_of_a_log(tmp_path: Path) -> None:
    filling = "".join(f"line {number}\n" for number in range(50_000))
    copy = shown(tmp_path, f"first {SECRET}\n{filling}{KEY}last {SECRET}\n")
    assert copy is not None
    assert SECRET not in copy
    assert "MIIabc" not in copy
    assert copy.startswith("first [redacted:env]\nline 0\n")
    assert copy.endswith("last [redacted:env]\n")


def test_a_log_too_long_to_copy_is_replaced_by_the_reported_output(tmp_path: Path) -> None:
    assert shown(tmp_path, f"{SECRET}\n" * MAX_COPIED_BYTES, stdout="kept") == "kept"


def test_complete_output_is_not_read_again_from_its_log(tmp_path: Path) -> None:
    copy = shown(tmp_path, SECRET, stdout="[redacted:env]", output_omitted_bytes=0)
    assert copy == "[redacted:env]"


def test_a_passed_gate_has_no_log_copy(tmp_path: Path) -> None:
    assert shown(tmp_path, "x", success=True, status=Status.PASSED) is None


def test_a_recorded_report_cannot_have_a_file_copied(tmp_path: Path) -> None:
    (tmp_path / "stdout.log").write_text("mine")
    result = replace(FAILED, log_path=str(tmp_path))
    validation = shown_logs(
        Validation(results=(result,)), tmp_path / "state", tmp_path / "shown", frozenset()
    )
    assert validation.results[0].log_path is None

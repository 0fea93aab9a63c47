"""One run on one machine, as a worker carries it out: real git, real runs, no server."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import config
from atlas_retry.errors import ConfigError
from atlas_retry.fleet import manifest as manifests
from atlas_retry.fleet import plan, tries
from atlas_retry.fleet.assignment import (
    Policy,
    Stopped,
    Workplace,
    agent_of,
    attempts_of,
    carry_out,
    flags,
)
from atlas_retry.fleet.batch import Assignment, ItemResult, Stage
from atlas_retry.fleet.books import Beat
from atlas_retry.fleet.manifest import BatchLimits, Manifest
from atlas_retry.fleet.store import Store
from atlas_retry.model import Verdict
from atlas_retry.workspace.outside import imported_folders
from tests import fleet_agent, fleets
from tests.fleets import Scene
from tests.projects import git

pytest.importorskip("fsspec", reason="pip install 'atlas-retry[fleet]'")


class Machine(Struct, kw_only=True):
    """A batch in the store, and one machine."""

    at: Scene
    place: Workplace
    digest: str = ""

    def batch(self, repositories: list[Path], **keys: object) -> Manifest:
        whole = manifests.read(self.at.manifest(repositories, **keys))
        content, self.digest = manifests.stored(whole)
        self.place.store.put("b", "manifest.json", content)
        return whole

    def assignment(self, stage: Stage, index: int = 0, **rest: object) -> Assignment:
        return Assignment(
            batch="b",
            digest=self.digest,
            index=index,
            stage=stage,
            number=1,
            **rest,  # type: ignore[arg-type]
        )

    def carry_out(self, stage: Stage, index: int = 0, **rest: object) -> ItemResult:
        return carry_out(self.place, self.assignment(stage, index, **rest), lambda _: None)

    def stored(self, run: str, name: str) -> bytes | None:
        return self.place.store.get("b", f"{run}/{name}")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return made(fleets.scene(tmp_path / "fleet", port=1))


def made(at: Scene, name: str = "a", agents: tuple[str, ...] = ("scripted",)) -> Machine:
    home = at.home(name)
    place = Workplace(
        home=home,
        machine=tries.machine_id(home),
        store=Store(str(at.store)),
        policy=Policy(agents=agents),
        environ={**at.environ, "ATLAS_HOME": str(home)},
    )
    return Machine(at=at, place=place)


def test_runs_import_no_code_from_outside_the_scene(machine: Machine) -> None:
    repository = machine.at.repository(0, 0, "scripted")
    folders = imported_folders(repository, {repository}, [machine.place.environ])
    assert folders
    assert [one for one in folders if not Path(one).is_relative_to(machine.at.root)] == []


def test_a_look_starts_no_agent_and_reports_what_fails(machine: Machine) -> None:
    machine.batch([machine.at.repository(0, 1, "scripted")])
    result = machine.carry_out(Stage.LOOK)
    assert (result.verdict, result.cost_usd) == (Verdict.FAILED, 0.0)
    assert plan.first_problem(result) == result.failing[0].diagnostics[0].fingerprint
    assert machine.stored("b-0-look", "run.json")


def test_a_fix_is_stored_and_pushed(machine: Machine) -> None:
    repository = machine.at.repository(0, 1, "scripted")
    machine.batch([repository], deliver={"branch": "atlas/fix", "push": True})
    result = machine.carry_out(Stage.FIX, promised_usd=1.0)
    assert (result.verdict, result.cost_usd, result.delivered) == (
        Verdict.FIXED,
        0.25,
        "atlas/fix",
    )
    pushed = git(repository, "show", "atlas/fix:state.txt", environ=machine.at.environ)
    assert pushed == "good\n"
    assert b"+good" in (machine.stored("b-0-fix", "fix.patch") or b"")
    assert list((machine.place.home / "fleet" / "work").iterdir()) == []


def test_a_run_delivered_twice_is_paid_once(machine: Machine) -> None:
    machine.batch([machine.at.repository(0, 1, "scripted")])
    first = machine.carry_out(Stage.FIX, promised_usd=1.0)
    elsewhere = made(machine.at, "b")
    elsewhere.digest = machine.digest
    assert elsewhere.carry_out(Stage.FIX, promised_usd=1.0) == first
    assert machine.at.spent_usd("b") == pytest.approx(0.25)


def test_the_patch_of_another_run_is_replayed_without_a_model(machine: Machine) -> None:
    machine.batch([machine.at.repository(n, 1, "scripted") for n in range(2)])
    machine.carry_out(Stage.FIX, 0, promised_usd=1.0)
    replayed = machine.carry_out(Stage.REPLAY, 1, promised_usd=1.0, patch_of=0)
    assert (replayed.verdict, replayed.cost_usd, replayed.has_patch) == (Verdict.FIXED, 0.0, True)


def test_a_conflicting_patch_is_left_to_the_agent(machine: Machine) -> None:
    repositories = [machine.at.repository(n, 1, "scripted") for n in range(2)]
    (repositories[1] / "state.txt").write_text("bad in another way\n")
    git(repositories[1], "commit", "-q", "-a", "-m", "other", environ=machine.at.environ)
    machine.batch(repositories)
    machine.carry_out(Stage.FIX, 0, promised_usd=1.0)
    replayed = machine.carry_out(Stage.REPLAY, 1, promised_usd=1.0, patch_of=0)
    assert (replayed.verdict, replayed.error) == (
        Verdict.FAILED,
        "the patch of its group does not apply",
    )


def test_the_change_is_applied_first_and_not_part_of_the_fix(machine: Machine) -> None:
    repository = machine.at.repository(0, 0, "scripted")
    (machine.at.root / "change.diff").write_text(
        "--- a/state.txt\n+++ b/state.txt\n@@ -1 +1 @@\n-good\n+bad\n"
    )
    change = {"patch": "change.diff", "run": "echo new > rule.txt", "message": "Raise the rule"}
    machine.batch([repository], change=change, deliver={"branch": "atlas/fix", "push": True})
    assert machine.carry_out(Stage.FIX, promised_usd=1.0).verdict is Verdict.FIXED
    log = git(repository, "log", "--format=%s", "atlas/fix", environ=machine.at.environ)
    assert log.splitlines()[1:] == ["Raise the rule", "start"]
    assert b"rule.txt" not in (machine.stored("b-0-fix", "fix.patch") or b"")


def test_an_agent_the_worker_does_not_allow_is_broken(machine: Machine) -> None:
    machine.batch([machine.at.repository(0, 1, "scripted")], agent="command")
    result = machine.carry_out(Stage.FIX, promised_usd=1.0)
    assert result.verdict is Verdict.BROKEN
    assert "does not allow the agent command" in result.error


def test_the_strictest_limit_of_manifest_budget_and_worker_applies() -> None:
    one = Assignment(batch="b", digest="", index=0, stage=Stage.FIX, number=1, promised_usd=2.0)
    limits = BatchLimits(max_attempts=5, max_minutes=10)
    whole = Manifest(version=1, repositories=(), limits=limits)
    policy = Policy(agents=("anthropic",), max_cost_usd=1.0, max_attempts=2, max_minutes=60)
    most = attempts_of(whole, policy)
    assert flags(whole, policy, one, agent_of(whole, policy), most) == (
        "--ai-fix",
        "--agent=anthropic",
        "--max-attempts=2",
        "--max-cost-usd=1.0",
        "--max-minutes=10",
    )


def test_a_repository_that_cannot_be_fetched_is_broken(machine: Machine) -> None:
    machine.batch([machine.at.root / "nowhere"])
    result = machine.carry_out(Stage.LOOK)
    assert result.verdict is Verdict.BROKEN
    assert "nowhere" in result.error


def test_a_stopped_run_leaves_no_process_and_is_continued(
    machine: Machine,
) -> None:
    place = replace(machine.place, policy=Policy(agents=(fleet_agent.NAME,)))
    machine.batch([machine.at.repository(0, 1)])
    with held(machine.at):
        one = machine.assignment(Stage.FIX, promised_usd=5.0)
        stopped = carry_out(place, one, stopping_once_paid)
    assert stopped.verdict is None
    assert stopped.cost_usd == pytest.approx(fleet_agent.TURN_USD)
    assert fleets.children(machine.at) == []
    ended = carry_out(place, one, lambda _: None)
    assert ended.verdict is Verdict.FIXED
    assert ended.cost_usd == pytest.approx(machine.at.spent_usd("b"))
    reports = tries.to_report(place.home, place.machine)
    assert [beat.cost_usd for beat in reports["b"]] == [ended.cost_usd]
    tries.forget(place.home, reports["b"])
    assert tries.to_report(place.home, place.machine) == {}


def test_another_machine_continues_from_the_pushed_attempt(machine: Machine) -> None:
    """On the first machine one attempt does half, and the second is under way when it stops."""
    machine.batch([machine.at.repository(0, 1)], limits={"max_attempts": 3})
    (machine.at.notes / "half").touch()
    one = machine.assignment(Stage.FIX, promised_usd=5.0)

    def stopping_in_the_second(_: Beat) -> None:
        if machine.stored(one.run, "attempt.json") and len(fleets.workspaces_asked(machine.at)) > 1:
            raise Stopped

    here = replace(machine.place, policy=Policy(agents=(fleet_agent.NAME,)))
    stopped = carry_out(here, one, stopping_in_the_second)
    assert (stopped.verdict, len(fleets.workspaces_asked(machine.at))) == (None, 2)
    (machine.at.notes / "half").unlink()
    elsewhere = made(machine.at, "b", agents=(fleet_agent.NAME,))
    ended = carry_out(elsewhere.place, replace(one, number=2), lambda _: None)
    assert (ended.verdict, ended.attempts) == (Verdict.FIXED, 2)
    assert ended.cost_usd == pytest.approx(fleet_agent.TURN_USD)  # the replay costs nothing
    assert len(fleets.workspaces_asked(machine.at)) == 3
    patch = machine.stored(one.run, "fix.patch") or b""
    assert b"+good" in patch
    assert b"+half" in patch  # what the first machine's attempt has left


@contextmanager
def held(at: Scene) -> Iterator[None]:
    (at.notes / "hold").touch()
    yield
    (at.notes / "hold").unlink()


def stopping_once_paid(beat: Beat) -> None:
    if beat.cost_usd >= fleet_agent.TURN_USD - 0.01:
        raise Stopped


@pytest.mark.parametrize(
    ("repository", "why"),
    [
        ({"url": "https://me:secret@example.org/r"}, "a password in the URL"),
        ({"url": "ext::sh -c id"}, "do not fetch by this protocol"),
        ({"url": "--upload-pack=id"}, "may begin with a dash"),
        ({"url": "/r", "cwd": "../other"}, "outside the repository"),
        (
            {"url": "/r", "branch": "x"},
            r"1:\d+: unknown key repositories\[0\].branch; did you mean deliver.branch",
        ),
        ({"url": 3}, r"1:\d+: repositories\[0\].url: expected text, found 3"),
    ],
)
def test_a_repository_that_workers_cannot_fetch_is_refused(
    tmp_path: Path, repository: dict[str, str], why: str
) -> None:
    file = tmp_path / "manifest.yaml"
    file.write_text(json.dumps({"version": 1, "repositories": [repository]}))
    with pytest.raises(ConfigError, match=why) as caught:
        manifests.read(file)
    assert "secret" not in str(caught.value)
    assert "docs/fleet.md" in (caught.value.remedy or "")


def test_a_manifest_is_checked_as_a_configuration_is(tmp_path: Path) -> None:
    file = tmp_path / "manifest.yaml"
    file.write_text(
        "version: true\nrepositories:\n  - url: /r\nlimit: {deaths: x}\nlimits: {deaths: x}\n"
    )
    with pytest.raises(ConfigError) as caught:
        manifests.read(file)
    lines = [line.partition(".yaml:")[2] for line in str(caught.value).splitlines()[::2]]
    assert lines == [
        "1:10: version: expected 1, found true",
        "4:1: unknown key limit; did you mean limits?",
        "5:18: limits.deaths: expected a whole number, found 'x'",
    ]


def test_a_missing_policy_is_refused_where_it_is_named(tmp_path: Path) -> None:
    file = tmp_path / "manifest.yaml"
    file.write_text("version: 1\nrepositories: [{url: /r}]\nconfig: policy.yaml\n")
    with pytest.raises(ConfigError, match=r"manifest\.yaml:3:9: .*No such file"):
        manifests.read(file)


def test_a_policy_reaches_workers_with_what_it_extends(tmp_path: Path) -> None:
    file = tmp_path / "manifest.yaml"
    file.write_text("version: 1\nrepositories: [{url: /r}]\nconfig: policy.yaml\n")
    (tmp_path / "policy.yaml").write_text("extends: shared.yaml\nretry: {flake_reruns: 2}\n")
    (tmp_path / "shared.yaml").write_text("validation: {test: [pytest]}\nbatch: {jobs: 3}\n")
    text = manifests.read(file).config
    (tmp_path / "shared.yaml").unlink()
    settings = config.load_text(text.encode(), "config.yaml")
    assert [gate.run for gate in settings.gates] == ["pytest"]
    assert (settings.retry.flake_reruns, settings.batch.jobs) == (2, 3)


def test_a_wrong_policy_is_refused_before_any_worker_has_it(tmp_path: Path) -> None:
    file = tmp_path / "manifest.yaml"
    file.write_text("version: 1\nrepositories: [{url: /r}]\nconfig: policy.yaml\n")
    (tmp_path / "policy.yaml").write_text("validation: {tests: [pytest]}\n")
    with pytest.raises(ConfigError, match=r"policy\.yaml:1:14: unknown key validation\.tests"):
        manifests.read(file)

"""The table of rules: name, reason, function. The order is the order of the findings."""

from collections.abc import Iterator

from atlas_retry.guard import (
    answers,
    awareness,
    builds,
    configuration,
    conjunctions,
    doctests,
    doubles,
    equality,
    escapes,
    files,
    goldens,
    pipelines,
    scripts,
    sequences,
    sessions,
    shortcuts,
    specialcases,
    standins,
    state,
    stubs,
    supplies,
    suppressions,
    testdata,
    tricks,
)
from atlas_retry.guard.case import Check, Finding, Rule, Scene
from atlas_retry.guard.losses import Loss, losses


def _lost(*kinds: Loss) -> Check:
    """Findings about tests that prove less, of these kinds."""

    def check(scene: Scene) -> Iterator[Finding]:
        return (finding for kind, finding in losses(scene) if kind in kinds)

    return check


def _row(name: str, reason: str, check: Check) -> Rule:
    return Rule(name=name, reason=reason, check=check)


UNJUDGED = _row("not-judged", "what could not be judged in time is not clean", lambda _: ())
"""Stands for the rules that there was no time for."""
RULES: tuple[Rule, ...] = (
    _row("test-removed", "a test that is gone cannot fail", _lost(Loss.REMOVED)),
    _row("test-shadowed", "a test whose name is given away is never run", doubles.hidden),
    _row("test-switched-off", "a test that is skipped proves nothing", _lost(Loss.SWITCHED_OFF)),
    _row("test-unparsable", "a test file that cannot be read runs nothing", _lost(Loss.UNPARSABLE)),
    _row("test-package-removed", "tests that are not found do not run", files.deleted_packages),
    _row("cases-removed", "a case that is not tried cannot fail", _lost(Loss.CASES)),
    _row("assertion-removed", "what is not asserted is not tested", _lost(Loss.CHECK_REMOVED)),
    _row("assertion-weakened", "the assertion accepts more than it did", _lost(Loss.WEAKENED)),
    _row("expectation-changed", "the code has to follow the test", _lost(Loss.EXPECTATION)),
    _row("input-changed", "the test no longer tries what it tried", _lost(Loss.INPUTS)),
    _row("golden-data-changed", "the code has to follow the expected output", goldens.changed),
    _row("example-changed", "the code has to follow the example", doctests.examples),
    _row("code-under-test-mocked", "a stand-in proves nothing about the code", standins.mocks),
    _row("runner-hooked", "a hook decides instead of the tests", tricks.runner_hooks),
    _row(
        "framework-patched", "the checks must be the ones everybody knows", tricks.framework_patched
    ),
    _row("framework-tricked", "the checks must be the ones everybody knows", standins.other_tricks),
    _row("early-exit", "the run ends before a check has spoken", tricks.early_exits),
    _row("special-cased", "the code answers the test, not the task", specialcases.special_cased),
    _row("special-cased-by-digest", "the code answers the test", specialcases.answered_by_digest),
    _row(
        "special-cased-together", "the code answers the test, not the task", conjunctions.answered
    ),
    _row("special-cased-whole", "the code answers the test, not the task", sequences.recognised),
    _row("special-cased-by-name", "the code answers the test, not the task", answers.echoed),
    _row("test-aware", "code must behave the same when it is not tested", awareness.aware_of_tests),
    _row("test-data-read", "the code answers the test, not the task", testdata.read_by_code),
    _row("errors-swallowed", "an error that is hidden is not mended", shortcuts.swallowed),
    _row("error-discarded", "an error that is hidden is not mended", shortcuts.discarded),
    _row("stubbed", "the work is no longer done", stubs.stubbed),
    _row("emptied", "the work is no longer done", stubs.emptied),
    _row("always-equal", "a comparison that always holds proves nothing", equality.always_equal),
    _row("always-agreeing", "a comparison that always holds proves nothing", equality.agreeing),
    _row("equality-narrowed", "what is not compared is not tested", equality.narrowed),
    _row("feature-removed", "removing what is checked is no repair", shortcuts.features_removed),
    _row("suppression-added", "the checker is told to look away", suppressions.suppressions),
    _row("type-escape", "the checker is silenced, not answered", escapes.type_escapes),
    _row("configuration-loosened", "the bar was lowered", configuration.loosened),
    _row("make-loosened", "the check runs less, or may fail unnoticed", scripts.make_rules),
    _row("script-loosened", "the check runs less, or may fail unnoticed", scripts.shell_scripts),
    _row("package-script-changed", "the gate goes through it", scripts.package_scripts),
    _row("runner-loosened", "the check runs less, or may fail unnoticed", sessions.runners),
    _row("build-loosened", "the check runs less, or may fail unnoticed", builds.loosened),
    _row("pipeline-loosened", "others rely on the pipeline's answer", pipelines.ci_and_hooks),
    _row("pre-commit-loosened", "the hook checks less", pipelines.pre_commit),
    _row("dependency-redirected", "the tool is no longer the one it was", supplies.dependencies),
    _row("ignore-widened", "what is ignored is not checked", supplies.ignore_files),
    _row("environment-steered", "variables steer the tools of the gates", state.environment_files),
    _row("tool-shadowed", "another file runs instead of the tool", files.shadows),
    _row("link-planted", "a link puts another file in the place", files.links),
    _row("mode-changed", "what cannot be read or run is passed over", files.modes),
    _row("submodule-changed", "no diff shows what it brings", files.submodules),
    _row("bytecode-planted", "other code runs than the source shows", files.bytecode),
    _row("atlas-touched", "it decides what has to pass", state.own_files),
    _row("protected-path", "the user asked for it to stay as it is", state.protected),
    _row("git-state", "history and settings of git are the user's", state.git_state),
    _row("outside-workspace", "only the workspace may change", state.outside),
    _row("tool-replaced", "the gate would run something else", state.tools),
    _row("clock-tricked", "old results would be taken for fresh ones", state.clocks),
    _row("process-left", "it may write after the verdict", state.leftovers),
    UNJUDGED,
)

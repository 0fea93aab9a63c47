"""The connection between a run in an overlay and the atlas outside that started it.

Observers, the budget of all runs and the user's tree are outside. Only atlas's own types are sent,
because the inner process is not trusted with more.
"""

import io
import os
import pickle
import queue
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from enum import Enum
from multiprocessing.connection import Connection, wait
from pathlib import Path, PurePath
from typing import Any

from msgspec import Struct

import atlas_retry
from atlas_retry import process
from atlas_retry.errors import AtlasError, ConfigError, Interrupted, WorkspaceError
from atlas_retry.events import Event
from atlas_retry.model import Outcome
from atlas_retry.process import Command
from atlas_retry.run.budget import SharedBudget
from atlas_retry.run.progress import Elsewhere, Progress
from atlas_retry.text.commands import quoted
from atlas_retry.workspace.isolation.layers import RunLayers

GRACE_S = 20.0
"""Time that the inner process gets to end cleanly and write its journal."""
_START = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from atlas_retry.run.channel import main; main(int(sys.argv[2]))"
)


Task = Callable[["Channel"], Outcome]
"""Function to run inside; it must be picklable, so it is from this package."""
Answers = Mapping[str, Callable[..., object]]
"""Functions of the outside that the inside may call, by name."""


def run_inside(
    task: Task, layers: RunLayers, answers: Answers, environ: Mapping[str, str]
) -> Outcome:
    """Run a task in an overlay, and answer its calls until it is done.

    A request to stop is passed on. Raises what the task raises, Interrupted, and WorkspaceError
    if it was killed.
    """
    ours, theirs = socket.socketpair()
    with ThreadPoolExecutor(max_workers=1) as pool, Connection(ours.detach()) as connection:
        ended = pool.submit(_run_inner_process, layers, theirs, environ)
        _send(connection, (task, layers))
        answered = _serve(connection, answers)
    signum = process.stop_requested()
    if isinstance(answered, Outcome):
        return answered
    if isinstance(answered, AtlasError | Interrupted):
        raise answered
    if signum is not None:
        raise Interrupted(signum)
    raise WorkspaceError(
        f"the isolated run ended unexpectedly: {ended.result()}",
        remedy=f"atlas resume {quoted(layers.root)} --ai-fix",
    )


def _run_inner_process(layers: RunLayers, theirs: socket.socket, environ: Mapping[str, str]) -> str:
    """Run the inner process to its end; returns why it ended, if it sent no result."""
    package = str(Path(atlas_retry.__file__).parents[1])
    command = Command(
        argv=(sys.executable, "-P", "-c", _START, package, str(theirs.fileno())),
        cwd=layers.root,
        env=environ,
        pass_fds=(theirs.fileno(),),
        grace_s=GRACE_S,
        halt_signal=signal.SIGTSTP,
    )
    # closed only afterwards, so the outer end reads EOF exactly when all inside has ended
    with theirs:
        try:
            done = process.run(layers.wrapped(command), shielded=True)
        except Interrupted:
            return "it was interrupted"
    last = done.stderr.text.strip().rpartition("\n")[2]
    return last or done.error or f"exit code {done.exit_code}"


def _serve(connection: Connection, answers: Answers) -> object:
    """Answer calls until the result, which is returned; None if the inner end closed first."""
    stopping: list[int] = [process.wake_fd()]
    while True:
        ready = wait([connection, *stopping])
        if connection not in ready:
            stopping.clear()
            _send(connection, ("stop", process.stop_requested()))
            continue
        try:
            name, arguments = unpickled(connection.recv_bytes())
        except (EOFError, OSError):
            return None
        if name == "done":
            return arguments[0]
        answer = _caught(answers[name], *arguments)
        if name != "emit":
            _send(connection, ("answer", answer))


def _caught(function: Callable[..., object], *arguments: object) -> object:
    """The result of the function, or the exception to send to the other end."""
    try:
        return function(*arguments)
    except ConfigError as error:  # its place cannot be sent, but is in its text
        return WorkspaceError(str(error), remedy=error.remedy)
    except (AtlasError, Interrupted) as error:
        return error.with_traceback(None)


def _send(connection: Connection, value: object) -> None:
    with suppress(OSError):  # the other end has closed, and the next read notices
        connection.send_bytes(pickled(value))


class Channel:
    """The inner end of the connection; thread-safe."""

    def __init__(self, connection: Connection, layers: RunLayers) -> None:
        self.layers = layers
        self._connection = connection
        self._sending = threading.Lock()
        self._asking = threading.Lock()
        self._answers: queue.SimpleQueue[object] = queue.SimpleQueue()
        threading.Thread(target=self._receive, name="channel", daemon=True).start()

    def emit(self, event: Event) -> None:
        self._call("emit", event)

    def ask(self, name: str, *arguments: object) -> Any:  # noqa: ANN401 - depends on the function
        """Call a function outside. Raises what it raises."""
        with self._asking:
            self._call(name, *arguments)
            answer = self._answers.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def accept(self, end: str, outcome: Outcome) -> Outcome:
        """Bring a snapshot to the user's tree; returns the outcome for the tree it then is."""
        answer: Outcome = self.ask("accept", end, outcome)
        return answer

    def close(self, answer: object) -> None:
        self._call("done", answer)

    def _call(self, name: str, *arguments: object) -> None:
        with self._sending:
            self._connection.send_bytes(pickled((name, arguments)))

    def _receive(self) -> None:
        try:
            while True:
                kind, value = pickle.loads(self._connection.recv_bytes())  # noqa: S301 - trusted
                if kind == "stop":
                    process.request_stop(value)
                else:
                    self._answers.put(value)
        except (EOFError, OSError):
            os._exit(1)  # the outer atlas has ended


def main(descriptor: int) -> None:
    """Main function of the inner process: receive the task, run it, and send its result."""
    os.set_inheritable(descriptor, False)  # noqa: FBT003 - it takes no keyword
    connection = Connection(descriptor)
    with process.handle_signals(is_inner=True):
        task, layers = pickle.loads(connection.recv_bytes())  # noqa: S301 - trusted
        channel = Channel(connection, layers)
        channel.close(_caught(task, channel))


class RemoteBudget(SharedBudget):
    """The budget of all runs, which is outside."""

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self._channel = channel

    def elapsed_s(self) -> float:
        return float(self._channel.ask("elapsed_s"))

    def draw(self, key: str, progress: Progress, allowed_usd: float | None) -> Elsewhere:
        answer: Elsewhere = self._channel.ask("draw", key, progress, allowed_usd)
        return answer

    def settle(self, key: str, cost_usd: float) -> None:
        self._channel.ask("settle", key, cost_usd)

    def promise(self, key: str, allowed_usd: float | None) -> float | None:
        answer: float | None = self._channel.ask("promise", key, allowed_usd)
        return answer


def budget_answers(budget: SharedBudget) -> Answers:
    """The calls of `RemoteBudget`."""
    asked = (budget.elapsed_s, budget.draw, budget.settle, budget.promise)
    return {function.__name__: function for function in asked}


class _Pickler(pickle.Pickler):
    """Pickles enumerations by value: Python 3.11.2 would by `getattr`, which is not unpickled."""

    def reducer_override(self, obj: object) -> Any:  # noqa: ANN401 - as in `pickle`
        return (type(obj), (obj.value,)) if isinstance(obj, Enum) else NotImplemented


def unpickled(content: bytes) -> Any:  # noqa: ANN401 - as in `pickle`
    """A value from the inner end. Raises UnpicklingError for anything that is more than a value."""
    return _SafeUnpickler(io.BytesIO(content)).load()


def pickled(value: object) -> bytes:
    """A value for the other end."""
    content = io.BytesIO()
    _Pickler(content).dump(value)
    return content.getvalue()


class _SafeUnpickler(pickle.Unpickler):
    """Unpickles only structs, enumerations, paths and our errors."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - as in `pickle`
        if (module, name) == _REBUILD:
            return super().find_class(module, name)
        if module.partition(".")[0] in _PACKAGES:
            kind = super().find_class(module, name)
            if isinstance(kind, type) and issubclass(kind, _KINDS):
                return kind
        raise pickle.UnpicklingError(f"{module}.{name} is not a value")


_REBUILD = ("msgspec._utils", "rebuild")
"""The function that unpickles a Struct."""
_PACKAGES = ("atlas_retry", "pathlib")
_KINDS = (Struct, Enum, PurePath, AtlasError, Interrupted)

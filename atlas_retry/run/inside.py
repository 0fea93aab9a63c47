"""The process of a run in layers: does one errand of the atlas outside, and ends."""

import os
import pickle
from multiprocessing.connection import Connection

from atlas_retry import process
from atlas_retry.errors import AtlasError, Interrupted
from atlas_retry.model import Outcome
from atlas_retry.run.door import Door, Errand


def main(descriptor: int) -> None:
    """Take the errand from the wire, do it, and say what came of it."""
    os.set_inheritable(descriptor, False)  # noqa: FBT003 - it takes no keyword
    connection = Connection(descriptor)
    with process.handle_signals(is_inner=True):
        errand, layers = pickle.loads(connection.recv_bytes())  # noqa: S301 - from outside
        door = Door(connection, layers)
        door.close(_done(errand, door))


def _done(errand: Errand, door: Door) -> Outcome | AtlasError | Interrupted:
    try:
        return errand.run(door)
    except (AtlasError, Interrupted) as error:
        return error

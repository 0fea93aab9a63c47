"""Start and follow a batch from any machine that reaches server and store; the connection."""

import asyncio
import dataclasses
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

import msgspec
from msgspec import Struct
from temporalio.api.common.v1 import Payload
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowQueryFailedError,
)
from temporalio.common import WorkflowIDReusePolicy
from temporalio.converter import (
    BinaryNullPayloadConverter,
    CompositePayloadConverter,
    DataConverter,
    EncodingPayloadConverter,
)
from temporalio.envconfig import ClientConfig
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from atlas_retry.errors import AtlasError, UsageError
from atlas_retry.fleet import manifest
from atlas_retry.fleet.batch import BatchStatus, Stage, begun, endings, run_of
from atlas_retry.fleet.books import Beat
from atlas_retry.fleet.manifest import Manifest
from atlas_retry.fleet.store import REPORT, Store
from atlas_retry.fleet.workflow import Fleet
from atlas_retry.reports.fleet_page import ItemRow

ANSWER_S = 20.0


class Live(Struct, frozen=True, kw_only=True, tag_field="schema", tag="atlas.fleet-status/1"):
    """A batch as it is now."""

    status: BatchStatus
    runs: tuple[Beat, ...]
    """The last heartbeats of runs that a worker has."""
    history_events: int
    history_bytes: int


async def start(client: Client, queue: str, store: Store, batch: str, whole: Manifest) -> None:
    """Put the manifest into the store and start its batch. Raises UsageError for an id in use."""
    content, digest = manifest.stored(whole)
    if store.get(batch, "manifest.json") not in (None, content):
        raise UsageError(f"the store has another batch {batch}", remedy="--id ANOTHER")
    store.put(batch, "manifest.json", content)
    state = begun(batch, digest, whole)
    with _refusing(batch):
        await client.start_workflow(
            Fleet.run,
            state,
            id=batch,
            task_queue=queue,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
        )


async def live(client: Client, batch: str) -> Live:
    """The progress of a batch. Raises UsageError if there is no such batch."""
    handle = client.get_workflow_handle_for(Fleet.run, batch)
    with _refusing(batch):
        described = await handle.describe()
        if described.status is WorkflowExecutionStatus.RUNNING:  # a worker must answer
            status = await handle.query(Fleet.status, rpc_timeout=timedelta(seconds=ANSWER_S))
        else:
            status = await handle.result()
    raw = described.raw_description
    beats = [
        msgspec.json.decode(one.heartbeat_details.payloads[0].data, type=Beat)
        for one in raw.pending_activities
        if one.heartbeat_details.payloads
    ]
    return Live(
        status=status,
        runs=tuple(beats),
        history_events=raw.workflow_execution_info.history_length,
        history_bytes=raw.workflow_execution_info.history_size_bytes,
    )


async def wait(client: Client, batch: str) -> BatchStatus:
    """Wait for the end of a batch. Raises AtlasError if it was terminated by force."""
    with _refusing(batch):
        return await client.get_workflow_handle_for(Fleet.run, batch).result()


async def signal(client: Client, batch: str, name: str, *arguments: str) -> None:
    """Pause, resume or stop a batch. Raises UsageError if it has ended."""
    with _refusing(batch):
        await client.get_workflow_handle(batch).signal(name, *arguments)


def rows(store: Store, status: BatchStatus) -> tuple[ItemRow, ...]:
    """Every item with the results of its runs in the store. Raises AtlasError."""
    whole = store.manifest(status.batch, status.digest)
    results = store.results(status.batch)
    every = []
    for index, ending in enumerate(endings(status.letters)):
        runs = [run_of(status.batch, index, stage) for stage in Stage]
        ended = [results[run] for run in runs if run in results]
        last = ended[-1] if ended else None
        repository = whole.repositories[index]
        every.append(
            ItemRow(
                name=repository.label,
                url=repository.url if repository.url.startswith(("https://", "http://")) else "",
                ending=ending.value if ending else "",
                is_green=bool(ending and ending.is_green),
                cost_usd=sum(run.cost_usd for run in ended),
                attempts=last.attempts if last else 0,
                delivered=last.delivered if last else "",
                error=last.error if last else "",
                report=store.address(status.batch, f"{last.run}/{REPORT}") if last else "",
            )
        )
    return tuple(every)


@contextmanager
def _refusing(batch: str) -> Iterator[None]:
    """Word the errors of Temporal's client. Raises UsageError or AtlasError."""
    try:
        yield
    except WorkflowAlreadyStartedError as error:
        raise UsageError(f"a batch {batch} already exists", remedy="--id ANOTHER") from error
    except (RPCError, WorkflowQueryFailedError, WorkflowFailureError) as error:
        if isinstance(error, RPCError) and error.status is RPCStatusCode.NOT_FOUND:
            why = f"there is no batch {batch}, or it has ended"
            raise UsageError(why, remedy="atlas fleet start MANIFEST") from error
        why = f"batch {batch}: {error.__cause__ or error}"
        raise AtlasError(why, remedy="is there a worker? atlas fleet worker") from error


T = TypeVar("T")
THREADS_END_S = 0.3
"""Temporal's client fails in threads of its own: the interpreter aborts if it ends before them."""
SECRETS = "TEMPORAL_"
"""Prefix of variables with the server and its keys; child processes do not get them."""


async def connect(server: str | None) -> Client:
    """A client; `server` is HOST:PORT, and overrides TEMPORAL_ADDRESS and the profile.

    API key and mTLS: TEMPORAL_API_KEY, TEMPORAL_TLS_CLIENT_CERT_PATH and _KEY_PATH ..., or a
    profile in temporal.toml. Source: docs.temporal.io, "Environment configuration". Raises
    AtlasError if the server does not answer.
    """
    settings = ClientConfig.load_client_connect_config()
    address = server or settings.get("target_host") or "localhost:7233"
    settings["target_host"] = address
    try:
        await _reach(address)
        return await Client.connect(**settings, data_converter=CONVERTER)
    except (OSError, RuntimeError, RPCError) as error:
        why = f"no Temporal server at {address}: {error}"
        if not isinstance(error, OSError):
            await asyncio.sleep(THREADS_END_S)
            why = f"{address} does not talk to Temporal's client: another program, or TLS differs"
        raise AtlasError(why, remedy="temporal server start-dev, or --server HOST:PORT") from error


async def _reach(address: str) -> None:
    """Raise OSError, in plain words, if no program listens at HOST:PORT."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise OSError("expected HOST:PORT")
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(host.strip("[]"), port), 10)
    except TimeoutError as error:
        raise OSError("no answer within 10 s") from error
    except socket.gaierror as error:
        raise OSError(f"the name {host} is unknown") from error
    except ConnectionRefusedError as error:
        raise OSError("connection refused") from error
    writer.close()


def ask(server: str | None, act: Callable[[Client], Awaitable[T]]) -> T:
    """Connect, and run one operation. Raises like `connect` and the operation."""

    async def asking() -> T:
        return await act(await connect(server))

    return asyncio.run(asking())


MAX_BYTES = 64 * 1024
"""Limit of a payload; the store has everything larger."""


class _Values(EncodingPayloadConverter):
    """Values of atlas as plain JSON, which the server's web page can show."""

    @property
    def encoding(self) -> str:
        return "json/plain"

    def to_payload(self, value: object) -> Payload:
        content = msgspec.json.encode(value)
        if len(content) > MAX_BYTES:
            raise ValueError(f"{len(content)} bytes are too many for a payload: use the store")
        return Payload(metadata={"encoding": b"json/plain"}, data=content)

    def from_payload(self, payload: Payload, type_hint: type | None = None) -> object:
        return msgspec.json.decode(payload.data, type=type_hint or object)


class _Converter(CompositePayloadConverter):
    def __init__(self) -> None:
        super().__init__(BinaryNullPayloadConverter(), _Values())


CONVERTER = dataclasses.replace(DataConverter.default, payload_converter_class=_Converter)

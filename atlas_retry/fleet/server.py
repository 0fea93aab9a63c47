"""The connection to the server: address and secrets by Temporal's own variables and profiles."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.service import RPCError

from atlas_retry.errors import AtlasError
from atlas_retry.fleet.payload import CONVERTER

T = TypeVar("T")
SECRETS = "TEMPORAL_"
"""How the variables begin that name the server and the keys to it; no child gets them."""


async def connect(server: str | None) -> Client:
    """A client; `server` is HOST:PORT, over TEMPORAL_ADDRESS and the profile.

    API key and mTLS: TEMPORAL_API_KEY, TEMPORAL_TLS_CLIENT_CERT_PATH and _KEY_PATH ..., or a
    profile in temporal.toml. Source: docs.temporal.io, "Environment configuration". Raises
    AtlasError where there is no such server.
    """
    settings = ClientConfig.load_client_connect_config()
    settings["target_host"] = server or settings.get("target_host") or "localhost:7233"
    try:
        return await Client.connect(**settings, data_converter=CONVERTER)
    except (RuntimeError, RPCError) as error:
        raise AtlasError(
            f"no Temporal server answers at {settings['target_host']}: {error}",
            remedy="temporal server start-dev, or --server HOST:PORT",
        ) from error


def ask(server: str | None, act: Callable[[Client], Awaitable[T]]) -> T:
    """Connect, and do one thing. Raises as `connect` and the thing itself."""

    async def asking() -> T:
        return await act(await connect(server))

    return asyncio.run(asking())

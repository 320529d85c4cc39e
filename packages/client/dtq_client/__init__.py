"""For people who submit: clients and handles."""

from dtq_client.async_client import AsyncClient
from dtq_client.client import Client
from dtq_client.handle import AsyncHandle, Handle
from dtq_client.requests import CancelAnswer

__all__ = ["AsyncClient", "AsyncHandle", "CancelAnswer", "Client", "Handle"]

"""Handles: what a submission returns, to ask after the task later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dtq_client.requests import CancelAnswer
from dtq_core.record import Attempt, TaskInfo
from dtq_core.states import Status
from dtq_tasks import Task

if TYPE_CHECKING:
    from dtq_client.async_client import AsyncClient
    from dtq_client.client import Client

R_co = TypeVar("R_co", covariant=True)


class Handle(Generic[R_co]):
    """A submitted task, seen through a :class:`Client`.

    Attributes:
        id: the task's id.
        duplicate: whether the idempotency key belonged to this task before.
    """

    def __init__(
        self, client: Client, task_id: str, task: Task[..., Any] | None, *, duplicate: bool = False
    ) -> None:
        self._client = client
        self._task = task
        self.id = task_id
        self.duplicate = duplicate

    def info(self) -> TaskInfo:
        """Return what is known of the task. Errors as :meth:`Client.get`."""
        return self._client.get(self.id)

    def status(self) -> Status:
        """Return where the task stands. Errors as :meth:`Client.get`."""
        return self.info().status

    def result(self, timeout: float | None = None) -> R_co:
        """Wait for the result. Arguments and errors as :meth:`Client.result`."""
        result: R_co = self._client.result(self.id, timeout, task=self._task)
        return result

    def cancel(self, reason: str = "") -> CancelAnswer:
        """Cancel the task. Arguments and answers as :meth:`Client.cancel`."""
        return self._client.cancel(self.id, reason)

    def attempts(self) -> list[Attempt]:
        """Return its ended attempts, oldest first. Errors as :meth:`Client.get`."""
        return self._client.attempts(self.id)

    def __repr__(self) -> str:
        return f"<Handle {self.id}>"


class AsyncHandle(Generic[R_co]):
    """The same, seen through an :class:`AsyncClient`.

    Attributes:
        id: the task's id.
        duplicate: whether the idempotency key belonged to this task before.
    """

    def __init__(
        self,
        client: AsyncClient,
        task_id: str,
        task: Task[..., Any] | None,
        *,
        duplicate: bool = False,
    ) -> None:
        self._client = client
        self._task = task
        self.id = task_id
        self.duplicate = duplicate

    async def info(self) -> TaskInfo:
        """Return what is known of the task. Errors as :meth:`Client.get`."""
        return await self._client.get(self.id)

    async def status(self) -> Status:
        """Return where the task stands. Errors as :meth:`Client.get`."""
        return (await self.info()).status

    async def result(self, timeout: float | None = None) -> R_co:
        """Wait for the result. Arguments and errors as :meth:`Client.result`."""
        result: R_co = await self._client.result(self.id, timeout, task=self._task)
        return result

    async def cancel(self, reason: str = "") -> CancelAnswer:
        """Cancel the task. Arguments and answers as :meth:`Client.cancel`."""
        return await self._client.cancel(self.id, reason)

    async def attempts(self) -> list[Attempt]:
        """Return its ended attempts, oldest first. Errors as :meth:`Client.get`."""
        return await self._client.attempts(self.id)

    def __repr__(self) -> str:
        return f"<AsyncHandle {self.id}>"

"""The record of an operation in the caller's own transaction, through SQLAlchemy.

The row is inserted before the function runs, so that of two runs at once the second waits for the
first one's transaction; it gets its result before the caller commits. Row and effect are committed
together, or neither is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import (
    Column,
    Connection,
    CursorResult,
    DateTime,
    Insert,
    LargeBinary,
    MetaData,
    String,
    Table,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session

from dtq_core.errors import (
    InvalidOptionError,
    OperationBusyError,
    OperationInDoubtError,
    OperationUsageError,
)
from dtq_tasks.operations.record import Begun
from dtq_tasks.operations.token import token_of

T = TypeVar("T")
SESSIONS = (Session, AsyncSession, scoped_session, async_scoped_session)
_LARGEST_RESULT = 2**31 - 1

metadata = MetaData()
"""For migrations: holds the one table."""

operations = Table(
    "dtq_operations",
    metadata,
    Column("scope", String(32), primary_key=True),
    Column("name", String(100), primary_key=True),
    Column("result", LargeBinary(_LARGEST_RESULT)),
    Column("created_at", DateTime(timezone=True), nullable=False, index=True),
    mysql_engine="InnoDB",
    mariadb_engine="InnoDB",
)
"""The records: task id, name of the operation, its result as JSON, and when it was begun."""


def create_tables(connection: Connection) -> None:
    """Create the table unless it is there; for those who have no migrations.

    Args:
        connection: the caller commits it. With an ``AsyncConnection``,
            ``await connection.run_sync(create_tables)``.
    """
    metadata.create_all(connection)


def delete_old(session: Session, older_than: timedelta) -> int:
    """Delete old records; the caller commits.

    Args:
        session: where they are. With an ``AsyncSession``,
            ``await session.run_sync(delete_old, older_than)``.
        older_than: longer than any task may take from its first attempt to its last.

    Returns:
        How many there were.
    """
    old = operations.c.created_at < datetime.now(UTC) - older_than
    return _rows(session, delete(operations).where(old))


class SqlRecord:
    """The record of one run, in the transaction of a session."""

    def __init__(self, session: Any, task_id: str, name: str) -> None:
        """Take the session of the caller, who commits."""
        scoped = isinstance(session, (scoped_session, async_scoped_session))
        self._session: Session | AsyncSession = session() if scoped else session
        self._task_id = task_id
        self._name = name

    def begin(self) -> Begun:
        """Begin; errors as :func:`dtq_tasks.idempotent_operation`, and SQLAlchemy's own."""
        return self._begin(self._plain())

    async def begin_async(self) -> Begun:
        """Begin; as :meth:`begin`."""
        return await self._on_loop(self._begin)

    def end(self, result: bytes | None) -> None:
        """End; errors of SQLAlchemy."""
        self._end(self._plain(), result)

    async def end_async(self, result: bytes | None) -> None:
        """End; as :meth:`end`."""
        await self._on_loop(lambda session: self._end(session, result))

    def cut(self) -> None:
        """Leave it to the transaction, which is to be rolled back."""

    def _begin(self, session: Session) -> Begun:
        if _rows(session, self._insertion(session)):
            return Begun(None)
        row = session.execute(
            select(operations.c.result).where(*self._mine).with_for_update(read=True)
        ).first()
        if row is None:
            raise OperationBusyError(
                self._name, "another transaction has done it that this one cannot see: roll back"
            )
        if row.result is None:  # somebody committed in spite of an interruption
            raise OperationInDoubtError(self._name, token_of(self._task_id, self._name))
        return Begun(row.result)

    def _end(self, session: Session, result: bytes | None) -> None:
        if result:
            session.execute(update(operations).where(*self._mine).values(result=result))
            return
        with contextlib.suppress(SQLAlchemyError):  # then nothing but a rollback is possible
            session.execute(delete(operations).where(*self._mine))

    def _insertion(self, session: Session) -> Insert:
        """An insert that does nothing where the row is there.

        A savepoint would do as well, but not every driver keeps one inside the transaction.
        """
        values = {
            "scope": self._task_id,
            "name": self._name,
            "created_at": datetime.now(UTC),
        }
        dialect = session.connection().dialect.name
        if dialect == "sqlite":
            return sqlite.insert(operations).values(values).on_conflict_do_nothing()
        if dialect == "postgresql":
            return postgresql.insert(operations).values(values).on_conflict_do_nothing()
        if dialect in {"mysql", "mariadb"}:
            return insert(operations).prefix_with("IGNORE").values(values)
        raise InvalidOptionError(
            f"operation {self._name}: {dialect} is not supported: use SQLite, PostgreSQL, MySQL "
            "or MariaDB"
        )

    @property
    def _mine(self) -> tuple[Any, Any]:
        return operations.c.scope == self._task_id, operations.c.name == self._name

    def _plain(self) -> Session:
        if isinstance(self._session, Session):
            return self._session
        raise OperationUsageError(self._name, "an AsyncSession needs an async function or block")

    async def _on_loop(self, step: Callable[[Session], T]) -> T:
        if isinstance(self._session, AsyncSession):
            return await self._session.run_sync(step)
        raise OperationUsageError(
            self._name, "a plain Session would hold up the event loop: use an AsyncSession"
        )


def _rows(session: Session, statement: Any) -> int:
    """Execute a statement, and return how many rows it wrote."""
    done = session.execute(statement, execution_options={"preserve_rowcount": True})
    assert isinstance(done, CursorResult)
    assert done.rowcount >= 0, "a driver that cannot tell would have effects happen twice"
    return done.rowcount

"""Who a worker is: unique for each start of a process, on whatever host."""

from __future__ import annotations

import os
import re
import secrets
import socket


def new_worker_id() -> str:
    """Return a name no other process has had: host, process id and chance.

    Containers share host names and process ids; the random part keeps them apart.
    """
    host = re.sub(r"[^A-Za-z0-9_.-]", "-", socket.gethostname())[:60] or "host"
    return f"{host}-{os.getpid()}-{secrets.token_hex(4)}"

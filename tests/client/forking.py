"""A program that forks while it uses a client, and uses it on, on both sides.

Prints the id of every task that was accepted. Its argument is ``[url, prefix]`` in JSON.
"""

from __future__ import annotations

import json
import os
import sys
import warnings

from client.tasks import add
from dtq import Client, Handle
from dtq_core.errors import ResultTimeoutError

CHILDREN = 4


def submit_and_wait(client: Client, number: int) -> Handle[int]:
    handle = client.submit(add, number)
    try:
        handle.result(timeout=0.1)
    except ResultTimeoutError:
        return handle
    raise AssertionError("nobody ran it")


def use_in_child(client: Client) -> None:
    handles = [submit_and_wait(client, 2), *client.submit_many(add, [(3,), (4,)])]
    client.close()
    os.write(1, "".join(f"{handle.id}\n" for handle in handles).encode())
    os._exit(0)


def main() -> None:
    warnings.simplefilter("ignore", DeprecationWarning)  # of a fork in a process with threads
    url, prefix = json.loads(sys.argv[1])
    with Client(url, prefix=prefix) as client:
        ids = [submit_and_wait(client, 0).id]
        pids = []
        for _ in range(CHILDREN):
            if (pid := os.fork()) == 0:
                use_in_child(client)
            pids.append(pid)
        for pid in pids:
            _, status = os.waitpid(pid, 0)
            assert os.waitstatus_to_exitcode(status) == 0
        ids.append(submit_and_wait(client, 1).id)
    print(*ids, sep="\n")


if __name__ == "__main__":
    main()

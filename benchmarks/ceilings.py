"""What this machine and this server allow at most, measured in the same run as dtq.

bare streams   XADD, XREADGROUP and XACK in pipelines: no record, no result, nothing kept
same writes    what dtq writes for a task that succeeds, in batched scripts with no checks, and no
               handlers: status and attempt in the record, result, event, acknowledgement
hand-over      a token pushed by one process and waited for by another, which then calls a script
               that does nothing: the way of a task to an idle worker, without the task
"""

from __future__ import annotations

import subprocess
import sys
import time

from bench_server import Server
from dtq import Client
from dtq_core.connections import Link
from dtq_core.scripts import Script
from measures import HERE, PAUSE_S, percentiles

BATCH = 100

_SUBMIT = """
local P, NOW = KEYS[1], 1796125641346
for i = 1, #ARGV, 2 do
  local id, payload = ARGV[i], ARGV[i + 1]
  local entry = redis.call('XADD', P .. ':s', '*', 'id', id, 'attempt', 1)
  redis.call('HSET', P .. ':task:' .. id, 'status', 'QUEUED', 'queue', 'default',
    'band', 'normal', 'spec', '{"name":"noop"}', 'payload', payload, 'attempt', 1,
    'max_attempts', 3, 'submitted_ms', NOW, 'entry_id', entry, 'queued_ms', NOW)
  redis.call('XADD', P .. ':e', 'MAXLEN', '~', 10000, '*',
    'type', 'TASK_SUBMITTED', 'id', id, 'queue', 'default', 'attempt', 1)
end
"""

_CLAIM = """
local P, NOW, answer = KEYS[1], 1796125641346, {}
local found = redis.call('XREADGROUP', 'GROUP', 'workers', 'w', 'COUNT', ARGV[1],
  'STREAMS', P .. ':s', '>')
for i, entry in ipairs(found and found[1][2] or {}) do
  local key = P .. ':task:' .. entry[2][2]
  redis.call('HSET', key, 'status', 'RUNNING', 'attempt', 1, 'lease', 1, 'worker', 'w',
    'started_ms', NOW)
  answer[i] = {entry[1], entry[2][2], redis.call('HGET', key, 'payload')}
end
return answer
"""

_FINISH = """
local P, NOW, DAY, entries = KEYS[1], 1796125641346, 86400000, {}
for i = 1, #ARGV, 2 do
  local id = ARGV[i + 1]
  entries[#entries + 1] = ARGV[i]
  redis.call('HSET', P .. ':task:' .. id, 'status', 'SUCCEEDED', 'finished_ms', NOW)
  redis.call('SET', P .. ':result:' .. id, 'null', 'PX', DAY)
  redis.call('XADD', P .. ':e', 'MAXLEN', '~', 10000, '*',
    'type', 'TASK_SUCCEEDED', 'id', id, 'queue', 'default', 'attempt', 1)
  redis.call('PEXPIRE', P .. ':task:' .. id, DAY)
end
redis.call('XACK', P .. ':s', 'workers', unpack(entries))
redis.call('XDEL', P .. ':s', unpack(entries))
"""


def bare_streams(client: Client, server: Server, tasks: int) -> dict[str, float]:
    server.empty()
    link = client.store.link
    link.command("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
    begin = time.perf_counter()
    for _ in range(0, tasks, BATCH):
        link.pipeline([("XADD", "s", "*", "id", "0" * 32)] * BATCH)
        found = link.command("XREADGROUP", "GROUP", "g", "c", "COUNT", BATCH, "STREAMS", "s", ">")
        link.command("XACK", "s", "g", *(entry for entry, _ in found[0][1]))
    return {"ceiling: bare streams, tasks/s": tasks / (time.perf_counter() - begin)}


def same_writes(client: Client, server: Server, tasks: int) -> dict[str, float]:
    server.empty()
    link = client.store.link
    submit, claim, finish = (_loaded(link, text) for text in (_SUBMIT, _CLAIM, _FINISH))
    link.command("XGROUP", "CREATE", "c:s", "workers", "0", "MKSTREAM")
    for first in range(0, tasks, BATCH):
        ids = [f"{number:032x}" for number in range(first, first + BATCH)]
        link.script(submit, "c", [value for task_id in ids for value in (task_id, "x" * 50)])
    begin = time.perf_counter()
    while found := link.script(claim, "c", [BATCH]):
        link.script(finish, "c", [value for entry in found for value in entry[:2]])
    return {"ceiling: the same writes, tasks/s": tasks / (time.perf_counter() - begin)}


def hand_over(client: Client, server: Server, tasks: int) -> dict[str, float]:
    server.empty()
    link = client.store.link
    waiter = subprocess.Popen([sys.executable, HERE / "hand_over.py", client.store.url])
    begun = [_push(link, "next")]
    while not link.command("LLEN", "started"):  # the waiter comes up
        time.sleep(PAUSE_S)
    for _ in range(tasks):
        time.sleep(PAUSE_S)
        begun.append(_push(link, "next"))
    _push(link, "last")
    waiter.wait()
    started = [int(text) for text in link.command("LRANGE", "started", 0, -1)]
    pairs = list(zip(begun, started, strict=True))[1:]
    return percentiles("ceiling: hand-over", [end - begin for begin, end in pairs])


def _push(link: Link, token: str) -> int:
    """Push a token, and return when that began."""
    begin = time.monotonic_ns()
    link.raw("RPUSH", "wake", token)
    return begin


def _loaded(link: Link, text: str) -> Script:
    return Script("ceiling", text, link.command("SCRIPT", "LOAD", text).decode())

"""Whether the user may do what dtq does: each command is tried, in a form that changes nothing.

ACL itself may be forbidden, so nobody is asked. A command is tried on a key that holds a plain
text, where it fails for the type or changes nothing; before that, the server looks at the rights.
"""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from dtq_client.doctor.finding import Finding, Verdict
from dtq_core.connections import translate
from dtq_core.errors import RedisDeniedError
from dtq_core.store import Store

_TRIALS = (
    "BLPOP {key} 0.01",
    "DEL {key}:none",
    "EVAL return#1 1 {prefix}",
    "EVALSHA 0000000000000000000000000000000000000000 1 {prefix}",
    "EXISTS {key}",
    "GET {key}",
    "HDEL {key} f",
    "HEXISTS {key} f",
    "HGET {key} f",
    "HGETALL {key}",
    "HINCRBY {key} f 1",
    "HKEYS {key}",
    "HMGET {key} f",
    "HSCAN {key} 0",
    "HSET {key} f v",
    "HSETNX {key} f v",
    "LRANGE {key} 0 0",
    "LREM {key} 0 v",
    "LTRIM {key} 0 -1",
    "PERSIST {key}:none",
    "PEXPIRE {key}:none 1",
    "PING",
    "PTTL {key}",
    "PUBLISH {prefix}:doctor -",
    "RPUSH {key} v",
    "SCAN 0 COUNT 1",
    "SET {key} - PX 60000",
    "SUBSCRIBE {prefix}:doctor",
    "UNSUBSCRIBE {prefix}:doctor",  # at once: nothing else may be asked before
    "TIME",
    "TYPE {key}",
    "WAIT 0 1",
    "XACK {key} g 0-1",
    "XADD {key} * f v",
    "XAUTOCLAIM {key} g c 0 0-0",
    "XCLAIM {key} g c 0 0-1",
    "XDEL {key} 0-1",
    "XGROUP CREATE {key} g 0",
    "XGROUP DELCONSUMER {key} g c",
    "XINFO CONSUMERS {key} g",
    "XINFO GROUPS {key}",
    "XLEN {key}",
    "XPENDING {key} g",
    "XRANGE {key} - +",
    "XREADGROUP GROUP g c STREAMS {key} >",
    "XREVRANGE {key} + -",
    "XTRIM {key} MAXLEN 0",
    "ZADD {key} 1 m",
    "ZCARD {key}",
    "ZRANGE {key} 0 0",
    "ZRANGEBYSCORE {key} 0 0",
    "ZREM {key} m",
    "ZSCAN {key} 0",
    "ZSCORE {key} m",
)
"""Every command that dtq sends or its scripts run; SET makes the text that the others meet."""


def tried_commands() -> set[str]:
    """Return the names of the commands that are tried."""
    return {trial.split()[0] for trial in _TRIALS}


def examine_rights(store: Store) -> Finding:
    """Try every command in one round trip.

    Raises:
        RedisUnavailableError: if the server cannot be reached.
    """
    keys = store.partitions.all[0]
    ordered = sorted(_TRIALS, key=lambda trial: not trial.startswith("SET "))
    commands = [
        [word.format(key=keys.mark, prefix=keys.prefix).replace("#", " ") for word in trial.split()]
        for trial in ordered
    ]
    replies = store.link.burst(commands, decisive=0)
    denied = sorted(
        {command[0] for command, reply in zip(commands, replies, strict=True) if _denied(reply)}
    )
    why = "A script that is refused half way would be worse than one that cannot begin."
    if not denied:
        return Finding("rights", Verdict.OK, "the user may do all that dtq does", why)
    user = unquote(urlsplit(store.url).username or "default")
    rights = " ".join(f"+{name.lower()}" for name in denied)
    says = f"refused: {', '.join(denied)}"
    return Finding("rights", Verdict.DANGER, says, why, f"redis-cli ACL SETUSER {user} {rights}")


def _denied(reply: object) -> bool:
    return isinstance(reply, Exception) and isinstance(translate(reply, ""), RedisDeniedError)

"""Bodies: read within limits of size and time, and decoded strictly."""

from __future__ import annotations

import asyncio
from typing import TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request

from dtq_api.problems import Kind, Problem
from dtq_core.errors import InputError

T = TypeVar("T")

_JSON = "application/json"
_FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 50
_CLOSE = {"Connection": "close"}


async def read_json(request: Request, kind: type[T], limit_bytes: int, timeout_s: float) -> T:
    """Return the body of a request; an empty one is an object without members.

    Args:
        request: whose body it is.
        kind: what it is to be.
        limit_bytes: how long it may be.
        timeout_s: how long it may take to come, in seconds.

    Raises:
        Problem: if it is refused.
    """
    return decode(await _read(request, _JSON, limit_bytes, timeout_s) or b"{}", kind)


async def read_form(request: Request, limit_bytes: int, timeout_s: float) -> dict[str, str]:
    """Return the fields of a form that a browser has sent. Arguments and errors as `read_json`."""
    text = await _read(request, _FORM, limit_bytes, timeout_s)
    try:
        return dict(parse_qsl(text.decode(), max_num_fields=_MOST_FIELDS))
    except ValueError:
        raise Problem(Kind.INVALID, "the form cannot be read") from None


def decode(text: bytes | msgspec.Raw, kind: type[T]) -> T:
    """Decode strictly.

    Raises:
        Problem: if it is no JSON, or not of this kind.
    """
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, InputError):
            raise error.__cause__ from None
        raise Problem(Kind.INVALID, _in_our_words(error)) from None
    except RecursionError:
        raise Problem(Kind.INVALID, "the body is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise Problem(Kind.MALFORMED_JSON, f"the body is not valid JSON: {error}") from None


def _in_our_words(error: msgspec.ValidationError) -> str:
    """``$.delay: expected float, got str``, of a message of msgspec."""
    message, _, path = str(error).partition(" - at ")
    text = message.replace("`", "")
    text = text[:1].lower() + text[1:]
    return f"{path.strip('`')}: {text}" if path else text


async def _read(request: Request, media_type: str, limit_bytes: int, timeout_s: float) -> bytes:
    _check_headers(request, media_type, limit_bytes)
    chunks, size = [], 0
    try:
        async with asyncio.timeout(timeout_s):
            async for chunk in request.stream():
                size += len(chunk)
                if size > limit_bytes:
                    raise _too_large(limit_bytes)
                chunks.append(chunk)
    except TimeoutError:
        detail = f"the body had not come after {timeout_s:g} s"
        raise Problem(Kind.TOO_SLOW, detail, headers=_CLOSE) from None
    return b"".join(chunks)


def _check_headers(request: Request, wanted: str, limit_bytes: int) -> None:
    headers = request.headers
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem(Kind.MEDIA_TYPE, "a compressed body is not taken", headers=_CLOSE)
    media_type, _, parameters = headers.get("content-type", "").partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"') or "utf-8"
    if media_type.strip().lower() != wanted or charset != "utf-8":
        detail = f"send Content-Type: {wanted}, in UTF-8"
        raise Problem(Kind.MEDIA_TYPE, detail, headers=_CLOSE)
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > limit_bytes:
        raise _too_large(limit_bytes)


def _too_large(limit_bytes: int) -> Problem:
    detail = f"the body is longer than {limit_bytes:,} bytes"
    return Problem(Kind.TOO_LARGE, detail, headers=_CLOSE)

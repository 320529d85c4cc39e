"""JSON, strictly: what is encoded reads back as the same JSON value, or is refused by name.

msgspec does the work. It writes NaN and infinity as ``null`` without a word, so a text that holds a
``null`` is looked at again; that costs nothing where there is none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import msgspec

from dtq_core.errors import EncodingError
from dtq_core.limits import MAX_DEPTH


def _encode_foreign(value: Any) -> Any:
    """Encode what msgspec does not know: pydantic models, by their own method."""
    dump: Callable[..., Any] | None = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json", by_alias=True)  # the names under which it validates
    raise EncodingError(f"a {type(value).__name__} has no JSON form")


_encoder = msgspec.json.Encoder(enc_hook=_encode_foreign)
_decoder = msgspec.json.Decoder()

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
_NO_BRACKET = bytes(set(range(256)) - set(b"{}[]"))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def encode(value: Any, what: str) -> bytes:
    """Encode a value as JSON.

    Args:
        value: anything that msgspec can write, and pydantic models.
        what: its name, for the message ("argument 'user_id'").

    Raises:
        EncodingError: for NaN, infinity, lone surrogates, more than ``MAX_DEPTH`` levels, or a
            type without a JSON form.
    """
    try:
        text = _encoder.encode(value)
        finite = b"null" not in text or not _holds_non_finite(value)
    except RecursionError:
        raise EncodingError(f"{what} is nested more than {MAX_DEPTH} levels deep") from None
    except UnicodeEncodeError:
        raise EncodingError(f"{what} holds text with a lone surrogate") from None
    except EncodingError as error:
        raise EncodingError(f"{what} cannot be encoded: {error}") from None
    except Exception as error:  # an encoder of the user's own type may raise anything
        raise EncodingError(f"{what} cannot be encoded: {describe(error)}") from None
    if not finite:
        raise EncodingError(f"{what} holds NaN or infinity, which JSON cannot say")
    if _too_deep(text):
        raise EncodingError(f"{what} is nested more than {MAX_DEPTH} levels deep")
    return text


def decode(text: bytes | str, what: str) -> Any:
    """Decode JSON text.

    Raises:
        EncodingError: if it is not JSON, holds a number that no float can, or is too deep.
    """
    try:
        value = _decoder.decode(text)
    except RecursionError:
        raise EncodingError(f"{what} is nested more than {MAX_DEPTH} levels deep") from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise EncodingError(f"{what} is not valid JSON: {error}") from None
    if _too_deep(text.encode() if isinstance(text, str) else text):
        raise EncodingError(f"{what} is nested more than {MAX_DEPTH} levels deep")
    return value


def describe(error: BaseException) -> str:
    """Return type and message of an exception, even of one that cannot be printed."""
    try:
        text = str(error)
    except BaseException:  # whatever a foreign __str__ raises
        text = "(its message cannot be printed)"
    name = type(error).__name__
    return f"{name}: {text}" if text else name


def depth(text: bytes) -> int:
    """Return the levels of nesting in a valid JSON text."""
    brackets = _STRING.sub(b"", text).translate(None, _NO_BRACKET)
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0)


def _too_deep(text: bytes) -> bool:
    brackets = text.count(b"[") + text.count(b"{")
    return brackets > MAX_DEPTH and depth(text) > MAX_DEPTH


def _holds_non_finite(value: Any) -> bool:
    """Tell whether a value, as msgspec sees it, holds a float that JSON cannot say."""
    stack = [msgspec.to_builtins(value, enc_hook=_encode_foreign)]
    while stack:
        item = stack.pop()
        if isinstance(item, float):
            if not math.isfinite(item):
                return True
        elif isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, (list, tuple, set, frozenset)):
            stack.extend(item)
    return False

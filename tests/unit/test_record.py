"""Records: what is stored of a submission, and what readers make of whatever is stored."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dtq_core.errors import InvalidOptionError, TooLargeError
from dtq_core.record import (
    INFO_FIELDS,
    Options,
    SubmissionForm,
    decode_attempt,
    decode_info,
    decode_spec,
    fingerprint,
)
from dtq_core.settings import Settings
from dtq_core.states import Status

import pytest  # isort: skip

SETTINGS = Settings()


def _info(**fields: str) -> list[bytes | None]:
    stored = {"status": "QUEUED", "spec": '{"name":"n"}', **fields}
    return [stored[name].encode() if name in stored else None for name in INFO_FIELDS]


def test_options_of_the_submitter_travel_in_the_spec_and_defaults_do_not() -> None:
    plain = SubmissionForm("n", Options(), SETTINGS).submission("0" * 32, b"[]")
    assert plain.spec == b'{"name":"n"}'
    asked = SubmissionForm("n", Options(timeout=5, result_ttl=9), SETTINGS).submission(
        "0" * 32, b"[]"
    )
    spec = decode_spec(asked.spec)
    assert (spec.name, spec.timeout, spec.result_ttl) == ("n", 5, 9)


def test_retention_is_the_longest_of_what_needs_the_record() -> None:
    settings = Settings(retention=10, result_ttl=20, idempotency_ttl=30)
    plain = SubmissionForm("n", Options(), settings).submission("0" * 32, b"[]")
    keyed = SubmissionForm("n", Options(idempotency_key="k"), settings).submission("0" * 32, b"[]")
    asked = SubmissionForm("n", Options(result_ttl=40), settings).submission("0" * 32, b"[]")
    assert [made.retention_ms for made in (plain, keyed, asked)] == [20_000, 30_000, 40_000]


def test_a_payload_over_the_limit_is_refused_with_its_size() -> None:
    settings = Settings(max_payload_bytes=10)
    with pytest.raises(TooLargeError, match="11 bytes, over the limit of 10"):
        SubmissionForm("n", Options(), settings).submission("0" * 32, b"x" * 11)


@pytest.mark.parametrize(
    "options",
    [
        {"delay": -1},
        {"delay": float("inf")},
        {"delay": float("nan")},
        {"delay": True},
        {"ttl": -0.001},
        {"ttl": 1e12},
        {"timeout": 0},
        {"result_ttl": 0},
        {"max_attempts": 0},
        {"max_attempts": 1.5},
        {"band": "urgent"},
        {"queue": "a b"},
        {"idempotency_key": ""},
        {"idempotency_key": "a b"},
        {"idempotency_key": "k" * 256},
        {"dead_letter": "no"},
    ],
)
def test_an_option_out_of_bounds_is_refused_when_it_is_given(options: dict[str, object]) -> None:
    with pytest.raises((InvalidOptionError, ValueError)):
        Options(**options)  # type: ignore[arg-type]


def test_a_fingerprint_compares_meaning_not_bytes() -> None:
    same = fingerprint("n", b'[[{"a":1,"b":2}],{}]', Options())
    assert fingerprint("n", b'[[{"b":2, "a":1}], {}]', Options()) == same
    assert fingerprint("n", b'[[{"a":1,"b":3}],{}]', Options()) != same
    assert fingerprint("m", b'[[{"a":1,"b":2}],{}]', Options()) != same
    assert fingerprint("n", b'[[{"a":1,"b":2}],{}]', Options(delay=5)) == same


def test_a_record_reads_back_under_the_names_of_the_face() -> None:
    info = decode_info(
        "0" * 32,
        _info(status="RETRYING", queue="q", attempt="2", error="E: no", due_ms="1796125641346"),
    )
    assert info is not None
    assert (info.status, info.name, info.queue, info.attempt) == (Status.RETRYING, "n", "q", 2)
    assert info.due_at == "2026-12-01T11:47:21.346Z"


def test_the_error_of_an_earlier_attempt_is_not_that_of_a_success() -> None:
    info = decode_info("0" * 32, _info(status="SUCCEEDED", error="E: no"))
    assert info is not None
    assert info.error is None


@given(
    st.lists(
        st.none() | st.binary(max_size=40), min_size=len(INFO_FIELDS), max_size=len(INFO_FIELDS)
    )
)
def test_whatever_a_record_holds_it_can_be_listed(values: list[bytes | None]) -> None:
    decode_info("0" * 32, values)
    decode_info("0" * 32, [b"QUEUED", *values[1:]])


@given(st.binary(max_size=200))
def test_whatever_an_attempt_holds_it_can_be_listed(text: bytes) -> None:
    assert decode_attempt(text).outcome

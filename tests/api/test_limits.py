"""What is too long, too slow, too deep or no JSON at all (scenarios K2, L3)."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest

from api.site import Site, problem

MB = 1_048_576
SLOW_S = 0.5
HEAD = b"POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def strict(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """An API that waits half a second for a request, and for no longer."""
    made = Site(tmp_path_factory.mktemp("strict"), redis_url, api_read_timeout=SLOW_S)
    yield made
    made.close()


def exchange(site: Site, *parts: bytes, pause_s: float = 0) -> bytes:
    """Send parts of a request; return all that is answered until the other side closes."""
    with socket.create_connection(site.api.address, 10) as peer:
        try:
            for part in parts:
                peer.sendall(part)
                time.sleep(pause_s)
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = b""
        try:
            while part := peer.recv(65_536):
                answer += part
        except ConnectionResetError:
            pass
        return answer


def peak_kib(site: Site) -> int:
    """The most memory that the API ever had."""
    text = Path(f"/proc/{site.api.process.pid}/status").read_text()
    return int(text.partition("VmHWM:")[2].split()[0])


def in_chunks(size: int) -> Iterator[bytes]:
    yield HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    for _ in range(size // 65_536):
        yield b"10000\r\n" + b" " * 65_536 + b"\r\n"
    yield b"0\r\n\r\n"


def test_l3_a_body_without_a_length_is_cut_at_the_limit(site: Site) -> None:
    site.accepted("add", 1, 2)
    before = peak_kib(site)
    assert exchange(site, *in_chunks(50 * MB)).startswith(b"HTTP/1.1 413 ")
    assert peak_kib(site) - before < 10 * 1024


@pytest.mark.parametrize(
    ("length", "status"),
    [
        (b"52428800", b"413"),
        (b"99999999999999999999999999", b"400"),
        (b"-1", b"400"),
        (b"x", b"400"),
        (b"2\r\nContent-Length: 3", b"400"),
    ],
)
def test_l3_a_wrong_length_is_refused(site: Site, length: bytes, status: bytes) -> None:
    answer = exchange(site, HEAD + b"Content-Length: " + length + b"\r\n\r\n{}")
    assert answer.startswith(b"HTTP/1.1 " + status), answer


def test_l3_a_length_that_is_too_small_cuts_the_body(site: Site) -> None:
    body = b'{"name":"add","args":[1,2]}'
    answer = exchange(site, HEAD + b"Connection: close\r\nContent-Length: 5\r\n\r\n" + body)
    assert answer.startswith(b"HTTP/1.1 400 ")


def test_l3_a_compressed_body_is_not_taken(site: Site) -> None:
    answer = site.post("/v1/tasks", {"name": "add"}, Content_Encoding="gzip")
    problem(answer, 415, "unsupported-media-type")


def test_l3_a_body_that_comes_too_slowly_is_cut_off(strict: Site) -> None:
    answer = exchange(strict, HEAD + b"Content-Length: 99\r\n\r\n", *([b"{"] * 8), pause_s=0.1)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"urn:dtq:problem:too-slow" in answer


@pytest.mark.parametrize("parts", [[], [HEAD[:9]], [bytes([byte]) for byte in HEAD[:20]]])
def test_l3_a_head_that_comes_too_slowly_is_cut_off(strict: Site, parts: list[bytes]) -> None:
    answer = exchange(strict, *parts, pause_s=0.05)
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_a_connection_is_kept_and_a_wait_is_as_long_as_asked_for(strict: Site) -> None:
    """Longer than a request may take to come."""
    task_id = strict.accepted("add", 1, 2, delay=60)
    strict.accepted("add", 1, 2, delay=60)
    peer = HTTPConnection(*strict.api.address, timeout=10)
    peer.auto_open = 0
    peer.connect()
    for _ in range(2):
        peer.request("GET", f"/v1/tasks/{task_id}/result?wait={2 * SLOW_S}")
        answer = peer.getresponse()
        assert (answer.status, bool(answer.read())) == (202, True)
        time.sleep(2 * SLOW_S)
    peer.close()


def test_l3_a_long_head_is_refused(site: Site) -> None:
    for long in (b"X-Long: " + b"x" * 100_000, b"\r\n".join(b"X-%d: y" % n for n in range(20_000))):
        answer = exchange(site, HEAD + long + b"\r\nContent-Length: 2\r\n\r\n{}")
        assert answer.startswith(b"HTTP/1.1 431 "), answer[:100]
    answer = exchange(
        site, b"GET /v1/tasks?" + b"x" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
    )
    assert answer.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 "))


def test_l3_a_batch_is_limited_in_bytes_and_items(site: Site) -> None:
    item = {"name": "add", "args": ["x" * 100_000]}
    problem(site.post("/v1/tasks/batch", {"tasks": [item] * 400}), 413, "too-large")
    small = {"name": "add", "args": [1]}
    problem(site.post("/v1/tasks/batch", {"tasks": [small] * 10_000}), 422, "invalid")


def test_l3_a_payload_over_its_limit_is_refused_alone(site: Site) -> None:
    problem(site.post("/v1/tasks", {"name": "add", "args": ["x" * MB]}), 413, "too-large")
    items = [{"name": "add", "args": ["x" * MB]}, {"name": "add", "args": [1, 2], "delay": 60}]
    found = site.post("/v1/tasks/batch", {"tasks": items}).json()["items"]
    assert [item["status"] for item in found] == [413, 201]


def test_l3_lists_of_large_tasks_are_short(site: Site) -> None:
    for _ in range(20):
        site.accepted("echo", "x" * 1_000_000, queue="large", delay=600)
    failed = site.accepted("fail", "y" * 10_000, queue="mail", max_attempts=1)
    site.ended(failed)
    assert len(site.get("/v1/tasks", queue="large").content) < 20 * 1_000
    for path in ("/v1/tasks", "/v1/dead-letters"):
        assert len(site.get(path, queue="mail", limit=1).content) < 2_000


DEEP = "[" * 20_000 + "]" * 20_000
K2 = {
    "NaN": '{"name":"add","args":[NaN]}',
    "infinity": '{"name":"add","args":[-Infinity]}',
    "1e999": '{"name":"add","args":[1e999]}',
    "digits": '{"name":"add","args":[' + "9" * 5_000 + "]}",
    "deep": '{"name":"add","args":' + DEEP + "}",
    "deep as a whole": DEEP,
    "101 levels": '{"name":"add","args":' + "[" * 101 + "]" * 101 + "}",
    "surrogate": '{"name":"add","args":["\\ud800"]}',
    "bad UTF-8": b'{"name":"add","args":["\xff"]}',
    "UTF-16": '{"name":"add"}'.encode("utf-16"),
    "BOM": b'\xef\xbb\xbf{"name":"add"}',
    "empty": "",
    "null": "null",
    "list": "[]",
    "number": "7",
    "text": '"add"',
    "two values": '{"name":"add"}{}',
    "open": '{"name":"add"',
    "comment": '{"name":"add"/**/}',
    "NUL in a name": '{"name":"a\\u0000"}',
    "delay NaN": '{"name":"add","delay":NaN}',
    "delay 1e308": '{"name":"add","delay":1e308}',
}


@pytest.mark.parametrize("body", K2.values(), ids=K2)
@pytest.mark.parametrize("path", ["/v1/tasks", "/v1/tasks/batch"])
def test_k2_what_json_cannot_say_or_is_too_deep_is_refused(
    site: Site, path: str, body: str | bytes
) -> None:
    headers = {"Content-Type": "application/json"}
    answer = site.api.http.post(path, content=body, headers=headers)
    if path.endswith("batch") and body == "":
        body = "null"
    assert answer.status_code in {400, 422}, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    if (
        path.endswith("batch")
        and isinstance(body, str)
        and body.startswith("{")
        and body.endswith("}")
    ):
        wrapped = '{"tasks":[' + body + "]}"
        answer = site.api.http.post(path, content=wrapped, headers=headers)
        if answer.status_code == 200:
            (item,) = answer.json()["items"]
            assert item["status"] in {400, 422}
        else:
            assert answer.status_code in {400, 422}


def test_k2_a_result_that_json_cannot_say_is_a_failure_with_a_reason(site: Site) -> None:
    task_id = site.accepted("not_a_number")
    found = site.get(f"/v1/tasks/{task_id}/result", wait=10).json()
    assert found["task"]["status"] == "DEAD_LETTERED"
    assert "NaN" in found["task"]["error"]


def test_of_two_members_of_one_name_the_last_counts(site: Site) -> None:
    body = '{"name":"x","name":"echo","args":[1],"args":[2]}'
    answer = site.api.http.post(
        "/v1/tasks", content=body, headers={"Content-Type": "application/json"}
    )
    found = site.get(f"/v1/tasks/{answer.json()['id']}/result", wait=10).json()
    assert found["result"] == 2


def test_one_api_works_on_so_many_requests_at_once(lonely: Site) -> None:
    api = lonely.start_api(api_max_requests=2)
    task_id = api.http.post("/v1/tasks", json={"name": "add", "delay": 60}).json()["id"]

    def wait(_: int) -> httpx.Response:
        return httpx.get(f"{api.url}/v1/tasks/{task_id}/result", params={"wait": 1.5})

    with ThreadPoolExecutor(3) as pool:
        answers = sorted(pool.map(wait, range(3)), key=lambda answer: answer.status_code)
    assert [answer.status_code for answer in answers] == [202, 202, 503]
    problem(answers[2], 503, "unavailable")
    assert api.http.get("/v1/tasks").status_code == 200

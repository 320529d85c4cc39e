"""``/metrics``: what a deployment did, in the format of Prometheus; and the files that read it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from api.site import Site, eventually
from dtq_api.metrics import MAX_QUEUES, limited
from dtq_core.measures import OTHERS
from dtq_core.reads import QueueInfo
from dtq_core.states import Status

MONITORING = Path(__file__).parents[2] / "docs/monitoring"
METRIC = re.compile(r"\bdtq_[a-z_]+")


def scraped(site: Site) -> dict[tuple[str, ...], float]:
    """Every sample, by its name and the values of its labels in the order of their names."""
    answer = site.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_tasks_are_told_by_queue_and_status(lonely: Site) -> None:
    lonely.submit("add", 1, 2)
    lonely.submit("add", 1, 2, queue="mail")
    lonely.submit("add", 1, 2, delay=600)
    found = scraped(lonely)
    assert found["dtq_tasks", "default", "queued"] == 1
    assert found["dtq_tasks", "default", "scheduled"] == 1
    assert found["dtq_tasks", "mail", "queued"] == 1
    assert found["dtq_tasks_ended_total", "mail", "succeeded"] == 0
    assert found["dtq_oldest_waiting_seconds", "mail"] > 0
    assert found["dtq_queue_unserved", "mail"] == 1
    assert found["dtq_workers",] == found["dtq_worker_slots",] == 0
    assert found["dtq_schedulers_leading",] == 0
    assert found["dtq_redis_memory_bytes",] > 0
    lonely.ok("pause", "mail")
    assert scraped(lonely)["dtq_queue_paused", "mail"] == 1


def test_attempts_and_durations_are_told_by_task(site: Site) -> None:
    for _ in range(3):
        site.ended(site.submit("add", 1, 2))
    site.ended(site.submit("fail", "x", max_attempts=2))
    ended = ("dtq_attempts_total", "succeeded", "default", "add")
    eventually("the worker to tell", lambda: scraped(site).get(ended, 0) >= 3)
    found = scraped(site)
    assert found["dtq_attempts_total", "retried", "default", "fail"] == 1
    assert found["dtq_attempts_total", "failed", "default", "fail"] == 1
    assert found["dtq_tasks_ended_total", "default", "dead_lettered"] == 1
    assert found["dtq_dead_letters",] == 1
    for metric in ("dtq_start_latency_seconds", "dtq_run_seconds"):
        assert found[f"{metric}_count", "default", "add"] >= 3
        assert found[f"{metric}_bucket", "+Inf", "default", "add"] >= 3
        assert found[f"{metric}_sum", "default", "add"] >= 0
    assert found["dtq_redis_call_seconds_count", "finish"] >= 1
    assert found["dtq_redis_scripts_total",] >= 1
    assert found["dtq_worker_slots",] == 8


def test_an_empty_deployment_has_metrics_too(lonely: Site) -> None:
    found = scraped(lonely)
    assert (
        found["dtq_workers",] == found["dtq_dead_letters",] == found["dtq_leases_lost_total",] == 0
    )


def test_what_strangers_wrote_is_inert(lonely: Site) -> None:
    evil = 'x"}\ninjected_metric 1\n#'
    lonely.raw.hset(f"{lonely.prefix}:measures", f"attempt {evil} t ended succeeded", 1)
    lonely.raw.hset(f"{lonely.prefix}:measures", "attempt q\\ t ended \n", 1)
    found = scraped(lonely)
    assert ("injected_metric",) not in found
    lonely.raw.delete(f"{lonely.prefix}:measures")
    lonely.raw.set(f"{lonely.prefix}:measures", "foreign")
    assert scraped(lonely)["dtq_workers",] == 0


def test_metrics_need_a_key_once_there_is_one(lonely: Site) -> None:
    token, submitter = lonely.token("prometheus", "read"), lonely.token("shop", "submit")
    elsewhere = lonely.token("elsewhere", "read", queues=("mail",))
    api = lonely.start_api()

    def status(key: str | None) -> int:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        return api.http.get("/metrics", headers=headers).status_code

    assert [status(key) for key in (token, submitter, elsewhere, None)] == [200, 403, 403, 401]


def info(name: str, waiting: int) -> QueueInfo:
    tasks = dict.fromkeys(Status, 0) | {Status.QUEUED: waiting}
    return QueueInfo(name, None, tasks, 0, 0, 0)


def test_queues_without_end_are_told_together() -> None:
    queues = [info(f"q{n:05}", n) for n in range(MAX_QUEUES + 100)]
    found = limited(queues)
    assert len(found) == MAX_QUEUES + 1
    assert found[0].queue == f"q{MAX_QUEUES + 99:05}"
    assert (found[-1].queue, found[-1].tasks[Status.QUEUED]) == (OTHERS, sum(range(100)))
    assert limited(queues[:MAX_QUEUES]) == queues[:MAX_QUEUES]


def expressions(value: Any) -> list[str]:
    """Every expression in a file, whatever holds it."""
    if isinstance(value, dict):
        own = [value[name] for name in ("expr", "query", "definition") if name in value]
        return [text for text in own if isinstance(text, str)] + expressions(list(value.values()))
    return [text for item in value for text in expressions(item)] if isinstance(value, list) else []


@pytest.mark.parametrize(
    ("name", "least"),
    [("grafana-dashboard.json", 20), ("alerts.yml", 8), ("keda-scaledobject.yml", 2)],
)
def test_the_files_for_others_ask_for_metrics_that_there_are(
    site: Site, name: str, least: int
) -> None:
    site.ended(site.submit("add", 1, 2))
    ended = ("dtq_attempts_total", "succeeded", "default", "add")
    eventually("the worker to tell", lambda: ended in scraped(site))
    told = {key[0] for key in scraped(site)} | {f"{key[0]}_total" for key in scraped(site)}
    text = (MONITORING / name).read_text("utf-8")
    found = expressions(json.loads(text) if name.endswith("json") else yaml.safe_load(text))
    assert len(found) >= least
    for expression in found:
        assert set(METRIC.findall(expression)) <= told, expression
    assert set(METRIC.findall(" ".join(found)))


def test_every_panel_asks_the_data_source_that_is_chosen() -> None:
    board = json.loads((MONITORING / "grafana-dashboard.json").read_text("utf-8"))
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert {panel["datasource"]["uid"] for panel in panels} == {"${datasource}"}
    for panel in panels:
        place = panel["gridPos"]
        assert 0 <= place["x"] < place["x"] + place["w"] <= 24

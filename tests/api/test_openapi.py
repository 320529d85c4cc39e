"""The OpenAPI document: right by itself, and kept to by the API."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi.checks import ignored_auth, positive_data_acceptance

from api.site import Api, Site

UNBOUNDED = "/v1/events"
"""Its answer never ends."""
LEFT_OUT = [
    positive_data_acceptance,  # names, zones and expressions have rules that no schema tells
    ignored_auth,  # test_roles.py asks every route with every wrong key; this one wants cookies
]
EXAMPLES = 15


@pytest.fixture(scope="module")
def closed(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """An API that asks for keys, and the token of one that may do all."""
    made = Site(tmp_path_factory.mktemp("closed"), redis_url)
    token = made.token("all", "admin")
    made.client.submit_by_name("add", [1, 2])
    yield made.api, token
    made.close()


def document_of(closed: tuple[Api, str]) -> dict[str, Any]:
    api, token = closed
    answer = api.http.get("/openapi.json", headers={"Authorization": f"Bearer {token}"})
    found: dict[str, Any] = answer.json()
    return found


def test_it_describes_every_answer_and_parameter(closed: tuple[Api, str]) -> None:
    document = document_of(closed)
    assert document["openapi"] == "3.1.0"
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            where = f"{method} {path}"
            assert operation["description"], where
            assert {"401", "403", "429", "503"} <= operation["responses"].keys(), where
            assert all(one["description"] for one in operation["responses"].values()), where
            if method in {"post", "put", "delete"}:
                content = operation["requestBody"]["content"]["application/json"]
                assert content["examples"], where


def test_the_api_keeps_to_it(closed: tuple[Api, str]) -> None:
    api, token = closed
    schema = schemathesis.openapi.from_dict(document_of(closed)).exclude(path=UNBOUNDED)
    schema.config.update(base_url=api.url)
    for found in schema.get_all_operations():
        _try(found.ok().as_strategy(), token)


def _try(cases: Any, token: str) -> None:
    @given(case=cases)
    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def keeps(case: schemathesis.Case) -> None:
        if "wait" in (case.query or {}):
            case.query["wait"] = 0
        case.call_and_validate(
            headers={"Authorization": f"Bearer {token}"}, excluded_checks=LEFT_OUT
        )

    keeps()

"""The OpenAPI document: FastAPI knows addresses and parameters, msgspec the shapes of bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from dtq_api import problems
from dtq_api.problems import Kind

_SHAPES: dict[str, type] = {}
_REF = "#/components/schemas/{name}"
_ALWAYS = (
    Kind.UNAUTHENTICATED,
    Kind.FORBIDDEN,
    Kind.TOO_MANY,
    Kind.INTERNAL,
    Kind.UNAVAILABLE,
)
BODY_PROBLEMS = (
    Kind.MALFORMED_JSON,
    Kind.TOO_SLOW,
    Kind.TOO_LARGE,
    Kind.MEDIA_TYPE,
    Kind.INVALID,
)
"""What a request with a body may meet."""
PROBLEM_SCHEMA = {
    "title": "Problem",
    "description": "A problem document (RFC 9457). The type is stable; texts are for people.",
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "enum": [kind.type for kind in Kind]},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
}


def _schema_of(shape: type) -> dict[str, str]:
    if shape is str:
        return {"type": "string"}
    _SHAPES[shape.__name__] = shape
    return {"$ref": _REF.format(name=shape.__name__)}


def body_of(shape: type, *examples: Any) -> dict[str, Any]:
    """Describe the body of a request.

    Args:
        shape: its type.
        examples: bodies that are taken.
    """
    content: dict[str, Any] = {"schema": _schema_of(shape)}
    if examples:
        content["examples"] = {f"example {n}": {"value": e} for n, e in enumerate(examples, 1)}
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


def answers(
    shape: type,
    *kinds: Kind,
    status: int = 200,
    example: Any = None,
    others: Mapping[int, tuple[type, str]] | None = None,
    media_type: str = "application/json",
) -> dict[int | str, dict[str, Any]]:
    """Describe the answers of a route.

    Args:
        shape: of the good one.
        kinds: the problems it may meet besides those that all may.
        status: of the good one.
        example: of the good one.
        others: further good ones by their status: shape and description.
        media_type: of the good ones.
    """
    found: dict[int | str, dict[str, Any]] = {status: _good(shape, "Done.", example, media_type)}
    for other, (other_shape, text) in (others or {}).items():
        found[other] = _good(other_shape, text, None, media_type)
    for kind in (*_ALWAYS, *kinds):
        known = found.setdefault(int(kind.status), {"description": "", "content": _PROBLEM})
        known["description"] = f"{known['description']} `{kind.type}`: {kind.title}.".strip()
    return found


def _good(shape: type, text: str, example: Any, media_type: str) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": _schema_of(shape)}
    if example is not None:
        content["example"] = example
    return {"description": text, "content": {media_type: content}}


_PROBLEM = {problems.MEDIA_TYPE: {"schema": {"$ref": _REF.format(name="Problem")}}}


def document(app: FastAPI) -> dict[str, Any]:
    """Make the document of an application."""
    made = get_openapi(
        title=app.title,
        version=app.version,
        openapi_version="3.1.0",
        description=app.description,
        routes=app.routes,
    )
    _, shapes = msgspec.json.schema_components(_SHAPES.values(), ref_template=_REF)
    components = made.setdefault("components", {})
    components["schemas"] = {**shapes, "Problem": PROBLEM_SCHEMA}
    components["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer", "description": "An API key: dtq keys create."}
    }
    made["security"] = [{"key": []}]
    for path in made["paths"].values():
        for operation in path.values():
            _describe_bad_parameters(operation["responses"])
    return made


def _describe_bad_parameters(responses: dict[str, Any]) -> None:
    """FastAPI says what a wrong parameter is answered with, but here that is a problem."""
    if "422" in responses and "application/json" in responses["422"].get("content", {}):
        kind = Kind.INVALID
        text = f"`{kind.type}`: {kind.title}."
        responses["422"] = {"description": text, "content": _PROBLEM}

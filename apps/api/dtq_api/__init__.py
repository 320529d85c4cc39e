"""The HTTP API: any language submits tasks, follows them, and operates the queues."""

from dtq_api.app import create_app

__all__ = ["create_app"]

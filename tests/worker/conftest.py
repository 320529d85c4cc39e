"""Fixtures of these tests."""

from worker.fixtures import child, crew, journal, redis_url, server, stage, zygote

__all__ = ["child", "crew", "journal", "redis_url", "server", "stage", "zygote"]

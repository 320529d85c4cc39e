"""Fixtures of these tests."""

from worker.fixtures import child, crew, deploy, journal, redis_url, server, stage, zygote

__all__ = ["child", "crew", "deploy", "journal", "redis_url", "server", "stage", "zygote"]

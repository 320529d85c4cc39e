"""The worker: runs tasks, one child process and its parts, and the supervisor of several."""

from dtq_worker.worker import Worker

__all__ = ["Worker"]

"""The scheduler: moves what is due, expires what waited too long, clears away dead workers."""

from dtq_scheduler.scheduler import Scheduler

__all__ = ["Scheduler"]

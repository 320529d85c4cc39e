from pathlib import Path


def find_running(folder: Path) -> str | None:
    return None

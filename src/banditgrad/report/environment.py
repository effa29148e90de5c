"""Where a report was made."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("banditgrad", "numpy", "scipy", "numba", "scikit-learn", "matplotlib")


def this_machine() -> dict[str, str]:
    """The machine in words."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": str(os.cpu_count()),
    }


def installed_versions() -> dict[str, str]:
    """Python's version and those of the packages that matter here, where installed."""
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def _processor() -> str:
    """The processor's model where Linux names it, else its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or platform.machine())

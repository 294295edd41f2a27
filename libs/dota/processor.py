"""Selection of the compiled core for this CPU: a folder for a newer instruction set level, or the portable core.

Both cores play the same games bit for bit. The environment variable ``DOTA_PORTABLE_CORE=1`` selects the portable one.
"""

import os
from pathlib import Path

# CPU flags of each level, by their Linux names (x86-64 psABI, microarchitecture levels).
LEVELS = {"x86-64-v3": frozenset(("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"))}
CPUINFO = Path("/proc/cpuinfo")


def flags(cpuinfo: Path = CPUINFO) -> frozenset[str]:
    """Return the feature flags of the first CPU; empty when the system does not report them."""
    try:
        with cpuinfo.open(encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("flags"):
                    return frozenset(line.partition(":")[2].split())
    except OSError:
        pass
    return frozenset()


def level() -> str:
    """Return the highest of ``LEVELS`` that this CPU supports, in the compilers' notation; empty for none."""
    can = flags()
    return next((name for name, demanded in LEVELS.items() if demanded <= can), "")


def core_folder(package: Path) -> Path | None:
    """Return the folder of ``package`` with a core for this CPU; None selects the package's own core."""
    if os.environ.get("DOTA_PORTABLE_CORE", "") not in ("", "0"):
        return None
    built = [name for name in LEVELS if (package / name).is_dir()]
    can = flags() if built else frozenset[str]()
    return next((package / name for name in built if LEVELS[name] <= can), None)

"""Which of the compiled cores this processor runs: a newer one's, in a folder of its name, or the one for all.

Both play the same games, bit for bit. ``DOTA_PORTABLE_CORE=1`` in the environment asks for the one for all.
"""

import os
from pathlib import Path

# What the level demands, by the names that Linux gives them (x86-64 psABI, microarchitecture levels).
LEVELS = {"x86-64-v3": frozenset(("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"))}
CPUINFO = Path("/proc/cpuinfo")


def flags(cpuinfo: Path = CPUINFO) -> frozenset[str]:
    """What the first processor says that it can do; nothing where the system does not tell."""
    try:
        with cpuinfo.open() as lines:
            for line in lines:
                if line.startswith("flags"):
                    return frozenset(line.partition(":")[2].split())
    except OSError:
        pass
    return frozenset()


def level() -> str:
    """The newest of ``LEVELS`` that this processor reaches, as compilers name it; empty: none."""
    can = flags()
    return next((name for name, demanded in LEVELS.items() if demanded <= can), "")


def core_folder(package: Path) -> Path | None:
    """The folder of ``package`` with a core for processors like this one; None: the package's own core is to be
    loaded."""
    if os.environ.get("DOTA_PORTABLE_CORE", "") not in ("", "0"):
        return None
    built = [name for name in LEVELS if (package / name).is_dir()]
    can = flags() if built else frozenset[str]()
    return next((package / name for name in built if LEVELS[name] <= can), None)

"""Process of a dedicated client.

Options: dotaservice 0.3.9 (client of 2019) and the parameters of Passerby/dota2-env, which tried each of those that
matter here with the client of September 2026. Lockstep needs ``-nowatchdog``: without it the client ends after a bot
has waited for 60 seconds.
"""

import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from five.real_client.errors import ClientUnavailable
from five.real_client.installation import Installation
from five.real_client.world_state_reader import wait_until_free
from rapid.child_process import launcher

ALL_PICK, MID_ONLY_1V1 = 1, 21  # Valve's DOTA_GameMode
_STOP_SECONDS = 20.0
_PORT_SECONDS = 5.0


@dataclass(frozen=True)
class ClientOptions:
    """Options of the client.

    Attributes:
        ticks: engine ticks (1/30 s) between two world states.
        timescale: game seconds a second, at most.
        ports: world-state ports of Radiant and Dire.
    """

    game_mode: int = ALL_PICK
    ticks: int = 4
    timescale: float = 1.0
    ports: tuple[int, int] = (12120, 12121)

    @property
    def period(self) -> float:
        """Return the game seconds between two world states."""
        return self.ticks / 30


def command(installation: Installation, options: ClientOptions, log: Path) -> list[str]:
    """Return the command line of a dedicated client that fills all seats with bots."""
    radiant, dire = options.ports
    return [
        str(installation.executable), "-dedicated", "-console", "-insecure", "-noip", "-nowatchdog", "-fill_with_bots",
        "-botworldstatesocket_threaded", "-botworldstatetosocket_frames", str(options.ticks),
        "-botworldstatetosocket_radiant", str(radiant), "-botworldstatetosocket_dire", str(dire),
        "-con_logfile", str(log), "-con_timestamp",
        "+map", "start", "gamemode", str(options.game_mode), "+sv_lan", "1", "+sv_cheats", "1",
        "+host_timescale", f"{options.timescale:g}", "+sv_hibernate_when_empty", "0", "+dota_1v1_skip_strategy", "1",
        "+dota_surrender_on_disconnect", "0", "+clientport", "27006", "+hostname", "five"]


class ClientProcess:
    """Running client, with a process group of its own. On Linux it ends with the thread that started it."""

    def __init__(self, installation: Installation, options: ClientOptions, log: Path) -> None:
        """Start the client. Raises ClientUnavailable if a port is used or the program does not start."""
        if used := wait_until_free(options.ports, _PORT_SECONDS):
            raise ClientUnavailable(f"port {used[0]} is used, perhaps by another client: stop it, or give other ports")
        try:
            self._popen = subprocess.Popen(
                launcher(command(installation, options, log)), cwd=installation.game, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                env={**os.environ, **installation.environment()})
        except OSError as error:
            raise ClientUnavailable(f"{installation.executable} did not start: {error.strerror}") from None

    def exit_status(self) -> int | None:
        """Return the exit status, or None while the client runs."""
        return self._popen.poll()

    def stop(self) -> None:
        """End the client and its children, by force after 20 seconds."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self._popen.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self._popen.wait(_STOP_SECONDS)
                if number == signal.SIGKILL or not self._group_lives():
                    return

    def _group_lives(self) -> bool:
        """Return whether a child outlives the client for more than a moment."""
        for _ in range(20):
            try:
                os.killpg(self._popen.pid, 0)
            except ProcessLookupError:
                return False
            time.sleep(0.05)
        return True

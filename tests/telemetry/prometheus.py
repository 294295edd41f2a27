"""A real Prometheus for a real run."""

import json
import math
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import yaml

from five.local.cluster import free_ports
from rapid.store.leases import Leases
from tests.e2e.running import Run, eventually
from tests.telemetry.expressions import RULES

SCRAPE = "1s"


class Watch:
    """Prometheus over all processes of ``run``, with the alert rules. It finds them by their heartbeats."""

    def __init__(self, binary: str, run: Run, place: Path) -> None:
        self._run = run
        self._targets = place / "targets.json"
        self._targets.write_text("[]")
        config = place / "prometheus.yml"
        config.write_text(yaml.safe_dump({
            "global": {"scrape_interval": SCRAPE, "evaluation_interval": SCRAPE}, "rule_files": [str(RULES)],
            "scrape_configs": [{"job_name": "five", "file_sd_configs": [{
                "files": [str(self._targets)], "refresh_interval": "1s"}]}]}))
        port = free_ports(1)[0]
        self._api = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)  # one client for hundreds of requests
        with (place / "prometheus.log").open("wb") as log:
            self.process = subprocess.Popen(
                [binary, f"--config.file={config}", f"--storage.tsdb.path={place / 'tsdb'}",
                 f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=subprocess.STDOUT)
        eventually(lambda: self._api.get("/-/ready").status_code == 200, 120, "Prometheus is ready")

    def pages(self) -> dict[str, str]:
        """Return the metrics addresses by kind of service."""
        state = self._run.state()
        found = {instance.kind: instance.metrics_address for instance in Leases(state.redis, state.run).live()
                 if instance.metrics_address}
        environments = self._run.folder.cluster().environment_pages  # they have no store for heartbeats
        return found | ({"dota_env": environments[0]} if environments else {})

    def follow(self) -> dict[str, str]:
        """Scrape the live processes; return their pages."""
        pages = self.pages()
        self._targets.write_text(json.dumps([{"targets": sorted(pages.values())}]))
        return pages

    def ask(self, path: str, **parameters: Any) -> Any:
        """Return ``data`` of a response of Prometheus's API. Raise AssertionError with its error."""
        answer = self._api.get(f"/api/v1/{path}", params=parameters).json()
        assert answer["status"] == "success", f"{parameters}: {answer.get('error')}"
        return answer["data"]

    def values(self, expression: str) -> list[float]:
        """Return the current values of an expression without NaN."""
        found = [float(each["value"][1]) for each in self.ask("query", query=expression)["result"]]
        return [value for value in found if not math.isnan(value)]

    def missing(self, expressions: dict[str, str], seconds: float) -> list[str]:
        """Return the names of expressions without data until then."""
        left = dict(expressions)
        end = time.monotonic() + seconds
        while left and time.monotonic() < end:
            self._run.check()
            self.follow()
            left = {name: text for name, text in left.items() if not self.values(text)}
            time.sleep(1.0)
        return sorted(left)

    def end(self) -> None:
        """Stop Prometheus."""
        self._api.close()
        self.process.terminate()
        self.process.wait(60)

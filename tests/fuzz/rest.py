"""Fuzzer of the REST API: schemathesis' requests as an operator, a viewer and nobody, with random headers.

An answer conforms to the API's own document, and 500 is never an answer. A viewer changes nothing of the run. Nobody
gets only refusals, which say nothing about the run. Hypothesis shrinks a failing request.
"""

import hashlib
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import requests
import schemathesis
from hypothesis import strategies
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from five.services.controller.http.request_limits import DISCARDED_BYTES
from rapid.embedded_redis import EmbeddedRedis
from tests.services.controller.http.test_schemathesis import UNLIMITED, fill
from tests.services.live_controller import OPERATOR, RUN, VIEWER, LiveController, bearer, live

CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance, response_headers_conformance]
# "console" is an operator with the cookie of a session.
ROLES = ("operator", "console", "viewer", "nobody")
LIMITS = UNLIMITED.model_copy(update={f"{name}_{part}": 1e6 for name, part in (
    ("anonymous_requests", "per_second"), ("anonymous", "burst"), ("failed_logins", "per_second"),
    ("failed_logins", "burst"), ("logins", "per_second"), ("logins", "burst"))})
ROUND_SECONDS = 60.0  # before a new run, because an operator stops it
EXAMPLES = 6  # of one operation, role and mode before the next
ENDLESS = ["/v1/stream", "/v1/games/{game}/live"]
# Refusals of the middleware, before it knows the caller.
REFUSALS = {400, 401, 403, 413, 414, 421, 429, 431}
EARLY = {413, 421, 429, 431}  # of any request; not in the document of each operation
# Headers with refusals that the document of an operation does not list.
UNDOCUMENTED = {"Host", "Authorization", "Cookie", "Origin", "Sec-Fetch-Site", "Expect", "Upgrade",
                "Content-Encoding", "Content-Type", "Accept", "Range"}
# Keys that reading changes: who watches live games, and sessions and links of the caller.
READERS_KEYS = (b":watched", b":session", b":login", b":idempotency", b":once:", b":applied:")
NOT_HTTP = "Invalid HTTP request received."
SECRETS = (RUN, "ada", "vera", OPERATOR, VIEWER, "redis://", "Traceback")

_VALUES: dict[str, tuple[str, ...]] = {
    "Origin": ("http://[", "null", "http://evil.test", "http://127.0.0.1:1", "", "\xff"),
    "Host": ("evil.test", "[", "127.0.0.1:99999", "localhost", ""),
    "Cookie": (f"five-{RUN}=x", f"five-{RUN}=", "a=b; ;;=", "\xff" * 40),
    "Sec-Fetch-Site": ("cross-site", "none", "x"), "X-Five-Console": ("", "0"),
    "Authorization": ("Bearer", "Bearer \xff", "Basic YQ==", "Bearer " + "a" * 5000, "Negotiate x"),
    "Idempotency-Key": ("a", "b", "a b", "\xff", "x" * 129, ""),
    "Last-Event-ID": ("0", "-1", "1-0", "99999999999999999999-1", "x"),
    "If-Match": ("*", '"x"', 'W/"x"', ",,,", "x" * 2000), "If-None-Match": ("*", '"x"', "\xff"),
    "Accept": ("text/html", "*/*;q=x", ""), "Accept-Encoding": ("gzip", "br;q=1000"), "Range": ("bytes=0-1", "bytes=-"),
    "X-Forwarded-For": ("1.2.3.4", "[", ",,,", "::1%eth0"), "X-Forwarded-Proto": ("https", "x"),
    "Content-Encoding": ("gzip", "x"), "Content-Type": ("text/plain", "application/json; charset=x", ";;"),
    "Expect": ("100-continue", "x"), "Upgrade": ("h2c", "websocket"), "traceparent": ("00-" + "0" * 32, "x")}
_PAIRS = [(name, value) for name, values in _VALUES.items() for value in values]
HEADERS = strategies.lists(strategies.one_of(strategies.sampled_from(_PAIRS), strategies.tuples(
    strategies.sampled_from(list(_VALUES)),
    strategies.text(strategies.characters(min_codepoint=33, max_codepoint=255), max_size=40))), max_size=3).map(dict)
NO_HEADERS: strategies.SearchStrategy[dict[str, str]] = strategies.just({})


class RestFinding(AssertionError):
    """A response that breaks the contract."""


def snapshot(rest: LiveController) -> dict[str, str]:
    """Return digests, by name, of everything of the run that a viewer must not change."""
    client: Any = rest.state.redis
    names = sorted(name for name in client.scan_iter(count=1000) if not any(part in name for part in READERS_KEYS))
    pipeline = client.pipeline()
    for name in names:
        pipeline.dump(name)
    blobs = rest.context.blobs
    files = {} if blobs is None else {f"blob {name}": repr(blobs.ref(name)) for name in blobs.refs()}
    rows = zip(names, pipeline.execute(), strict=True)
    return {name.decode(): hashlib.sha256(repr(row).encode()).hexdigest() for name, row in rows} | files


def console_headers(url: str) -> dict[str, str]:
    """Open a session by a token; return the headers of the console's requests."""
    headers = {"Origin": url, "X-Five-Console": "1"}
    answer = requests.post(f"{url}/v1/session", json={"token": OPERATOR}, headers=headers, timeout=20)
    assert answer.status_code < 300, answer.text
    return {**headers, "Cookie": answer.headers["Set-Cookie"].partition(";")[0]}


class RestFuzzer:
    """Sends requests to one controller and checks the responses."""

    def __init__(self, rest: LiveController, seed: int) -> None:
        self._rest = rest
        self._dice = random.Random(seed)
        self._session = requests.Session()
        schema = schemathesis.openapi.from_url(f"{rest.url}/openapi.json", timeout=60)
        self._headers = {"operator": bearer(OPERATOR), "viewer": bearer(VIEWER), "nobody": {},
                         "console": console_headers(rest.url)}
        self.operations = [found.ok() for found in schema.exclude(path=ENDLESS).get_all_operations()]
        self.known: dict[str, list[str]] = {}  # values of path parameters that responses have named
        self.cases = 0
        self.statuses: Counter[str] = Counter()
        self.last: dict[str, Any] = {}

    def run(self, operation: Any, role: str, mode: schemathesis.GenerationMode, examples: int = EXAMPLES) -> None:
        """Send requests to one operation. Raises RestFinding or a failed check, for the shrunk request."""
        number = self._dice.getrandbits(60)
        if role == "console" and self.last.get("status") == 401:
            self._headers[role] = console_headers(self._rest.url)  # its session was closed by DELETE /v1/session

        @hypothesis.seed(number)
        @hypothesis.settings(max_examples=examples, deadline=None, database=None,
                             suppress_health_check=list(hypothesis.HealthCheck), report_multiple_bugs=False,
                             phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink])
        @hypothesis.given(case=operation.as_strategy(generation_mode=mode),
                          extra=strategies.one_of(NO_HEADERS, HEADERS), pick=strategies.integers(0, 1000))
        def send(case: Any, extra: dict[str, str], pick: int) -> None:
            self._send(case, role, extra, pick)

        try:
            send()
        except hypothesis.errors.Unsatisfiable:
            pass  # nothing of it can be invalid
        except hypothesis.errors.Flaky as error:
            causes = getattr(error, "exceptions", (error,))
            raise RestFinding(f"not repeatable: {'; '.join(map(str, causes))}") from error

    def _send(self, case: Any, role: str, extra: dict[str, str], pick: int) -> None:
        for name in case.path_parameters or {}:
            if pick % 2 and self.known.get(name):
                case.path_parameters[name] = self.known[name][pick % len(self.known[name])]
        if role != "nobody":  # schemathesis invents tokens
            for name in [n for n in case.headers or {} if n.lower() in ("authorization", "cookie")]:
                del case.headers[name]
        before = snapshot(self._rest) if role in ("viewer", "nobody") else {}
        headers = {**self._headers[role], **{name: value.encode("latin-1") for name, value in extra.items()}}
        self.last = {"role": role, "operation": case.operation.label, "headers": extra, "curl": case.as_curl_command()}
        try:
            answer = case.call(base_url=self._rest.url, session=self._session, headers=headers, timeout=20)
        except requests.exceptions.InvalidHeader:
            return
        except requests.exceptions.ConnectionError as error:
            refused = error.request.body if error.request is not None else b""
            if len(refused or b"") <= DISCARDED_BYTES:
                raise
            return  # the response to a large body may be lost, because the server closes without reading it
        except ValueError:
            return  # a URL that the client refuses
        sent = answer.request
        body = sent.body if isinstance(sent.body, bytes) else (sent.body or "").encode()
        self.last |= {"method": sent.method, "target": sent.path_url, "body": body.decode("latin-1"),
                      "sent": {n: str(v) for n, v in sent.headers.items() if n.lower() == "content-type"}}
        self.cases += 1
        self.statuses[f"{role} {answer.status_code}"] += 1
        self.last |= {"status": answer.status_code, "answer": answer.text[:2000]}
        self._check(case, answer, role, extra)
        if before and (changed := sorted(name for name, _ in snapshot(self._rest).items() ^ before.items())):
            raise RestFinding(f"a request of {role} changed {', '.join(dict.fromkeys(changed))}")
        self._remember(answer)

    def _check(self, case: Any, answer: Any, role: str, extra: dict[str, str]) -> None:
        status = answer.status_code
        if status == 400 and answer.text == NOT_HTTP:
            return  # the server's answer to a request that is not HTTP
        documented = case.operation.definition.raw.get("responses", {})
        if status >= 500 and not (status == 503 and "503" in documented):
            raise RestFinding(f"status {status}")
        if role == "nobody" and _is_protected(case):
            if status not in REFUSALS:
                raise RestFinding(f"nobody got status {status}")
            detail = answer.text.replace(case.formatted_path, "")
            if found := [word for word in SECRETS if word in detail and word not in str(self.last["curl"])]:
                raise RestFinding(f"a refusal to nobody names {found}")
        if status not in EARLY and not extra.keys() & UNDOCUMENTED:
            case.validate_response(answer, checks=CHECKS)

    def _remember(self, answer: Any) -> None:
        if answer.status_code < 300 and answer.content[:1] in (b"{", b"["):
            for name, value in _values(answer.json()):
                known = self.known.setdefault(name, [])
                if value not in known and len(known) < 50:
                    known.append(value)


def _is_protected(case: Any) -> bool:
    return bool(case.operation.path.startswith("/v1/")) and case.operation.label != "POST /v1/session"


def _values(tree: Any) -> list[tuple[str, str]]:
    """Return names and values of identifiers in an answer, by the path parameters that take them."""
    found: list[tuple[str, str]] = []
    if isinstance(tree, dict):
        for key, value in tree.items():
            if isinstance(value, str | int) and not isinstance(value, bool):
                names = {"id": ("identity", "change"), "version": ("version",), "name": ("name",), "game": ("game",),
                         "digest": ("digest",)}.get(key, ())
                found += [(name, str(value)) for name in names]
            found += _values(value)
    elif isinstance(tree, list):
        for value in tree[:20]:
            found += _values(value)
    return found


def fuzz_rest(minutes: float, seed: int, out: Path, report: Callable[[str], object] = print) -> dict[str, Any]:
    """Fuzz live controllers, one after another, until the time is over; return counts and findings."""
    began, until = time.monotonic(), time.monotonic() + 60 * minutes
    findings: dict[str, str] = {}
    statuses: Counter[str] = Counter()
    cases = 0
    while time.monotonic() < until:
        with tempfile.TemporaryDirectory() as folder, EmbeddedRedis(Path(folder), append_only=False).start() as store, \
                live(store.url, LIMITS) as rest:
            fill(rest)
            fuzzer = RestFuzzer(rest, seed)
            dice = random.Random(seed)
            round_until = min(until, time.monotonic() + ROUND_SECONDS)
            while time.monotonic() < round_until:
                operation, role = dice.choice(fuzzer.operations), dice.choice(ROLES)
                mode = dice.choice((schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE))
                try:
                    fuzzer.run(operation, role, mode)
                except (Exception, BaseExceptionGroup) as error:  # several failed checks are a group
                    what = (f"rest: {operation.label} as {role}: {type(error).__name__}: "
                            f"{str(error).splitlines()[0][:300]}")
                    if what not in findings:
                        findings[what] = str(_store(out, what, str(error), fuzzer.last))
                        report(f"five: {findings[what]}: {what}")
            cases += fuzzer.cases
            statuses.update(fuzzer.statuses)
            seed += 1
    return {"group": "rest", "cases": cases, "seconds": round(time.monotonic() - began, 1),
            "findings": list(findings.values()), "statuses": dict(sorted(statuses.items()))}


def _store(out: Path, what: str, error: str, request: dict[str, Any]) -> Path:
    path = out / "findings" / "rest" / hashlib.sha256(what.encode()).hexdigest()[:12]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"what": what, "error": error, **request}, indent=1, default=repr))
    return path


def repeat(path: Path) -> str:
    """Send the request of a finding to a new controller; return the status and the answer."""
    given = json.loads(path.read_text())
    with tempfile.TemporaryDirectory() as folder, EmbeddedRedis(Path(folder), append_only=False).start() as store, \
            live(store.url, LIMITS) as rest:
        fill(rest)
        headers = {**RestFuzzer(rest, 0)._headers[given["role"]],
                   **{n: v.encode("latin-1") for n, v in given["headers"].items()}}
        answer = requests.request(given["method"], rest.url + given["target"], data=given["body"].encode("latin-1"),
                                  headers={**given["sent"], **headers}, timeout=20)
        return f"{answer.status_code} {answer.text[:2000]}"

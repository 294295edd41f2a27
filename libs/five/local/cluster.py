"""Local cluster: all services as processes of this machine under one supervisor."""

import itertools
import json
import logging
import os
import random
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import redis

from five.local import rotation
from five.local.passwords import Passwords
from five.local.readiness import START_SECONDS, why_not_ready
from five.local.run_folder import ClusterInfo, RunFolder
from five.local.run_lock import RunLock
from five.run.config import RunConfig
from five.run.load import apply_overrides, save, validate
from five.services.controller.run.setup import set_up_run
from rapid import append_only_file
from rapid.address import join_address
from rapid.blobs import BlobStore
from rapid.listening import listen
from rapid.rpc import caller_secret, callers
from rapid.rpc.access import Audience, Caller
from rapid.store import acl
from rapid.store.blob_owner import claim_blobs
from rapid.store.connection import Login, Role, connect, require_no_eviction, require_reachable
from rapid.store.errors import Corrupt
from rapid.store.event_merger import EventMerger
from rapid.store.faults import report_faults
from rapid.store.leases import Leases
from rapid.store.series import Series
from rapid.store.state import RunState, Status
from rapid.supervisor import ProcessSpec, Supervisor

log = logging.getLogger(__name__)

STORES, SERVERS, PLAYERS = 0, 1, 2  # stages: started in this order, stopped in reverse order
RUNNING_SECONDS = 300.0  # until the run plays; a slow disk or a GPU's libraries take longer than START_SECONDS
OPTIMIZER_GRACE = 300.0  # seconds until they are killed; they end themselves when their writes are done
EXIT_SECONDS = 5.0  # until other services are killed, after lifecycle.grace_seconds, at which they end themselves
# Training goes on without these: rollouts play themselves without opponents; the others watch, rate and steer.
OPTIONAL = frozenset({"controller", "opponents", "evaluator", "play"})
FAILING_AFTER = 5  # deaths in a row after which an optional service counts as failing
WHO = "five train"  # author of the run's events


def local_host(listen_host: str) -> str:
    """Return the address at which this machine's processes dial servers that listen on ``listen_host``."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(listen_host, listen_host)


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Return ``count`` different ports of ``host`` that are free now, below the ephemeral ones (32768 or 49152 and up).

    A service binds its port later, and again at each restart. Meanwhile a page of metrics could get an ephemeral port.
    Raises OSError if there are too few, or if this machine cannot listen on ``host``.
    """
    try:
        listen(host, 0).close()
    except OSError as error:
        raise OSError(f"services cannot listen on {host} (rpc.listen_host): {error.strerror or error}") from None
    shuffled = random.SystemRandom().sample(range(15_000, 32_000), 17_000)
    ports = list(itertools.islice((port for port in shuffled if is_free(host, port)), count))
    if len(ports) < count:
        raise OSError(f"{host} has {len(ports)} free ports between 15000 and 32000, {count} are needed")
    return ports


def is_free(host: str, port: int) -> bool:
    """Return whether a server could listen on the port now."""
    try:
        listen(host, port).close()
    except OSError:
        return False
    return True


def with_addresses(config: RunConfig, folder: Path) -> RunConfig:
    """Return the configuration with every empty address filled in.

    If the controller's port is taken, a free one replaces it: `five status` reads it from the run's folder.
    """
    services = config.services
    wanted: dict[str, object] = {}
    inference = max(len(services.inference.addresses), 1)
    environments = 1 if services.rollout.environment == "remote" else 0
    host = local_host(config.rpc.listen_host)
    ports = iter(free_ports(inference + services.optimizer.optimizers + environments + 4, host))

    def addresses(count: int) -> list[str]:
        return [join_address(host, next(ports)) for _ in range(count)]

    if not services.inference.addresses:
        wanted["services.inference.addresses"] = addresses(inference)
    if not services.optimizer.addresses:
        wanted["services.optimizer.addresses"] = addresses(services.optimizer.optimizers)
    if environments and not services.dota_env.addresses:
        wanted["services.dota_env.addresses"] = addresses(environments)
    for key, given in (("services.opponents.address", services.opponents.address),
                       ("services.evaluator.address", services.evaluator.address),
                       ("services.play.address", services.play.address)):
        if not given:
            wanted[key] = join_address(host, next(ports))
    controller = services.controller
    if controller.port == 0 or not is_free(controller.host, controller.port):  # taken by another run of this machine
        wanted["services.controller.port"] = next(ports)
    if not controller.tokens_file:
        wanted["services.controller.tokens_file"] = str((folder / "tokens.json").resolve())
    for key, given in (("store.state_url", config.store.state_url), ("store.params_url", config.store.params_url)):
        if not given:
            wanted[key] = RunFolder(folder).embedded("state" if "state" in key else "params").url
    if not config.blobs.url:
        wanted["blobs.url"] = str(folder.resolve() / "blobs")
    # As JSON, which is YAML: as plain text " #" in a path would begin a comment.
    overrides = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in wanted.items()]
    tree = apply_overrides(config.model_dump(mode="json", by_alias=True), overrides)
    return validate(tree, "local cluster")


def optimizer_group(config: RunConfig, path: str, env: Mapping[str, str]) -> ProcessSpec:
    """Return the process of the agent that starts all optimizers, and restarts all of them if one is lost."""
    ranks = str(config.services.optimizer.optimizers)
    argv = [sys.executable, "-m", "five.services.optimizer.agent", "--nodes", "1", "--ranks", ranks, "--address",
            local_host(config.rpc.listen_host), "--", "--config", path]
    return ProcessSpec("optimizers", argv, env, None, SERVERS, grace_seconds=OPTIMIZER_GRACE)


@dataclass
class LocalCluster:
    """A started cluster. As a context manager it ends every process on exit.

    ``config`` has all addresses; ``state``, ``series`` and ``leases`` read the run. The cluster creates the users of
    an embedded Redis and gives each process only its own; users of an external Redis come from the environment.
    """

    folder: RunFolder
    config: RunConfig
    supervisor: Supervisor
    environment_ports: list[int]  # ports of their metrics pages, which no store lists
    lock: RunLock
    kinds: frozenset[str] | None = None  # of the services that are started; None: those of the configuration

    @classmethod
    def start(cls, folder: RunFolder, config: RunConfig, say: Callable[[str], None] = lambda text: None,
              lock: RunLock | None = None, interruptible: Callable[[], AbstractContextManager[None]] = nullcontext,
              hurried: Callable[[], bool] = lambda: False, kinds: frozenset[str] | None = None,
              prepare: Callable[["LocalCluster"], None] = lambda cluster: None) -> "LocalCluster":
        """Start everything, or the services of ``kinds`` only. ``lock`` is the folder's if the caller has it; it is
        released at the end.

        ``prepare`` is called when the run is set up, before its services start. A signal handler may raise within
        ``interruptible``; everything that runs is then ended. ``hurried`` is an argument of Supervisor. Raises RunInUse
        for a folder in use, and RuntimeError or TimeoutError with the log of a process that did not start.
        """
        lock = lock or RunLock(folder.path)
        try:
            folder.create()
            resolved = with_addresses(config, folder.path)
            save(resolved, folder.path / "cluster.yaml")
            pages = free_ports(len(resolved.services.dota_env.addresses), local_host(resolved.rpc.listen_host))
        except BaseException:
            lock.release()
            raise
        cluster = cls(folder, resolved, Supervisor(folder.path / "logs", None, hurried), pages, lock, kinds)
        try:
            with interruptible():
                cluster._start_stores(config, say)
                cluster._set_up_run()
                prepare(cluster)
                cluster._start_services(say)
        except BaseException:
            folder.withdraw()
            cluster.supervisor.stop()
            lock.release()
            raise
        return cluster

    def _start_stores(self, requested: RunConfig, say: Callable[[str], None]) -> None:
        say("starting redis")
        urls: dict[Role, str] = {"state": requested.store.state_url, "params": requested.store.params_url}
        self.passwords = Passwords(self.folder.path)
        self.passwords.create()
        self._logins: dict[str, Login] = {}
        self.embedded: tuple[Role, ...] = tuple(role for role, given in urls.items() if not given)
        for role in self.embedded:
            users = self.passwords.write_users(role, self.config.name)
            server = self.folder.embedded(role, users, self.login(acl.PROBE))
            self.supervisor.start(ProcessSpec(f"redis-{role}", server.argv(), {}, server.is_ready, STORES,
                                              explain=self._explain_damage if role == "state" else None,
                                              pass_fds=(self.lock.fd,)))
            self.supervisor.wait_ready([f"redis-{role}"], START_SECONDS)

    def _explain_damage(self, log: str) -> str:
        """Return what to do about a damaged append-only file; '' when the log of the Redis names none."""
        if not append_only_file.is_damage(log):
            return ""
        name = self.folder.name
        return (f"the state of run {name!r} in {self.folder.embedded('state').folder} is damaged. `five repair {name}` "
                f"keeps what was written before the damage, `five repair {name} --backup FILE` restores a backup")

    def login(self, user: str) -> Login:
        """Return a user of this process. Its password follows every rotation."""
        return self._logins.setdefault(user, self.passwords.login(user))

    def _set_up_run(self) -> None:
        store = self.config.store
        # This process creates and reads the run as the controller does.
        login = self.login(acl.CONTROLLER) if "state" in self.embedded else None
        client = connect(store.state_url, store, "state", login)
        require_reachable(client, store.state_url, "state")
        require_no_eviction(client, store.state_url, "state")
        self.state = RunState(client, self.config.name)
        self.series = Series(client, self.config.name)
        self.leases = Leases(client, self.config.name)
        self._reported: dict[str, str] | None = None  # faults in the run's state
        try:
            blobs = BlobStore(self.config.blobs.url)
            set_up_run(self.state, self.config, WHO, resume=True)
            # The optimizer claims them as well; here the refusal comes before anything starts.
            claim_blobs(blobs, self.config.name, self.state.identity() or "", self.config.blobs.adopt)
        except (ValueError, OSError, Corrupt) as error:
            raise RuntimeError(str(error)) from None

    def _start_services(self, say: Callable[[str], None]) -> None:
        say("starting services")
        for spec in self._specs():
            self.supervisor.start(spec)
        remote = self.config.services.rollout.environment == "remote"
        c = self.config.services.controller
        rest = join_address(local_host(c.host), c.port)
        host = local_host(self.config.rpc.listen_host)
        self.folder.announce(ClusterInfo(os.getpid(), f"http://{rest}", self.config.store.state_url,
                                         self.config.store.params_url, self.config.services.evaluator.address,
                                         tuple(join_address(host, port) for port in self.environment_ports) if remote
                                         else ()))

    def _specs(self) -> list[ProcessSpec]:
        services = self.config.services
        path = str(self.folder.path / "cluster.yaml")

        def env_of(kind: str) -> dict[str, str]:
            env = {"PYTHONUNBUFFERED": "1", **self.passwords.environment(kind, self.embedded)}
            if kind in list(Caller):
                env[caller_secret.FILE_VARIABLE] = str(self.folder.caller_secret(Caller(kind)).resolve())
            if kind in list(Audience):
                env[callers.FILE_VARIABLE] = str(self.folder.callers.resolve())
            return env

        def spec(kind: str, identity: int, stage: int, port: str = "", page: int | None = None) -> ProcessSpec:
            argv = [sys.executable, "-m", f"five.services.{kind}", "--config", path, "--id", str(identity)]
            if port:
                argv += ["--port", port.rpartition(":")[2]]
            if page is not None:
                argv += ["--metrics-port", str(page)]
            required = kind not in OPTIONAL
            grace = OPTIMIZER_GRACE if kind == acl.OPTIMIZER else self.config.lifecycle.grace_seconds + EXIT_SECONDS
            return ProcessSpec(f"{kind}-{identity}", argv, env_of(kind), None, stage, required=required,
                               give_up_after=ProcessSpec.give_up_after if required else FAILING_AFTER,
                               grace_seconds=grace)

        specs = [spec("controller", 0, SERVERS), spec("opponents", 0, SERVERS)]
        specs += [spec("inference", i, SERVERS, a) for i, a in enumerate(services.inference.addresses)]
        if services.rollout.environment == "remote":
            specs += [spec("dota_env", i, SERVERS, a, page) for i, (a, page) in enumerate(
                zip(services.dota_env.addresses, self.environment_ports, strict=True))]
        if services.optimizer.optimizers > 1:
            specs.append(optimizer_group(self.config, path, env_of(acl.OPTIMIZER)))
        else:
            specs.append(spec("optimizer", 0, SERVERS))
        specs += [spec("rollout", i, PLAYERS) for i in range(services.rollout.processes)]
        if services.evaluator.enabled:
            specs.append(spec("evaluator", 0, PLAYERS))
        if services.play.enabled:
            specs.append(spec("play", 0, PLAYERS))
        return [s for s in specs if self.kinds is None or s.name.partition("-")[0] in self.kinds]

    def wait_running(self, timeout: float = RUNNING_SECONDS, interrupted: Callable[[], bool] = lambda: False,
                     say: Callable[[str], None] = lambda text: None) -> None:
        """Wait until the run plays, or until ``interrupted`` returns True. ``say`` receives what is missing
        after `START_SECONDS`. Raises TimeoutError, or RuntimeError with the log of a service that does not start."""
        began, silent = time.monotonic(), True
        while not interrupted() and ((status := self.state.status()) is None or status.status is Status.STARTING):
            self.check()
            if "controller-0" in self.faults():  # it starts the run
                raise RuntimeError(self.supervisor.why_failed("controller-0"))
            seconds = time.monotonic() - began
            if seconds > timeout:
                raise TimeoutError(f"the run did not start within {timeout:g} s; {self._missing()}")
            if silent and seconds > START_SECONDS:
                say(f"the run has not started after {START_SECONDS:g} s, waiting for {timeout:g} s; {self._missing()}")
                silent = False
            time.sleep(0.2)

    def _missing(self) -> str:
        """Return which services are up and why others are not ready."""
        up = ", ".join(sorted({i.kind for i in self.leases.live()})) or "none"
        reasons = "".join(f"\n  {reason}" for reason in why_not_ready(self.supervisor, self.leases))
        return f"services up: {up}; see {self.folder.path}/logs{reasons}"

    def faults(self) -> dict[str, str]:
        """Return why each optional service that keeps failing does, by its process's name."""
        return {s.name: f"keeps failing, {s.last_end}" for s in self.supervisor.status() if s.failing}

    def check(self) -> None:
        """Rotate requested passwords, and report faults of optional services. Raises RuntimeError with the log of a
        required service that died too often."""
        for name in self.supervisor.failed():
            raise RuntimeError(self.supervisor.why_failed(name))
        faults = self.faults()
        if faults != self._reported:
            try:
                report_faults(self.state, WHO, faults)
                self._reported = faults
            except redis.RedisError:
                pass  # the next call tries again
        users = rotation.pending_users(self.folder.path)
        if users is not None:
            error = ""
            try:
                for user in users:
                    self.rotate(user)
            except (RuntimeError, LookupError, OSError, redis.RedisError) as failed:
                error = str(failed)
            try:
                rotation.complete_request(self.folder.path, error)
            except OSError as failed:  # a full disk: the next call repeats a finished rotation
                log.warning("the answer to `five rotate` cannot be written: %s", failed)

    def rotate(self, user: str) -> None:
        """Change the password of a user of the embedded Redis while the run goes on.

        Raises as `five.local.rotation.rotate`, and TimeoutError if a replaced process does not come up.
        """
        store = self.config.store

        def admin(role: Role) -> redis.Redis:
            url = store.state_url if role == "state" else store.params_url
            return connect(url, store, role, self.login(acl.ADMIN))

        rotation.rotate(self.passwords, user, self.config.name, self.embedded, admin, self._renew)
        self.state.events.append("five rotate", "password.changed", {"user": user})

    def _renew(self, user: str) -> None:
        """Restart the processes that log in as ``user`` one by one, with the newest password."""
        if user in self._logins:
            self._logins[user].password = self.passwords.login(user).password
        names = {acl.OPTIMIZER: ("optimizer-", "optimizers")}.get(user, (f"{user}-",))
        for spec in self._specs():
            if not spec.name.startswith(names):
                continue
            began = time.time()
            self.supervisor.remove(spec.name)
            self.supervisor.start(spec)
            end = time.monotonic() + START_SECONDS
            while not any(i.started_at >= began for i in self.leases.live(user)):
                if time.monotonic() > end:
                    raise TimeoutError(f"{spec.name} did not come up with its new password in {START_SECONDS:g} s; "
                                       f"the old one is still accepted:\n{self.supervisor.log_tail(spec.name)}")
                time.sleep(0.1)

    def stop(self, reason: str) -> None:
        """End players, then servers. The stores stay up, so that the last state can be read."""
        for stage in (PLAYERS, SERVERS):
            self.supervisor.remove(*(spec.name for spec in self._specs() if spec.stage == stage))
        try:
            EventMerger(self.state.redis, self.config.name).merge()  # of services that ended after the controller
            now = self.state.status()
            if now is not None and now.status not in (Status.STOPPING, Status.STOPPED):
                self.state.transition(Status.STOPPING, WHO, reason)
            if now is not None and now.status is not Status.STOPPED:
                self.state.transition(Status.STOPPED, WHO, reason)
        except redis.RedisError:
            pass  # an embedded Redis stops with this process
        self.folder.withdraw()

    def __enter__(self) -> "LocalCluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.folder.withdraw()
        self.supervisor.stop()
        self.lock.release()

"""Agents on the nodes of a Ray cluster: an actor on each holds the pipe to the same agent process as everywhere else.

Ray places the actors and carries bytes. An actor takes no CPU of Ray's count and is never restarted: a run whose agent
was lost ends, and does not go on with one that knows nothing of it.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import signal
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from assay.base.errors import NotSupported, OpenFailed, RefusedTarget, UsageError
from assay.base.extras import require
from assay.base.paths import plain
from assay.fleet.links import HOSTS_MAX, SHOWN_MAX, ProcessLink, agent_command

RAY_OLDEST = (2, 60)
RESOURCE = "load"
"""A node that offers this resource is one to load from; where none does, every node with a CPU is."""
CPU_SHARE = 0.001
PLACE_S = 30.0
ANSWER_S = 30.0
"""A node that carries nothing for so long is cut off."""
LOOK_S = 1.0
OUT_MAX = 256
"""Pieces of at most 64 KiB that wait at an actor."""
CONCURRENT = 4
"""Calls of an actor at once: one waits for what its agent says, others write and end it."""


class AgentActor:
    """Holds an agent on a node, and carries what goes over its pipe."""

    def __init__(self) -> None:
        self._link = ProcessLink(agent_command())
        # What nobody takes waits in the agent's pipe.
        self._out: queue.Queue[bytes] = queue.Queue(OUT_MAX)
        threading.Thread(target=self._listen, name="assay-agent-out", daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while data := self._link.read(1 << 16):
                self._out.put(data)
        self._out.put(b"")

    def node(self) -> tuple[str, str]:
        """Host name, and id of the node."""
        import socket

        import ray

        return socket.gethostname(), ray.get_runtime_context().get_node_id()

    def write(self, data: bytes) -> None:
        """Send bytes to the agent; where it has ended, reading tells."""
        with contextlib.suppress(OSError, ValueError):
            self._link.write(data)

    def read(self) -> tuple[bool, bytes]:
        """Whether the agent has ended, and what it said; waits a second for it."""
        pieces: list[bytes] = []
        with contextlib.suppress(queue.Empty):
            pieces.append(self._out.get(timeout=LOOK_S))
            while pieces[-1]:
                pieces.append(self._out.get_nowait())
        return bool(pieces) and not pieces[-1], b"".join(pieces)

    def why_ended(self) -> str:
        """What is known of the agent's end."""
        return self._link.why_ended()

    def end(self, kill: bool) -> None:
        """End the agent."""
        self._link.end(kill=kill)


class RayLink:
    """A pipe to an agent within a cluster."""

    def __init__(self, ray: Any, actor: Any, cluster: _Cluster) -> None:
        self._ray, self._actor, self._cluster = ray, actor, cluster
        self._why, self._ended = "", False

    def write(self, data: bytes) -> None:
        """Send bytes to it."""
        if self._ended:
            raise OSError("the agent has ended")
        # Calls of one caller arrive in their order; that a node is gone is seen where it is read from.
        try:
            self._ray.get(self._actor.write.remote(data), timeout=ANSWER_S)
        except Exception as error:
            raise OSError(_why(self._ray, error)) from error

    def read(self, size: int) -> bytes:
        """Wait for bytes from it."""
        del size
        while not self._ended:
            try:
                ended, data = self._ray.get(self._actor.read.remote(), timeout=ANSWER_S)
            except Exception as error:
                if not self._ended:
                    self._why = _why(self._ray, error)
                return b""
            if data:
                return bytes(data)
            if ended:
                return b""
        return b""

    def why_ended(self) -> str:
        """Why Ray lost it, or how its process ended."""
        if self._why:
            return self._why
        with contextlib.suppress(Exception):
            return plain(str(self._ray.get(self._actor.why_ended.remote(), timeout=ANSWER_S)))[:SHOWN_MAX]
        return "is cut off"

    def end(self, *, kill: bool = False) -> None:
        """End the agent and its actor."""
        if self._ended:
            return
        with contextlib.suppress(Exception):
            self._ray.get(self._actor.end.remote(kill), timeout=ANSWER_S)
        self._ended = True
        with contextlib.suppress(Exception):
            self._ray.kill(self._actor, no_restart=True)
        self._cluster.leave()


class _Cluster:
    """A connection to a cluster, which ends with the last agent."""

    def __init__(self, ray: Any) -> None:
        self._ray, self._lock = ray, threading.Lock()
        self.group: Any = None
        self.agents = 0

    def leave(self) -> None:
        """One agent has ended."""
        with self._lock:
            self.agents -= 1
            if self.agents == 0:
                self.end()

    def end(self) -> None:
        """Give the nodes back."""
        with contextlib.suppress(Exception):
            if self.group is not None:
                self._ray.util.remove_placement_group(self.group)
        with contextlib.suppress(Exception):
            self._ray.shutdown()


def cluster_links(address: str, hosts: Sequence[str]) -> list[tuple[str, Any]]:
    """An agent on each node of a cluster, or on so many as `hosts` says.

    Raises
    ------
    NotSupported
        Ray is not installed here, or too old.
    OpenFailed
        The cluster cannot be reached.
    UsageError
        The address or the number of hosts is none, or there are fewer nodes.
    """
    asked = _count(hosts)
    if address != "auto" and not address.startswith("ray://"):
        raise UsageError(f"--cluster {address}: is no cluster; accepted: ray://HOST:10001 or auto")
    ray = _ray()
    cluster = _connected(ray, address)
    try:
        return _placed(ray, cluster, asked, address)
    except BaseException:
        cluster.end()
        raise


def _count(hosts: Sequence[str]) -> int | None:
    if not hosts:
        return None
    text = ",".join(hosts)
    if not (text.isascii() and text.isdecimal() and len(text) <= 6 and 0 < int(text) <= HOSTS_MAX):
        raise UsageError(
            f"--hosts {plain(text)[:SHOWN_MAX]}: with --cluster it says how many; give a whole number of at most"
            f" {HOSTS_MAX:,}, or leave it out"
        )
    return int(text)


def _ray() -> Any:
    require("--cluster", "ray")
    import ray

    version = tuple(int(part) for part in ray.__version__.split(".")[:2])
    if version < RAY_OLDEST:
        oldest = ".".join(map(str, RAY_OLDEST))
        raise NotSupported(f"--cluster: Ray {ray.__version__} is too old; install {oldest} or newer on all nodes")
    return ray


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Ray puts a handler of its own in the place of ours."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _connected(ray: Any, address: str) -> _Cluster:
    try:
        with _own_signals():
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, ignore_reinit_error=True)
    except Exception as error:
        raise OpenFailed(f"--cluster {address}: cannot be reached: {_one_line(error)}") from error
    return _Cluster(ray)


def _placed(ray: Any, cluster: _Cluster, asked: int | None, address: str) -> list[tuple[str, Any]]:
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    alive = [node for node in ray.nodes() if node["Alive"]]
    offering = [node for node in alive if node["Resources"].get(RESOURCE)]
    usable = offering or [node for node in alive if node["Resources"].get("CPU")]
    count = asked or len(usable)
    kind = f"offer the resource {RESOURCE!r}" if offering else "have a CPU"
    if count > len(usable) or not usable:
        raise RefusedTarget(
            f"--cluster {address}: {count} hosts are asked for, and {len(usable)} nodes {kind}; give --hosts"
            f" {max(len(usable), 1)} or add nodes"
        )
    bundle = {RESOURCE: 1} if offering else {"CPU": CPU_SHARE}
    cluster.group = ray.util.placement_group([bundle] * count, strategy="STRICT_SPREAD")
    # An infeasible placement raises nothing: it is only never ready.
    if not cluster.group.wait(PLACE_S):
        raise RefusedTarget(
            f"--cluster {address}: {count} hosts could not be placed on nodes of their own within {PLACE_S:.0f} s:"
            f" others use what {len(usable)} nodes have; wait for them, or give fewer --hosts"
        )
    actor_type = ray.remote(AgentActor)
    actors = [
        actor_type.options(
            num_cpus=0,
            max_restarts=0,
            max_concurrency=CONCURRENT,
            scheduling_strategy=PlacementGroupSchedulingStrategy(
                placement_group=cluster.group, placement_group_bundle_index=place
            ),
        ).remote()
        for place in range(count)
    ]
    try:
        nodes = ray.get([actor.node.remote() for actor in actors], timeout=PLACE_S + ANSWER_S)
    except Exception as error:
        raise OpenFailed(
            f"--cluster {address}: no agent begins there: {_why(ray, error)}; install the same Assay on all nodes"
        ) from error
    cluster.agents = count
    # Bundles are in no order of nodes; names are, so that a run that goes on gives each node its own again.
    placed = sorted(zip(nodes, actors, strict=True), key=lambda one: one[0])
    return [(f"ray-{number}", RayLink(ray, actor, cluster)) for number, (_, actor) in enumerate(placed, 1)]


def _why(ray: Any, error: Exception) -> str:
    if isinstance(error, ray.exceptions.GetTimeoutError):
        return f"its node has carried nothing for {ANSWER_S:.0f} s"
    # Also one that may come back: what its agent knew of the run is lost with it.
    if isinstance(error, (ray.exceptions.RayActorError, ray.exceptions.ActorUnavailableError)):
        return "its node or actor was lost"
    return _one_line(error)


def _one_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return plain(lines[-1] if lines else type(error).__name__)[:SHOWN_MAX]

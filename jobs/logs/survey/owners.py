"""Whose log it is: gives each log the name of its broker, from what its lines say and then from the folder it lies in.

A line of the group coordinator begins with the id of its node: `[GroupCoordinator 1]: `. A request has the address at which it arrived.
Which node has that address is known from answers to FindCoordinator, and from generations: the coordinator's log names the node that made
generation 7 of a group, and the answers to its JoinGroup requests left from one address.

A node gets the name of its folder if the folder holds this node alone and has the node's id in its name, and else `broker-<id>`. So a
flat folder with the logs of three brokers, folders with wrong names, and one file with the lines of three brokers give the same names. A
log whose lines say nothing belongs to the node of its folder, if that is one.

Folders that have lines of one node at the same time belong to different clusters: they keep their names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from jobs.common.expressions import expression
from jobs.logs.survey.block_times import TIME

_NUMBER: Final = re.compile(r"\d+")
_KEPT: Final = 20_000  # generations of a log
_MAJORITY: Final = 9  # to one: a group that was made anew has its first generations twice

# In collectors' JSON every quote has a backslash.
_NODE: Final = expression(rb"\[Group ?(?:Coordinator|Metadata ?Manager)(?: on Broker)? (?:id=|brokerId=)?(\d{1,10})[\] ]")
_NODE_OF_LINE: Final = expression(
    _NODE.pattern + rb"|\[(?:Broker|Kafka)Server id=(\d{1,10})\] |\[Kafka Server (\d{1,10})\], |\[ReplicaFetcher replicaId=(\d{1,10}), "
)
_SERVER: Final = expression(rb"\[(Kafka|Broker|Controller|Shared)Server id=(\d{1,10})\] ")
_RELEASE: Final = expression(rb"Kafka version ?: (\d[\w.-]{0,30})")
# Two patterns, because one that begins with a fixed text is found thirty times as fast.
_ADDRESSES: Final = (
    expression(rb'"connection\\*":\\*"([^"\\\s;]{1,255}?:\d{1,5})-'),
    expression(rb"\} from connection ([^\"\\\s;]{1,255}?:\d{1,5})-"),
)
_ASKED_FOR_VERSIONS: Final = expression(rb'KeyName\\*":\\*"API_VERSIONS\\*"[^\n]*?' + _ADDRESSES[0].pattern)
"""Also of brokers that ask a controller in the same process, at an address that no client uses."""
_COORDINATOR: Final = expression(
    rb'KeyName\\*":\\*"FIND_COORDINATOR\\*"[^\n]*?"nodeId\\*":(\d{1,10}),\\*"host\\*":\\*"([^"\\]{1,255})\\*",\\*"port\\*":(\d{1,5})'
)
_MADE: Final = expression(
    rb"\[GroupCoordinator (?:id=)?(\d{1,10})[\] ][^\n]{0,80}?Stabilized group ([^\n]{1,255}?) generation (\d{1,10})\b"
)
JOINED: Final = expression(
    rb'KeyName\\*":\\*"JOIN_GROUP\\*"[^\n]{0,80}?"groupId\\*":\\*"([^"\\\n]{1,255})\\*"[^\n]*?"response\\*":\{[^\n]{0,80}?'
    rb'"errorCode\\*":0,[^\n]{0,80}?"generationId\\*":(\d{1,10}),[^\n]*?"connection\\*":\\*"([^"\\\s;]{1,255}?:\d{1,5})-'
)

_POD: Final = rb"([a-z0-9][a-z0-9.-]{0,200}?)-kafka-\d{1,5}"
_CLUSTERS: Final = (
    # The label that Strimzi puts on pods, as Fluent Bit, Fluentd, Vector and Filebeat (which writes a low line for each dot) pass it on.
    (b"strimzi", expression(rb'"strimzi[._]io[/_]cluster\\*": ?\\*"([a-z0-9][a-z0-9.-]{0,252})\\*"')),
    # Its pods: kubectl logs --prefix, stern, and the fields of collectors.
    (b"[pod/", expression(rb"\[pod/" + _POD + rb"/")),
    (b'"pod', expression(rb'"pod(?:_?[nN]ame)?\\*": ?(?:\{ ?\\*"name\\*": ?)?\\*"' + _POD + rb'\\*"')),
)
"""What of an envelope names the cluster, with a text that is found fast: `my-cluster` of the label or of the pod my-cluster-kafka-0."""
_STERN: Final = expression(rb"\n" + _POD + rb"[ \t]+[a-z0-9][a-z0-9-]{0,62}[ \t]+(?=[\[\d{])")
_FIRST_LINES_BYTES: Final = 4096
_BARE: Final = expression(rb"\n\[\d{4}-\d\d-\d\d ")
"""A block that begins like this has lines without envelopes."""

Folder = tuple[str, str]  # cluster and broker, as the path of a log gives them
Generation = tuple[bytes, bytes]  # group and number, as the line has them


@dataclass
class Signs:
    """Of one log, or of several."""

    nodes: Counter[int] = field(default_factory=Counter)  # lines of each node's coordinator
    spans: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)  # first and last time of each node's coordinator, as the log has it
    servers: set[tuple[int, str]] = field(default_factory=set)  # nodes that started or stopped, as what
    releases: set[str] = field(default_factory=set)  # of Kafka, as a starting broker logs it
    clusters: set[str] = field(default_factory=set)  # that envelopes name
    addresses: Counter[str] = field(default_factory=Counter)  # requests that arrived at each address
    coordinators: dict[str, set[int]] = field(default_factory=dict)  # nodes that clients were told to find at an address
    made: dict[Generation, set[int]] = field(default_factory=dict)  # nodes that made a generation
    joined: dict[Generation, set[str]] = field(default_factory=dict)  # addresses from which a generation was joined

    def look_at(self, text: bytes) -> int:
        """Takes the signs of whole lines; returns how many of them are requests."""
        found = [address for pattern in _ADDRESSES for address in pattern.findall(text)]
        if len(found) < text.count(b"\n") - 1:
            self._look_at_others(text)
        if _BARE.match(text) is None:
            for word, pattern in _CLUSTERS:
                self.clusters.update(name.decode() for name in (pattern.findall(text) if word in text else ()))
            self.clusters.update(name.decode() for name in _STERN.findall(text, 0, _FIRST_LINES_BYTES))
        for address, count in Counter(found).items():
            self.addresses[address.decode("utf-8", "replace")] += count
        if b"API_VERSIONS" in text:
            self.addresses.subtract(address.decode("utf-8", "replace") for address in _ASKED_FOR_VERSIONS.findall(text))
            self.addresses = +self.addresses
        for node, host, port in _COORDINATOR.findall(text) if b"FIND_COORDINATOR" in text else ():
            self.coordinators.setdefault(f"{host.decode('utf-8', 'replace')}:{port.decode()}", set()).add(int(node))
        if len(self.joined) < _KEPT and b"JOIN_GROUP" in text:
            for group, generation, address in JOINED.findall(text):
                self.joined.setdefault((group, generation), set()).add(address.decode("utf-8", "replace"))
        return len(found)

    def _look_at_others(self, text: bytes) -> None:
        """Takes the signs of lines that are no requests."""
        for match in _NODE.finditer(text):
            node = int(match[1])
            self.nodes[node] += 1
            time = TIME.search(text, text.rfind(b"\n", 0, match.start()) + 1, match.start())
            if time is not None:
                first, last = self.spans.get(node, (time[0], time[0]))
                self.spans[node] = min(first, time[0]), max(last, time[0])
        self.releases.update(release.decode() for release in _RELEASE.findall(text))
        # What a pattern needs is found much faster than the pattern.
        self.servers.update((int(node), kind.decode()) for kind, node in (_SERVER.findall(text) if b"Server id=" in text else ()))
        if len(self.made) < _KEPT:
            for node, group, generation in _MADE.findall(text):
                self.made.setdefault((group, generation), set()).add(int(node))


@dataclass(frozen=True)
class Owners:
    """The brokers whose lines a log has. `broker` wrote the lines that say nothing."""

    broker: str
    nodes: Mapping[int, str] = field(default_factory=dict)  # if there are several brokers: their names by node
    addresses: Mapping[str, str] = field(default_factory=dict)  # and by the address of requests

    @property
    def brokers(self) -> list[str]:
        """All names, in order."""
        return sorted({self.broker, *self.nodes.values(), *self.addresses.values()})

    @property
    def shared(self) -> bool:
        """Whether several brokers wrote the log."""
        return bool(self.nodes or self.addresses)

    def of(self, line: bytes, speaker: str) -> tuple[str, str]:
        """Who wrote a line, and the new `speaker`: who wrote the last line with the id of its node.

        Some lines of the coordinator have no id, such as "Loaded member"; they follow one that has.
        """
        named = _NODE_OF_LINE.search(line)
        if named is not None:
            speaker = self.nodes.get(int(named[named.lastindex or 1]), self.broker)
            return speaker, speaker
        at = next((match for pattern in _ADDRESSES if (match := pattern.search(line)) is not None), None)
        address = "" if at is None else at[1].decode("utf-8", "replace")
        return self.addresses.get(address, speaker or self.broker), speaker


@dataclass
class KnownNodes:
    """What the logs of a cluster have said about its nodes so far."""

    names: dict[int, str] = field(default_factory=dict)
    addresses: dict[str, int] = field(default_factory=dict)  # at which requests arrive


@dataclass(kw_only=True)
class UnnamedLog:
    """A log of a cluster that has no owner yet."""

    folder: str  # its broker, by its path
    is_flat: bool  # no folder says whose it is
    signs: Signs
    named: str = ""  # by an earlier run, as its folder's broker
    before: Owners | None = None  # of the log that had the same path before


def clashing(logs: Sequence[UnnamedLog]) -> dict[int, list[str]]:
    """Nodes whose coordinator wrote in several folders at the same time, with the folders."""
    spans: dict[int, list[tuple[bytes, bytes, str]]] = {}
    for log in logs:
        for node, (first, last) in log.signs.spans.items():
            spans.setdefault(node, []).append((first, last, log.folder))
    found: dict[int, list[str]] = {}
    for node, ones in sorted(spans.items()):
        ones.sort()
        meet = {f for one, other in pairwise(ones) if other[0] < one[1] and one[2] != other[2] for f in (one[2], other[2])}
        if meet:
            found[node] = sorted(meet)
    return found


def owners_of(logs: Sequence[UnnamedLog], known: KnownNodes) -> list[Owners]:
    """The owners of a cluster's new logs, in their order. Adds to `known`."""
    for address, node in _nodes_at(log.signs for log in logs).items():
        known.addresses.setdefault(address, node)
    nodes = [_nodes(log, known.addresses) for log in logs]
    beside: dict[str, set[int]] = {}  # by folder: the nodes whose lines are in its logs
    for log, own in zip(logs, nodes, strict=True):
        beside.setdefault(log.folder, set()).update(own)
    for node, name in _names(logs, beside).items():
        known.names.setdefault(node, name)
    clash = frozenset(clashing(logs))
    owners = []
    for log, own in zip(logs, nodes, strict=True):
        apart = frozenset() if log.is_flat else clash  # nodes whose name is that of the folder
        owners.append(_owners(log, own - apart if len(own) == 1 else own, frozenset(beside[log.folder]) - apart, known))
    return owners


def _nodes_at(signs: Iterable[Signs]) -> dict[str, int]:
    """The node at each address at which requests arrived, where the signs of a cluster's logs agree on one."""
    known = list(signs)
    made: dict[Generation, set[int]] = {}
    for one in known:
        for generation, nodes in one.made.items():
            made.setdefault(generation, set()).update(nodes)
    votes: dict[str, Counter[int]] = {}
    for one in known:
        for generation, addresses in one.joined.items():
            for node in made.get(generation, ()) if len(made.get(generation, ())) == 1 else ():
                for address in addresses:
                    votes.setdefault(address, Counter())[node] += 1
    told: dict[str, set[int]] = {}
    for one in known:
        for address, nodes in one.coordinators.items():
            told.setdefault(address, set()).update(nodes)
    found = {}
    for address in sorted({address for one in known for address in one.addresses}):
        cast = votes.get(address, Counter()).most_common(2)
        if cast and (len(cast) == 1 or cast[0][1] > _MAJORITY * cast[1][1]):
            found[address] = cast[0][0]
        elif not cast and len(told.get(address, ())) == 1:
            (found[address],) = told[address]
    return found


def _nodes(log: UnnamedLog, at: Mapping[str, int]) -> frozenset[int]:
    """The nodes whose lines are in a log."""
    nodes = {*log.signs.nodes, *(at[address] for address in log.signs.addresses if address in at)}
    return frozenset(nodes or {node for node, _ in log.signs.servers})


def _names(logs: Sequence[UnnamedLog], held: Mapping[str, set[int]]) -> dict[int, str]:
    flat = {log.folder for log in logs if log.is_flat}
    kinds: dict[int, set[str]] = {}
    for node, kind in (server for log in logs for server in log.signs.servers):
        kinds.setdefault(node, set()).add(kind)
    names = {}
    for node in sorted(set().union(*held.values())):
        folders = sorted(folder for folder, own in held.items() if node in own)
        named = {log.named for log in logs if log.named and log.folder in folders}
        is_alone = len(folders) == 1 and held[folders[0]] == {node} and folders[0] not in flat
        if is_alone and (named or node in map(int, _NUMBER.findall(folders[0]))):
            names[node] = min(named, default=folders[0])
        else:
            names[node] = f"{'controller' if kinds.get(node) == {'Controller'} else 'broker'}-{node}"
    return names


def _owners(log: UnnamedLog, own: frozenset[int], beside: frozenset[int], known: KnownNodes) -> Owners:
    if len(own) > 1:
        at = {address: known.names[known.addresses[address]] for address in log.signs.addresses if address in known.addresses}
        # An address that no sign leads to a node from is a broker of its own: better apart than under a wrong name.
        apart = {address: address for address in log.signs.addresses if address not in at}
        return Owners(known.names[min(own)], {node: known.names[node] for node in sorted(own)}, {**at, **apart})
    if log.named:
        return Owners(log.named)
    if own:
        return Owners(known.names[min(own)])
    if log.before is not None and not log.before.shared:
        return log.before
    return Owners(known.names[min(beside)] if len(beside) == 1 else log.folder)

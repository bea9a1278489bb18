"""What the lines of a log say about the broker that wrote them.

A line of the group coordinator begins with the id of its node: `[GroupCoordinator 1]: `. A request has the address at which it arrived.
Which node has that address is known from answers to FindCoordinator, and from generations: the coordinator's log names the node that made
generation 7 of a group, and the answers to its JoinGroup requests left from one address.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from jobs.common.expressions import expression
from jobs.logs.bytes import LogBytes
from jobs.logs.survey.block_times import TIME, blocks_of

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


def signs_of(log: LogBytes, most_bytes: int) -> Signs:
    """The signs in the first bytes of a log, from where it stands."""
    signs = Signs()
    for _, block in takewhile(lambda block: block[0] < most_bytes, blocks_of(log)):
        signs.look_at(block)
    return signs


def nodes_at(signs: Iterable[Signs]) -> dict[str, int]:
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


def node_of(line: bytes) -> int | None:
    """The node that wrote a line, where its coordinator, its server or a follower did."""
    match = _NODE_OF_LINE.search(line)
    return int(match[match.lastindex or 1]) if match is not None else None


def address_of(line: bytes) -> str:
    """Where a request arrived; empty if the line is no request."""
    match = next((match for pattern in _ADDRESSES if (match := pattern.search(line)) is not None), None)
    return match[1].decode("utf-8", "replace") if match is not None else ""

"""Whose log it is: gives each log the name of its broker, from what its lines say and then from the folder it lies in.

A node gets the name of its folder if the folder holds this node alone and has the node's id in its name, and else `broker-<id>`. So a
flat folder with the logs of three brokers, folders with wrong names, and one file with the lines of three brokers give the same names. A
log whose lines say nothing belongs to the node of its folder, if that is one.

Folders that have lines of one node at the same time belong to different clusters: they keep their names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from jobs.logs.survey.signs import Signs, address_of, node_of, nodes_at

_NUMBER: Final = re.compile(r"\d+")

Folder = tuple[str, str]  # cluster and broker, as the path of a log gives them


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
        node = node_of(line)
        if node is not None:
            speaker = self.nodes.get(node, self.broker)
            return speaker, speaker
        return self.addresses.get(address_of(line), speaker or self.broker), speaker


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
    for address, node in nodes_at(log.signs for log in logs).items():
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

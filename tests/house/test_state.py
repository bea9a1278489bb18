"""How many places write the state of a group. The fewer, the easier it is to say what a line changes: the numbers may only fall."""

import ast
from pathlib import Path

import pytest

import coordinator_model

FOLDER = Path(coordinator_model.__file__).parent
FILES = sorted(path for room in ("tracker", "diagnosis", "view") for path in (FOLDER / room).rglob("*.py"))
MUTATORS = {
    *("add", "append", "appendleft", "clear", "discard", "extend", "insert"),
    *("pop", "popitem", "popleft", "remove", "setdefault", "sort", "update"),
}
WHO_IS_A_MEMBER = {
    *("members", "complete", "member_count", "pending", "unnamed", "untold", "missing", "lost", "gone", "ended", "stored"),
    *("stored_generation", "moves", "by_name", "count_before", "count_after"),
    *("joined", "left", "members_before", "members_after", "members_known"),
}
"""Also of the consumer protocol. A field of another record with one of these names counts, too."""
WRITES = 747
WRITES_OF_MEMBERS = 125


def fields(trees):
    """The names of all fields of records, which are what is stored of a group."""
    classes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    records = [node for node in classes if any(getattr(base, "id", "") == "Struct" for base in node.bases)]
    return {line.target.id for node in records for line in node.body if isinstance(line, ast.AnnAssign)}


def written(tree):
    """The name of the attribute that each assignment, deletion or changing call writes, or writes into."""
    for node in ast.walk(tree):
        targets = []
        if isinstance(node, ast.Assign | ast.Delete):
            targets = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
            targets = [node.func.value]
        for target in targets:
            for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                place = part
                while isinstance(place, ast.Subscript):
                    place = place.value
                if isinstance(place, ast.Attribute):
                    yield place.attr


def count(sources, names=None):
    trees = [ast.parse(source) for source in sources]
    counted = fields(trees) if names is None else names
    return sum(name in counted for tree in trees for name in written(tree))


@pytest.mark.parametrize(("ceiling", "names"), [("WRITES", None), ("WRITES_OF_MEMBERS", WHO_IS_A_MEMBER)], ids=["all", "members"])
def test_no_more_places_write_state(ceiling, names):
    limit, found = globals()[ceiling], count([path.read_text(encoding="utf-8") for path in FILES], names)
    assert found <= limit, f"{found} places write state, {limit} did: let one of those do it"
    assert found == limit, f"{found} places write state now: lower {ceiling} to that"


def test_only_the_view_writes_who_is_a_member():
    """roster.py of a classic group, consumer_view.py of the consumer protocol. Other records have fields with these names, too."""
    names = WHO_IS_A_MEMBER - {"missing", "lost", "gone", "ended", "stored", "members_known"}
    assert [path.name for path in FILES if path.parent.name != "view" and count([path.read_text(encoding="utf-8")], names)] == []


def test_the_count_sees_every_way_to_write():
    record = "class A(Struct):\n    one: int\n    other: list\n"
    ways = ("a.one = 1", "a.one += 1", "a.b.other[0] = 1", "del a.other[:2]", "a.other.append(1)", "a.one, b = 1, 2", "a.one = a.other = 3")
    assert [count([record + way]) for way in ways] == [1, 1, 1, 1, 1, 1, 2]
    assert count([record + "b = a.one; a.neither = 1; one = 2; a.other.index(1)"]) == 0

"""What `make mutants` changes: cosmic-ray's own operators as far as they apply here, and those that know this project.

An operator finds the places of a syntax tree (parso's) that it can change, and changes one. Where several changes are
possible at one place it yields the place several times. Changes that can make no difference are left out: `==` for `is`
between members of an enumeration, and the removal of a cache.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import parso
from cosmic_ray import plugins
from cosmic_ray.operators.operator import Example, Operator

Span = tuple[tuple[int, int], tuple[int, int]]

STOCK: Final = (
    "AddNot",
    "ExceptionReplacer",
    "NumberReplacer",
    "ReplaceAndWithOr",
    "ReplaceContinueWithBreak",
    "ReplaceFalseWithTrue",
    "ReplaceOrWithAnd",
    "ReplaceTrueWithFalse",
    "ReplaceUnaryOperator_Delete_Not",
    "ReplaceUnaryOperator_Delete_USub",
    "ZeroIterationForLoop",
    *(f"ReplaceBinaryOperator_{pair}" for pair in ("Add_Sub", "Sub_Add", "Mul_Add", "Mod_FloorDiv", "Pow_Mul")),
    *(f"ReplaceBinaryOperator_{pair}" for pair in ("BitAnd_BitOr", "BitOr_BitAnd", "BitXor_BitAnd", "LShift_RShift", "RShift_LShift")),
    *(f"ReplaceComparisonOperator_{pair}" for pair in ("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is")),
    *(f"ReplaceComparisonOperator_{pair}" for pair in ("Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt", "Lt_GtE", "Lt_LtE", "LtE_Gt", "LtE_Lt")),
)
"""The operators of cosmic-ray that change the meaning of a line but leave it valid."""


def names_of(module: Path, class_name: str, annotation: str = "") -> tuple[str, ...]:
    """The members of an enumeration, or the fields of a class that are annotated so, without importing the module."""
    (found,) = (
        node for node in ast.parse(module.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef) and node.name == class_name
    )
    if annotation:
        fields = (node for node in found.body if isinstance(node, ast.AnnAssign))
        return tuple(ast.unparse(node.target) for node in fields if ast.unparse(node.annotation) == annotation)
    return tuple(ast.unparse(node.targets[0]) for node in found.body if isinstance(node, ast.Assign))


def _path(node: Any) -> tuple[str, ...]:
    """`a.b.c` as ("a", "b", "c"); () of anything else."""
    if node.type != "atom_expr" or any(trailer.type != "trailer" or trailer.children[0] != "." for trailer in node.children[1:]):
        return ()
    return tuple(leaf.value for leaf in (node.children[0], *(trailer.children[1] for trailer in node.children[1:])) if leaf.type == "name")


def _instead_of(node: Any, code: str) -> Any:
    """`code` as a node that keeps the white space in front of `node`."""
    return parso.python.tree.Name(code, node.start_pos, node.get_first_leaf().prefix)


class _Replace(Operator):
    """Puts other code in the place of a node."""

    def replacements(self, node: Any) -> Iterable[str]:
        """What may stand there instead."""
        raise NotImplementedError

    def mutation_positions(self, node: Any) -> list[Span]:
        """The place, as often as there are replacements."""
        return [(node.start_pos, node.end_pos) for _ in self.replacements(node)]

    def mutate(self, node: Any, index: int) -> Any:
        """The replacement with this number."""
        return _instead_of(node, list(self.replacements(node))[index])

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """None: tests/house/test_mutants.py shows examples."""
        return ()


def other_member(class_name: str, members: tuple[str, ...]) -> type[Operator]:
    """`Error.NONE` becomes each other error code; states, causes and reasons likewise."""

    class OtherMember(_Replace):
        def replacements(self, node: Any) -> Iterable[str]:
            """Each other member."""
            path = _path(node)
            if len(path) == 2 and path[0] == class_name and path[1] in members:
                return [f"{class_name}.{member}" for member in members if member != path[1]]
            return ()

    return OtherMember


def negated_switch(switches: tuple[str, ...]) -> type[Operator]:
    """A rule of one release holds in the others instead."""

    class NegatedSwitch(_Replace):
        def replacements(self, node: Any) -> Iterable[str]:
            """The switch negated."""
            path = _path(node)
            return [f"(not {'.'.join(path)})"] if path[-2:-1] == ("version",) and path[-1] in switches else ()

    return NegatedSwitch


class OppositeMembership(_Replace):
    """`in` becomes `not in` and the other way round."""

    def replacements(self, node: Any) -> Iterable[str]:
        """The opposite of an `in`."""
        if node.parent is None or node.parent.type not in ("comparison", "comp_op"):
            return ()
        if node.type == "comp_op" and [leaf.value for leaf in node.children] == ["not", "in"]:
            return ["in"]
        return ["not in"] if node.type == "keyword" and node.value == "in" and node.parent.type == "comparison" else ()


class RemovedStatement(_Replace):
    """A call, an assignment to an attribute or an item, a `del` or a `raise` is left out."""

    def replacements(self, node: Any) -> Iterable[str]:
        """`pass` instead of the statement."""
        if node.parent is None or node.parent.type != "simple_stmt":
            return ()
        target = node.children[0] if node.type == "expr_stmt" else node
        return ["pass"] if target.type in ("atom_expr", "del_stmt", "raise_stmt") else ()


def _rows(node: Any) -> bool:
    """Whether `node` is a row of the transition table: a dictionary as the value of a state."""
    return node.type == "atom" and node.children[0] == "{" and node.parent.type == "dictorsetmaker"


class RemovedEntry(_Replace):
    """An entry of the transition table is left out."""

    def mutation_positions(self, node: Any) -> list[Span]:
        """The entries of a row."""
        return [(node.children[at].start_pos, node.children[at + 2].end_pos) for at in self._entries(node)]

    def mutate(self, node: Any, index: int) -> Any:
        """The row without its entry."""
        at = self._entries(node)[index]
        del node.children[at : at + 4]
        return node

    @staticmethod
    def _entries(node: Any) -> list[int]:
        return list(range(0, len(node.children), 4)) if node.type == "dictorsetmaker" and _rows(node.parent) else []


def added_entry(triggers: tuple[str, ...]) -> type[Operator]:
    """What cannot happen in a state leads to PreparingRebalance."""

    class AddedEntry(_Replace):
        def replacements(self, node: Any) -> Iterable[str]:
            """The row with one cause more."""
            if not _rows(node):
                return
            code = node.get_code(include_prefix=False)
            for trigger in triggers:
                if f"Trigger.{trigger}:" not in code:
                    yield f"{{Trigger.{trigger}: State.PREPARING_REBALANCE, {code[1:]}"

    return AddedEntry


def install(model: Path) -> None:
    """Make cosmic-ray use these operators and no others, for the specification in the folder `model`."""
    triggers = names_of(model / "specification" / "transitions.py", "Trigger")
    own = {
        "OtherError": other_member("Error", names_of(model / "errors.py", "Error")),
        "OtherState": other_member("State", names_of(model / "states.py", "State")),
        "OtherTrigger": other_member("Trigger", triggers),
        "OtherRemovalCause": other_member("RemovalCause", names_of(model / "specification" / "effects.py", "RemovalCause")),
        "NegatedSwitch": negated_switch(names_of(model / "specification" / "config.py", "KafkaVersion", "bool")),
        "RemovedEntry": RemovedEntry,
        "AddedEntry": added_entry(triggers),
        "OppositeMembership": OppositeMembership,
        "RemovedStatement": RemovedStatement,
    }
    stock = plugins.OPERATOR_PROVIDERS["core"]
    plugins.OPERATOR_PROVIDERS.clear()
    plugins.OPERATOR_PROVIDERS["core"] = {name: stock[name] for name in STOCK}
    plugins.OPERATOR_PROVIDERS["own"] = own

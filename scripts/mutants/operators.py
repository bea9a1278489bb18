"""What `make mutants` changes: cosmic-ray's own operators as far as they apply here, and those that know this project.

An operator finds the places of a syntax tree (parso's) that it can change, and changes one. Changes that can make no difference are left
out: `==` for `is` between members of an enumeration, and the removal of a cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from enum import Enum
from typing import Any, Final

import parso
from cosmic_ray import plugins
from cosmic_ray.operators.operator import Example, Operator

from coordinator_model.errors import Error
from coordinator_model.specification.config import KafkaVersion
from coordinator_model.specification.effects import RemovalCause
from coordinator_model.specification.transitions import Trigger
from coordinator_model.states import State

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
ENUMERATIONS: Final[tuple[type[Enum], ...]] = (Error, State, Trigger, RemovalCause)


def _next_members(kind: type[Enum]) -> dict[str, str]:
    names = [f"{kind.__name__}.{name}" for name in kind.__members__]
    return dict(zip(names, [*names[1:], names[0]], strict=True))


NEXT: Final = {one: other for kind in ENUMERATIONS for one, other in _next_members(kind).items()}
"""What takes the place of a member."""
SWITCHES: Final = {field.name for field in fields(KafkaVersion) if field.type == "bool"}


class _Replace(Operator):
    """Puts other code in the place of a node."""

    def replacements(self, node: Any) -> Iterable[str]:
        """What may stand there instead."""
        raise NotImplementedError

    def mutation_positions(self, node: Any) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """The place, as often as there are replacements."""
        return [(node.start_pos, node.end_pos) for _ in self.replacements(node)]

    def mutate(self, node: Any, index: int) -> Any:
        """The replacement with this number, after the white space in front of the node."""
        return parso.python.tree.Name(list(self.replacements(node))[index], node.start_pos, node.get_first_leaf().prefix)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """None: tests/house/test_mutants.py shows examples."""
        return ()


class OtherMember(_Replace):
    """An error code, a state, a trigger or a cause becomes the next one."""

    def replacements(self, node: Any) -> Iterable[str]:
        """The next member."""
        code = node.get_code(include_prefix=False) if node.type == "atom_expr" else ""
        return [NEXT[code]] if code in NEXT else ()


class NegatedSwitch(_Replace):
    """A rule of one release holds in the others instead."""

    def replacements(self, node: Any) -> Iterable[str]:
        """The switch negated."""
        code = node.get_code(include_prefix=False) if node.type == "atom_expr" else ""
        path, _, switch = code.rpartition(".")
        return [f"(not {code})"] if path.rpartition(".")[2] == "version" and switch in SWITCHES else ()


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


class ChangedRow(_Replace):
    """A row of the transition table has an entry less; or what cannot happen in a state leads to PreparingRebalance."""

    def replacements(self, node: Any) -> Iterable[str]:
        """The rows with an entry less, and those with one more."""
        if node.type != "atom" or node.children[0] != "{" or node.parent.type != "dictorsetmaker":
            return
        code = node.get_code(include_prefix=False)
        entries = node.children[1].children if node.children[1].type == "dictorsetmaker" else []
        keys = [key.get_code(include_prefix=False) for key in entries[::4]]
        pairs = [f"{key}: {value.get_code(include_prefix=False)}" for key, value in zip(keys, entries[2::4], strict=True)]
        yield from (f"{{{', '.join(pairs[:number] + pairs[number + 1 :])}}}" for number in range(len(pairs)))
        yield from (f"{{{key}: State.PREPARING_REBALANCE, {code[1:]}" for key in NEXT if key.startswith("Trigger.") and key not in keys)


def install() -> None:
    """Makes cosmic-ray use these operators and no others."""
    stock = plugins.OPERATOR_PROVIDERS["core"]
    own = (OtherMember, NegatedSwitch, OppositeMembership, RemovedStatement, ChangedRow)
    plugins.OPERATOR_PROVIDERS.clear()
    plugins.OPERATOR_PROVIDERS |= {"core": {name: stock[name] for name in STOCK}, "own": {kind.__name__: kind for kind in own}}

"""What `make mutants` changes, and that equivalent_mutants.toml still speaks of the code as it is."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from cosmic_ray.mutating import mutate_code

from scripts.mutants import operators, run
from scripts.mutants.explained import Explanation, Mutant, explanations

MODEL = run.PROJECT / run.MODEL
EXPLAINED = explanations((run.PROJECT / run.EXPLAINED).read_text(encoding="utf-8"))


@pytest.mark.parametrize("explanation", EXPLAINED, ids=lambda explanation: f"{explanation.module}-{explanation.definition}")
def test_what_is_explained_is_in_the_code(explanation: Explanation) -> None:
    source = (run.PROJECT / run.modules()[explanation.module.removesuffix(".py")]).read_text(encoding="utf-8")
    if explanation.definition != "module":
        definitions = (ast.FunctionDef, ast.ClassDef)
        named = [node for node in ast.walk(ast.parse(source)) if isinstance(node, definitions) and node.name == explanation.definition]
        source = "\n".join(ast.get_source_segment(source, node) or "" for node in named)
    lines = {line.strip() for line in source.splitlines()}
    assert set(explanation.removed) <= lines
    assert explanation.removed != explanation.added


def test_every_module_of_the_specification_is_mutated() -> None:
    assert {"states", "config", "group_state", "sync"} <= run.modules().keys()
    assert not run.modules().keys() & run.NOT_MUTATED


def all_mutants(operator: operators.Operator, code: str) -> list[str]:
    mutants = []
    while (mutant := mutate_code(code, operator, len(mutants))) is not None:
        mutants.append(mutant)
    return mutants


def test_a_member_becomes_each_other_one() -> None:
    states = operators.names_of(MODEL / "states.py", "State")
    assert states == ("EMPTY", "PREPARING_REBALANCE", "COMPLETING_REBALANCE", "STABLE", "DEAD")
    mutants = all_mutants(operators.other_member("State", states)(), "x = y is State.EMPTY\n")
    assert mutants == [f"x = y is State.{state}\n" for state in states[1:]]


def test_a_switch_is_negated() -> None:
    switches = operators.names_of(MODEL / "specification" / "config.py", "KafkaVersion", "bool")
    assert "static_members" in switches
    assert "member_map" not in switches
    negated = operators.negated_switch(switches)()
    assert all_mutants(negated, "a = group.version.static_members\n") == ["a = (not group.version.static_members)\n"]
    assert all_mutants(negated, "a = group.version.member_map\n") == []


def test_membership_is_turned_round() -> None:
    code = "for a in b:\n    c = a in d or a not in e\n"
    assert all_mutants(operators.OppositeMembership(), code) == [
        "for a in b:\n    c = a not in d or a not in e\n",
        "for a in b:\n    c = a in d or a in e\n",
    ]


def test_statements_are_left_out_but_no_text_and_no_name() -> None:
    code = 'def f(a):\n    """Text."""\n    b = 1\n    a.b = b\n    a.f()\n    del a.c\n'
    mutants = all_mutants(operators.RemovedStatement(), code)
    assert [code.replace(line, "pass") for line in ("a.b = b", "a.f()", "del a.c")] == mutants


def test_entries_of_the_table_come_and_go() -> None:
    code = "T = {\n    State.A: {\n        Trigger.X: State.B,\n        Trigger.Y: State.C,\n    },\n    State.B: {},\n}\n"
    tables = [ast.unparse(ast.parse(mutant)) for mutant in all_mutants(operators.RemovedEntry(), code)]
    assert tables == ["T = {State.A: {Trigger.Y: State.C}, State.B: {}}", "T = {State.A: {Trigger.X: State.B}, State.B: {}}"]
    tables = [ast.unparse(ast.parse(mutant)) for mutant in all_mutants(operators.added_entry(("X", "Y"))(), code)]
    assert [table.rpartition("State.B: ")[2] for table in tables] == [
        "{Trigger.X: State.PREPARING_REBALANCE}}",
        "{Trigger.Y: State.PREPARING_REBALANCE}}",
    ]


def test_annotations_and_decorators_are_left_alone(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("@cache(1)\ndef f(a: int | str = 2) -> int | None:\n    return a + 3\n", encoding="utf-8")
    code = module.read_text(encoding="utf-8").splitlines()
    spans = [code[start[0] - 1][start[1] : end[1]] for start, end in run.without_effect(module)]
    assert sorted(spans) == ["cache(1)", "int | None", "int | str"]


def test_an_explanation_means_its_mutant_and_no_other() -> None:
    text = '[[equivalent]]\nwhere = "a.py, f"\nwhy = "Why."\nmutants = [["x = E.A", "x = E.ANY"]]\n'
    (explanation,) = explanations(text)
    mutant = Mutant("a.py", "f", 3, ("x = E.A",), ("x = E.B_C",))
    assert explanation.means(mutant)
    for other in ({"module": "b.py"}, {"definition": "g"}, {"removed": ("x = E.C",)}, {"added": ("x = E.B + 1",)}):
        assert not explanation.means(mutant._replace(**other))

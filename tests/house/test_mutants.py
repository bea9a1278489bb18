"""What `make mutants` changes, and that equivalent_mutants.toml still speaks of the code as it is."""

import ast
from pathlib import Path

import pytest
from cosmic_ray.mutating import mutate_code
from cosmic_ray.work_item import MutationSpec

from scripts.mutants import operators, run


@pytest.mark.parametrize("mutant", run.explained(), ids=lambda mutant: mutant.where)
def test_what_is_explained_is_in_the_code(mutant: run.Mutant) -> None:
    module, definition = mutant.where.split(".py, ")
    source = (run.PROJECT / run.modules()[module]).read_text(encoding="utf-8")
    if definition != "module":
        definitions = (ast.FunctionDef, ast.ClassDef)
        named = [node for node in ast.walk(ast.parse(source)) if isinstance(node, definitions) and node.name == definition]
        source = "\n".join(ast.get_source_segment(source, node) or "" for node in named)
    assert mutant.removed in {line.strip() for line in source.splitlines()}
    assert mutant.removed != mutant.added


def test_every_module_of_the_specification_is_mutated() -> None:
    assert {"states", "config", "group_state", "sync", "consumer/target"} <= run.modules().keys()
    assert not run.modules().keys() & run.NOT_MUTATED


def all_mutants(operator: operators.Operator, code: str) -> list[str]:
    mutants = []
    while (mutant := mutate_code(code, operator, len(mutants))) is not None:
        mutants.append(mutant)
    return mutants


def test_a_member_becomes_the_next_one() -> None:
    assert all_mutants(operators.OtherMember(), "x = y is State.DEAD\n") == ["x = y is State.EMPTY\n"]
    assert all_mutants(operators.OtherMember(), "x = State.DEAD.value or State\n") == []


def test_a_switch_is_negated() -> None:
    negated = operators.NegatedSwitch()
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
    tables = [ast.unparse(ast.parse(mutant)) for mutant in all_mutants(operators.ChangedRow(), code)]
    triggers = [key for key in operators.NEXT if key.startswith("Trigger.")]
    assert tables == [
        "T = {State.A: {Trigger.Y: State.C}, State.B: {}}",
        "T = {State.A: {Trigger.X: State.B}, State.B: {}}",
        *(
            f"T = {{State.A: {{{key}: State.PREPARING_REBALANCE, Trigger.X: State.B, Trigger.Y: State.C}}, State.B: {{}}}}"
            for key in triggers
        ),
        *(
            f"T = {{State.A: {{Trigger.X: State.B, Trigger.Y: State.C}}, State.B: {{{key}: State.PREPARING_REBALANCE}}}}"
            for key in triggers
        ),
    ]


def test_annotations_and_decorators_are_left_alone(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("@cache(1)\ndef f(a: int | str = 2) -> int | None:\n    return a + 3\n", encoding="utf-8")
    code = module.read_text(encoding="utf-8").splitlines()
    spans = [code[start[0] - 1][start[1] : end[1]] for start, end in run.without_effect(module)]
    assert sorted(spans) == ["cache(1)", "int | None", "int | str"]


def test_a_mutant_is_what_equivalent_mutants_toml_says_of_it() -> None:
    spec = MutationSpec(Path("coordinator_model/specification/consumer/handlers/a.py"), "own/OtherMember", 0, (3, 0), (3, 5), {}, "f")
    diff = "--- mutation diff ---\n--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n \n def f():\n-    x = E.A\n+    x = E.B"
    assert run.Mutant.of(spec, diff) == run.Mutant("consumer/a.py, f", "x = E.A", "x = E.B")

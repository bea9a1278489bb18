"""For tests that make a lakehouse: its tables keep the laws."""

from pathlib import Path

from jobs.answers.check import check


def assert_laws_are_kept(lakehouse: Path, *inputs: Path) -> None:
    """Fails with the rows that break a law. `inputs`: its logs, whose lines of evidence are opened too."""
    found = check(lakehouse, inputs)
    breaches = [(breach.law, breach.group_id, breach.text) for breach in found.breaches]
    assert not breaches, breaches
    assert found.rows["rebalances"] > 0
    assert not inputs or 0 == found.lines_gone < found.lines

"""The books of the claims: each has a holder, each holder a claim, and docs/claims.md says which."""

import gzip
import json

import pytest

from scripts.docs import claims
from scripts.docs.claims import Claim, Holder

CLAIMS = claims.read_claims()
COUNTS = {"A": 47, "B": 21, "C": 21, "D": 35, "K": 21}


@pytest.fixture(scope="module")
def holders():
    return claims.find_holders()


def test_every_claim_is_there():
    assert list(CLAIMS) == [f"{letter}{number:02}" for letter, count in COUNTS.items() for number in range(1, count + 1)]


def test_every_claim_is_held_and_every_holder_holds_one(holders):
    assert claims.faults(CLAIMS, holders) == []


def test_what_is_not_right_everywhere_is_held_by_a_test_not_by_a_recording_alone(holders):
    tested = {holder.claim for holder in holders if holder.file.startswith("test_")}
    assert {name for name, claim in CLAIMS.items() if claim.verdict != "right"} <= tested


def test_the_books_bite():
    two = {"A01": Claim("a", "right", "all"), "A02": Claim("b", "maybe", "all")}
    found = claims.faults(two, [Holder("A01", "test_a", "test_b"), Holder("A03", "test_a", "test_c")])
    assert found == ["A02: nothing holds it", "A03: no such claim, but test_c holds it", "A02: no such verdict: maybe"]


def test_where_holders_are_found(tmp_path):
    folder = tmp_path / "tests" / "specification"
    (folder / "transcripts").mkdir(parents=True)
    (folder / "traces").mkdir()
    (folder / "test_a.py").write_text('@pytest.mark.claims("A01", "A02")\n@pytest.mark.slow\ndef test_b():\n    pass\n', encoding="utf-8")
    (folder / "transcripts" / "c.txt").write_text("# A story.\n# claims: A03 A04\n", encoding="utf-8")
    with gzip.open(folder / "traces" / "cases.jsonl.gz", "wt", encoding="utf-8") as traces:
        traces.write(json.dumps({"name": "scripted/d", "claims": ["A05"]}) + "\n" + json.dumps({"name": "scripted/e"}) + "\n")
    assert claims.find_holders(tmp_path) == [
        ("A01", "test_a", "test_b"),
        ("A02", "test_a", "test_b"),
        ("A03", "transcripts", "c"),
        ("A04", "transcripts", "c"),
        ("A05", "scripted", "d"),
    ]
    (folder / "test_a.py").write_text('@pytest.mark.claims("A01")\ndef helper():\n    pass\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"test_a\.py: a marker `claims` that is not on a test"):
        claims.find_holders(tmp_path)


def test_there_is_a_page_only_if_every_claim_is_held(tmp_path):
    rows, test = tmp_path / "claims.toml", tmp_path / "tests" / "test_a.py"
    rows.write_text('A01 = {claim = "a | b", verdict = "right", releases = "all", truth = "more"}\n', encoding="utf-8")
    test.parent.mkdir()
    test.write_text('@pytest.mark.claims("A01")\ndef test_b():\n    pass\n', encoding="utf-8")
    assert "| A01 | a \\| b | right | all | more | test_a: `test_b` |" in claims.part(rows, tmp_path)
    test.unlink()
    with pytest.raises(ValueError, match="A01: nothing holds it"):
        claims.part(rows, tmp_path)

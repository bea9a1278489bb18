"""What holds for every file of the project."""

import re
import subprocess
from pathlib import Path

import pytest

from coordinator_model.diagnosis import catalogue, client_catalogue, consumer_catalogue, offset_catalogue
from jobs.answers import questions
from jobs.common import exit_codes, settings
from jobs.common.places import SQL
from scripts.docs import pages, screenshots
from scripts.docs.findings import RULES

PROJECT = Path(__file__).resolve().parents[2]

# Assembled, so that this file passes its own test.
MACHINE_PATHS = ["/" + name for name in ("work/", "root/", "home/", "Users/")]
REGISTRY_HOSTS = ["py" + "pi.org", "python" + "hosted.org", "repo1." + "maven", "repo." + "maven.apache.org", "--" + "find-links"]


def tracked_files() -> list[Path]:
    """What git would keep: tracked, and new but not ignored. No repository (a tarball): nothing to tell."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], check=False, capture_output=True, cwd=PROJECT
    )
    return [path for name in listed.stdout.decode().split("\0") if name and (path := PROJECT / name).is_file()]


def test_no_file_names_a_machine_or_a_registry() -> None:
    forbidden = re.compile("|".join(rf"(?<![\w.<>$}}-]){re.escape(path)}" for path in MACHINE_PATHS))
    hosts = re.compile("|".join(map(re.escape, REGISTRY_HOSTS)))
    found = []
    for path in tracked_files():
        if path.is_relative_to(PROJECT / "tests" / "data"):  # recorded elsewhere, as it was
            continue
        text = path.read_bytes().decode("utf-8", errors="replace")
        found += [f"{path.relative_to(PROJECT)}: {m.group()}" for m in (forbidden.search(text), hosts.search(text)) if m]
    assert found == []


def test_the_readme_stays_short() -> None:
    assert len((PROJECT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_every_picture_is_shown_and_small() -> None:
    pictures = {path.name: path for path in (PROJECT / "docs" / "pictures").iterdir()}
    assert set(pictures) == {f"{picture.name}.png" for picture in screenshots.PICTURES}
    pages = [PROJECT / "README.md", *(PROJECT / "docs").glob("*.md")]
    shown = {name for page in pages for name in re.findall(r"!\[[^\]]+\]\((?:docs/)?pictures/([^)]+)\)", page.read_text(encoding="utf-8"))}
    assert shown == set(pictures)
    assert max(path.stat().st_size for path in pictures.values()) < screenshots.MOST_BYTES


@pytest.mark.parametrize("name", [*pages.PARTS, *pages.COUNTED])
def test_what_is_generated_in_the_pages_is_up_to_date(name: str) -> None:
    assert (PROJECT / name).read_text(encoding="utf-8") == pages.page(name), "run `make docs`"


def test_every_question_has_an_example() -> None:
    assert {path.stem for path in (SQL / "examples").iterdir()} == set(questions.names())


def test_every_code_of_a_finding_is_documented_with_its_figures() -> None:
    texts = [
        text
        for module in (catalogue, client_catalogue, consumer_catalogue, offset_catalogue)
        for text in vars(module).values()
        if isinstance(text, catalogue.Text)
    ]
    assert {text.code: text.severity for text in reversed(texts)} == {code: rule.severity for code, rule in RULES.items()}
    page = (PROJECT / "docs" / "findings.md").read_text(encoding="utf-8")
    assert sorted({name for rule in RULES.values() for name in rule.keys}) == re.findall(r"^\| `(\w+)` \| .+ \|$", page, re.MULTILINE)


def test_every_exit_code_is_documented() -> None:
    codes = sorted(value for value in vars(exit_codes).values() if isinstance(value, int))
    page = (PROJECT / "docs" / "exit-codes.md").read_text(encoding="utf-8")
    assert [int(code) for code in re.findall(r"^\| (\d+)(?: \+ N)? \|", page, re.MULTILINE)] == codes


def test_pipeline_toml_holds_the_defaults() -> None:
    assert settings.load(PROJECT / "conf" / "pipeline.toml") == settings.Settings()


def test_every_locked_package_has_a_hash() -> None:
    lines = (PROJECT / "requirements.lock").read_text().splitlines()
    pins = [index for index, line in enumerate(lines) if re.match(r"[a-z0-9]", line)]
    assert pins
    assert [lines[index] for index in pins if "--hash=sha256:" not in lines[index + 1]] == []


@pytest.mark.parametrize("name", ["log4j.properties", "log4j2.yaml"])
def test_capture_snippets_keep_every_request_of_a_group(name: str) -> None:
    text = (PROJECT / "conf" / "capture" / name).read_text()
    apis = {"JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "LEAVE_GROUP", "OFFSET_COMMIT", "TXN_OFFSET_COMMIT"}
    apis |= {"CONSUMER_GROUP_HEARTBEAT", "DELETE_GROUPS", "OFFSET_FETCH", "FIND_COORDINATOR"}
    assert {api for api in apis if re.search(rf"[\"(|]{api}[\"|)]", text)} == apis

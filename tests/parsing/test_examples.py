"""Every sentence that Kafka writes is read by its own template, whatever stands in the places of ids."""

import re
from collections import Counter
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model import events
from jobs.logs.clients.sentences import library_of
from jobs.sentences.broker import BROKER
from jobs.sentences.client import SENTENCES as CLIENTS
from jobs.sentences.client import UNSIGNED
from jobs.sentences.coordinator import REASONS, TEMPLATES
from jobs.sentences.pages import sentences
from tests.parsing.template_examples import EXAMPLES as SENTENCES

MEMBER = "client-1-0a9114c9-6472-428a-8e84-9f866df89f04"
OTHER = "client-2-827e3983-da7d-4c5e-980f-c42b6caf6699"
KINDS = {value for name, value in vars(events).items() if name.isupper() and isinstance(value, str)}
VALUES = {
    "group": "orders", "member": MEMBER, "instance": "i-1", "client": "web-1", "host": "/10.0.0.1", "generation": "5", "new_member": OTHER,
    "leader": OTHER, "state": "Stable", "count": "3", "partition": "15", "session_timeout": "8000", "rebalance_timeout": "12000",
    "reason": "not provided", "members": f"Set({MEMBER})", "groups": "orders, billing", "number": "7", "word": "share", "text": "x",
    "exceeded": "9", "plain": "up", "topic": "orders-eu", "node": "3", "nodes": "3,4", "release": "4.4.0", "build": "", "period": ".",
    "topic_id": "YWhtkeymSrON9bUsGuTeIg", "why": "; client reason: x",
}  # fmt: skip
EXAMPLES = [
    (template, example)
    for template in (*TEMPLATES, *BROKER, *REASONS, *CLIENTS)
    for example in (re.sub(r"\{(\w+)\}", lambda name: VALUES[name[1]], template.text), *SENTENCES.get(template.text, ()))
]
STARTS = [(*sentences("clients", "Starting"), "Starting; groupId: orders")]
IDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=24)


def first(templates, sentence):
    return next((t for t in templates if re.match(t.pattern, sentence)), None)


@pytest.mark.parametrize(("template", "example"), EXAMPLES, ids=[e[:60] for _, e in EXAMPLES])
def test_an_example_is_read_as_what_it_is(template, example):
    assert re.match(template.pattern, example)
    templates = next(all_ for all_ in (TEMPLATES, BROKER, REASONS, CLIENTS) if template in all_)
    assert first(templates, example).kind == template.kind


@pytest.mark.parametrize(("library", "template"), [(library, template) for library, of_one in UNSIGNED.items() for template in of_one])
def test_a_sentence_shows_whose_it_is(library, template):
    example = next(example for of_one, example in EXAMPLES + STARTS if of_one == template)
    assert library_of(f"2026-11-21 06:00:00,000 INFO x: {example}".encode()) == (library, 32)


def test_every_row_of_a_page_is_read():
    pages = [page.name.removesuffix(".md") for page in files("jobs.sentences").iterdir() if page.name.endswith(".md")]
    written = Counter(template.text for page in pages for template in sentences(page))
    assert written == Counter(template.text for template in (*TEMPLATES, *BROKER, *REASONS, *CLIENTS, STARTS[0][0]))
    rows = [row for page in pages for row in files("jobs.sentences").joinpath(f"{page}.md").read_text("utf-8").splitlines() if " | " in row]
    assert len(rows) == written.total()


def test_every_example_is_one_of_a_template():
    assert {*SENTENCES} <= {template.text for template, _ in EXAMPLES}


def test_every_template_has_a_kind_that_the_tracker_knows():
    for template in (*TEMPLATES, *BROKER, *CLIENTS):
        assert template.kind in KINDS | {""}, template.kind


@given(group=IDS)
def test_a_group_id_may_hold_any_character(group):
    for sentence, kind in (
        (f"Stabilized group {group} generation 7 with 3 members.", events.STABILIZED),
        (f"Stabilized group {group} generation 7 (__consumer_offsets-9) with 3 members", events.STABILIZED),
        (f"Member {MEMBER} in group {group} has failed, removing it from the group.", events.MEMBER_FAILED),
        (f"Group {group} with generation 4 is now empty.", events.GROUP_EMPTY),
    ):
        template = first(TEMPLATES, sentence)
        assert template.kind == kind
        found = re.match(template.pattern, sentence).groups()
        assert dict(zip(template.groups, found, strict=True))["group"] == group


@given(group=IDS, reason=IDS)
def test_a_clients_reason_may_hold_any_character(group, reason):
    sentence = (
        f"Preparing to rebalance group {group} in state PreparingRebalance with old generation 3 (__consumer_offsets-9) "
        f"(reason: Removing member {MEMBER} on LeaveGroup; client reason: {reason})"
    )
    template = first(TEMPLATES, sentence)
    found = dict(zip(template.groups, re.match(template.pattern, sentence).groups(), strict=True))
    assert (template.kind, found["generation"]) == (events.PREPARING_REBALANCE, "3")
    assert found["reason"].endswith(reason)


def test_a_member_id_of_the_consumer_protocol_may_hold_slashes_and_plus_signs():
    sentence = "[GroupId telemetry] Member PoXy/d3qQpOGkRtEOEp+tQ joins the consumer group using the consumer protocol."
    template = first(TEMPLATES, sentence)
    found = dict(zip(template.groups, re.match(template.pattern, sentence).groups(), strict=True))
    assert (template.kind, found["group"], found["member"]) == (events.CONSUMER_GROUP_LOG, "telemetry", "PoXy/d3qQpOGkRtEOEp+tQ")

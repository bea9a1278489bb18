"""Signs of life of a calm group wait in its shard; whatever else happens finds the group as if they had not waited.

Each test that feeds a shard does so twice: with heartbeats as events, and as numbers, which is what the pipeline does with plain ones.
"""

from collections import Counter
from itertools import pairwise

import pytest

from coordinator_model import events as kinds
from coordinator_model.diagnosis.incidents import HINDSIGHT_MS
from coordinator_model.events import Event
from coordinator_model.tracker import codec
from coordinator_model.tracker.quiet import calm
from coordinator_model.tracker.shard import Shard
from tests.tracker.story import GROUP, START_MS, Story, as_numbers, play, table

BATCH_MS = 3_000
SESSION_MS = 21_000


def group(last_beat_ms: int = 60_000) -> Story:
    """Two members, and their heartbeats."""
    story = Story()
    story.at(3_000).join("a-1", 1, "a-1", ("a-1", "b-1"), waited=3_000, session_timeout_ms=SESSION_MS)
    story.at(3_001).join("b-1", 1, "a-1", waited=2_900, session_timeout_ms=SESSION_MS)
    story.at(3_010).sync("a-1", 1, {"a-1": ("orders-0",), "b-1": ("orders-1",)}).sync("b-1", 1, {"b-1": ("orders-1",)})
    return story.beats(["a-1", "b-1"], 1, 4_000, last_beat_ms)


def batches(story: Story, until_ms: int, step_ms: int = BATCH_MS) -> list[list[Event]]:
    """Its events by the time at which they are read, each batch with the broker's clock."""
    ends = range(0, until_ms + step_ms, step_ms)
    within = [[event for event in story.events if begin <= event.at_ms - START_MS < end] for begin, end in pairwise(ends)]
    return [[*events, *story.heard(end)] for events, end in zip(within, ends[1:], strict=True)]


@pytest.fixture(params=["events", "numbers"], autouse=True)
def _form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "numbers":
        observe = Shard.observe
        monkeypatch.setattr(
            Shard,
            "observe",
            lambda self, events, beats=(), *rest: observe(self, *(as_numbers(events) if not beats else (events, beats)), *rest),
        )


def told(shard: Shard, story: Story, until_ms: int) -> Shard:
    """The shard after all batches, stored and read back after each."""
    for batch in batches(story, until_ms):
        shard.observe(batch)
        shard = Shard.decode(shard.encode())
    return shard


def stored(shard: Shard) -> codec.ShardState:
    """What the shard would store."""
    return codec.decode_shard(shard.encode())


def views(shard: Shard) -> dict[str, bytes]:
    """The views that the shard would store."""
    return {group_id: one.view for group_id, one in stored(shard).groups.items()}


def waiting(shard: Shard) -> list[Event]:
    """The signs that wait."""
    return calm.waiting(codec.decode_calm(stored(shard).calm[GROUP]))


def heard(shard: Shard) -> Counter[str]:
    """How many heartbeats of each member wait."""
    return Counter(sign.member_id for sign in waiting(shard) for _ in sign.beats)


def test_a_calm_group_is_not_touched_and_a_member_has_one_run() -> None:
    shard = told(Shard(), group(), 24_000)
    before, count = views(shard), heard(shard)
    shard = told(shard, Story().beats(["a-1", "b-1"], 1, 25_000, 31_000), 33_000)
    assert views(shard) == before
    assert heard(shard) - count == {"a-1": 2, "b-1": 2}
    # Signs that wait when a group becomes calm are events, whatever form later ones have.
    assert len(waiting(shard)) <= 4
    assert shard.summary() == (1, 0, 0)  # they wait for no line


def test_no_sign_waits_for_long() -> None:
    begun, longest = START_MS, 0
    shard = Shard()
    for batch in batches(group(300_000), 300_000):
        shard.observe(batch)
        calm_group = stored(shard).calm.get(GROUP)
        signs = calm.waiting(codec.decode_calm(calm_group)) if calm_group else []
        begun = min((sign.at_ms for sign in signs), default=max(event.at_ms for event in batch))
        longest = max(longest, stored(shard).known(GROUP).horizon_ms - begun)
    assert calm.KEEP_MS / 3 < longest <= calm.KEEP_MS


@pytest.mark.parametrize(
    ("_kind", "fields"),
    [
        ("of another generation", {"generation": 2}),
        ("of nobody known", {"member": "c-1"}),
        ("of a static member", {"instance_id": "i-1"}),
        ("refused", {"error": 27}),
        ("from another broker", {"broker": "broker-2"}),
    ],
)
def test_a_sign_that_may_change_something_is_handled_at_once(_kind: str, fields: dict[str, object]) -> None:
    values = {"member": "a-1", "generation": 1, "broker": "broker-1", **fields}
    story = group(31_000)
    shard = told(Shard(), story, 33_000)
    before = views(shard)
    assert waiting(shard)
    story.at(33_000).on(str(values.pop("broker"))).heartbeat(str(values.pop("member")), int(str(values.pop("generation"))), **values)
    for batch in batches(story, 39_000)[-2:]:
        shard.observe(batch)
    assert views(shard) != before


def test_a_near_miss_is_told_as_soon_as_its_broker_is_known_to_be_well() -> None:
    again_ms = 28_000 + SESSION_MS * 9 // 10
    story = group(30_000).beats(["a-1"], 1, 31_000, 70_000).at(again_ms).heartbeat("b-1", 1)
    shard = Shard()
    for batch in batches(story, 70_000):
        found = table(shard.observe(batch), "findings")
        if found:
            break
    assert [finding["code"] for finding in found] == ["HEARTBEAT_NEAR_MISS"]
    assert max(event.at_ms for event in batch) - START_MS - again_ms < HINDSIGHT_MS + shard.settings.lateness_ms + 2 * BATCH_MS


def test_a_member_that_falls_silent_is_missed_as_soon_as_if_no_sign_had_waited() -> None:
    expires_ms = 27_999 + SESSION_MS
    story = group(30_000).beats(["a-1"], 1, 31_000, expires_ms)
    story.at(expires_ms + 500).heartbeat("a-1", 1, error=27)
    story.at(expires_ms + 600).join("a-1", 2, "a-1", ("a-1",), session_timeout_ms=SESSION_MS)
    story.at(expires_ms + 610).sync("a-1", 2, {"a-1": ("orders-0", "orders-1")}).beats(["a-1"], 2, expires_ms + 1_000, 90_000)
    made = batches(story, 90_000)
    rows = play(made)
    ended = table(rows, "member_sessions")[0]
    assert (ended["member_id"], ended["end_kind"], ended["ended_at"]) == ("b-1", "SESSION_TIMEOUT", expires_ms)
    assert rows == play([[*story.events, *story.heard(90_000)]])


def test_late_lines_are_late_while_signs_wait() -> None:
    shard = told(Shard(), group(), 33_000)
    assert waiting(shard)
    late = Story().at(10_000).heartbeat("a-1", 1)
    shard.observe(late.events)
    assert shard.summary()[2] == 1


def test_what_was_handled_stays_handled_if_a_broker_comes_back_that_all_others_wait_for() -> None:
    def read_to(own_ms: int, other_ms: int) -> list[Event]:
        times = (("broker-1", own_ms), ("broker-2", other_ms))
        return [Event(b, "clock", "", 0, START_MS + ms, START_MS, kinds.FOLLOWED, beats=(0, ms // 1_000)) for b, ms in times]

    shard = Shard()
    shard.observe([*group(131_000).events, *read_to(131_000, 10_000)])  # the other broker has been away for longer than it is waited for
    handled_ms = stored(shard).groups[GROUP].horizon_ms
    shard.observe([*Story().beats(["a-1", "b-1"], 1, 131_100, 132_000).events, *read_to(132_000, 80_000)])
    assert stored(shard).groups[GROUP].horizon_ms == handled_ms
    shard.observe([*Story().at(100_500).leave("b-1").events, *read_to(133_000, 132_000)])
    assert shard.summary()[2] == 1

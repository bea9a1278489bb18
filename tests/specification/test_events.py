"""The names of what the tracker is told: they stand in the column `kind` of group_events, so they never change."""

from coordinator_model import events
from coordinator_model.events import Event

KINDS = {name: value for name, value in vars(events).items() if name.isupper() and isinstance(value, str)}


def test_a_kind_is_called_what_it_says():
    progress = {"FOLLOWED": "followed", "CLOCK": "clock", "END": "end"}
    sources = {"REQUEST_SOURCE": "request", "COORDINATOR_SOURCE": "coordinator", "CLIENT_SOURCE": "client", "CLIENTS": "clients"}
    records = {"BROKER_SOURCE": "broker", "OFFSETS_SOURCE": "offsets", "POLL_SOURCE": "poll"}
    group_types = {"SHARE": "share", "STREAMS": "streams"}
    names = {"CONNECT": "connect", "CONNECTOR": "{} (connector)", "NAMELESS_GROUP": "a group that no line names"}
    others = progress | sources | records | group_types | names
    assert {name: others.get(name, name) for name in KINDS} == KINDS
    assert others.items() <= KINDS.items()


def test_what_stands_in_the_place_of_a_broker_is_called_what_its_folder_is():
    assert {events.OFFSETS_SOURCE, events.POLL_SOURCE} == {"offsets", "poll"} == events.PSEUDO_BROKERS


def test_requests_are_named_as_their_apis():
    apis = "JOIN_GROUP SYNC_GROUP HEARTBEAT LEAVE_GROUP OFFSET_COMMIT TXN_OFFSET_COMMIT OFFSET_FETCH DELETE_GROUPS FIND_COORDINATOR"
    assert {*apis.split(), "CONSUMER_GROUP_HEARTBEAT"} <= KINDS.keys()


def test_what_is_missing_says_so_by_its_type():
    missing = {str: "", int: -1, tuple: (), bool: False}
    means_something = {"subscribed_regex", "owned", "offsets"}  # where they are empty
    for name, default in Event._field_defaults.items():
        if name in means_something:
            assert default is None, name
            continue
        assert default == (0 if name == "error_code" else missing[type(default)]), name
    needed = [name for name in Event._fields if name not in Event._field_defaults]
    assert needed == ["broker", "source", "origin", "position", "at_ms", "received_ms", "kind"]

"""The shipper's state: it is read as it was saved, and refused if it is not this shipper's."""

import json

import pytest

from jobs.common.errors import UserError
from jobs.kafka.ship_state import ShipState, ShipTarget
from tests.kafka.shipments import TARGET, Topic, ship
from tests.logs.log_makers import coordinator, write


def test_a_state_is_read_as_it_was_saved(tmp_path):
    write(tmp_path / "in/server.log", [coordinator(i) for i in range(9)])
    ship(tmp_path, Topic())
    with ShipState(tmp_path / "state.json", TARGET) as state:
        (stream,) = state.load()
        assert (stream.mark.line, stream.shipped, stream.label.startswith("server@")) == (9, 9, True)
        state.save([stream])
        before = (tmp_path / "state.json").read_text()
        (again,) = state.load()
        assert (again.mark, again.label, again.fingerprint) == (stream.mark, stream.label, stream.fingerprint)
    assert json.loads(before)["version"] == 1
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"version":1,"target":{"cluster":"c"},"streams":[]}', "\x00"])
def test_a_state_that_is_none(tmp_path, text):
    (tmp_path / "state.json").write_text(text)
    with ShipState(tmp_path / "state.json", TARGET) as state, pytest.raises(UserError, match="not the state of a shipper"):
        state.load()


def test_a_state_of_something_else(tmp_path):
    path = tmp_path / "state.json"
    with ShipState(path, TARGET) as state:
        state.save([])
    with ShipState(path, ShipTarget("c", "b2", "t")) as state, pytest.raises(UserError, match="broker b, topic t; give another file"):
        state.load()
    path.write_text(path.read_text().replace('"version":1', '"version":9'))
    with ShipState(path, TARGET) as state, pytest.raises(UserError, match="version 9"):
        state.load()


def test_two_shippers_with_one_state(tmp_path):
    with ShipState(tmp_path / "s", TARGET), pytest.raises(UserError, match="another shipper"), ShipState(tmp_path / "s", TARGET):
        pass
    with ShipState(tmp_path / "s", TARGET):
        pass


def test_a_shipper_that_has_ended_leaves_its_state_alone(tmp_path):
    """And takes away no lock that another one has by then."""
    with ShipState(tmp_path / "s", TARGET) as first:
        assert (tmp_path / "s.lock").exists()
    assert list(tmp_path.iterdir()) == []
    with ShipState(tmp_path / "s", TARGET), pytest.raises(UserError, match="another shipper"):
        first.__enter__()
    assert list(tmp_path.iterdir()) == []


def test_a_state_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be written"), ShipState(tmp_path / "file" / "s", TARGET):
        pass

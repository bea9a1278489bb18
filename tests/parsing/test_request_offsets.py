"""The offsets that requests commit and fetch."""

from __future__ import annotations

from coordinator_model import events as e
from jobs.parsing.request_log import row
from tests.parsing.test_requests import MEMBER, line


def test_a_commit_is_accepted_if_the_answer_says_so_of_its_partition():
    """A broker answers in an order of its own: refused topics before or after the others, more than four partitions by their hashes."""
    asked = [("a", 0, 5), ("a", 1, 6), ("b", 0, 7), ("b", 3, 8)]
    answered = [("b", 3, 0), ("b", 0, 3), ("a", 1, 0), ("a", 0, 0)]
    topics = [{"name": name, "partitions": [{"partitionIndex": n, "committedOffset": offset}]} for name, n, offset in asked]
    told = [{"name": name, "partitions": [{"partitionIndex": n, "errorCode": error}]} for name, n, error in answered]
    found = row(line(e.OFFSET_COMMIT, 8, {**MEMBER, "topics": topics}, {"topics": told}), 0)
    assert (found["committed"], found["error_code"], found["member_count"]) == ("a-0=5,a-1=6,b-3=8", 3, 4)

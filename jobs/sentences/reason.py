"""Why a coordinator began a rebalance: the member and instance that the `reason` of a `Preparing to rebalance` line names, Kafka 2.1 to 4.4.

The event keeps the text itself. An unknown reason names no member and is no damage, because releases change the wording.
The first pattern that fits decides. Java puts a period after some reasons.
"""

from __future__ import annotations

from typing import Final

from jobs.sentences.language import Template


def _reason(text: str) -> Template:
    return Template("REASON", "", text)


REASONS: Final = (
    _reason("Adding new member {member} with group instance id {instance}{why}"),
    _reason("Adding new member {member} with group instanceid {instance}"),
    _reason("Adding new member {member}"),
    _reason("removing member {member} on heartbeat expiration{period}"),
    _reason("explicit `LeaveGroup` request for ({members}) members{period}"),
    _reason("Removing member {member} on LeaveGroup{why}"),
    _reason("removing member {member} on LeaveGroup"),
    _reason("Updating metadata for static member {member} with instance id {instance}{why}"),
    _reason("Updating metadata for member {member} during {state}{why}"),
    _reason("Updating metadata for member {member}"),
    _reason("Leader {member} re-joining group during {state}{why}"),
    _reason("leader {member} re-joining group during {state}"),
    _reason("Member {member} is joining group during {state}; client reason: {text}"),
    _reason("Member {member} joining group during {state}{why}"),
    _reason("Group's selectedProtocol will change because static member {member} with instance id {instance} joined with change of protocol{why}"),
    _reason("Removing {members} on pending sync request expiration"),
    _reason("Error {word} when storing group assignment{text}during SyncGroup (member: {member}){period}"),
    _reason("{text}rror {text}when storing group assignment{text}during SyncGroup (member: {member}){period}"),
)  # fmt: skip

"""Why a coordinator began a rebalance: the member and instance that the `reason` of a `Preparing to rebalance` line names, Kafka 2.1 to 4.4.

The event keeps the text itself. An unknown reason names no member and is no damage, because releases change the wording.
The first pattern that fits decides. Java puts a period after some reasons.
"""

from __future__ import annotations

from typing import Final

from jobs.parsing.templates.classic import M, N
from jobs.parsing.templates.language import Template


def _reason(text: str, *examples: str) -> Template:
    return Template("REASON", "", text, examples)


REASONS: Final = (
    _reason("Adding new member {member} with group instance id {instance}; client reason: {text}",
            f"Adding new member {M} with group instance id None; client reason: not provided",
            f"Adding new member {M} with group instance id null; client reason: need to re-join with the given member-id: {M}"),
    _reason("Adding new member {member} with group instance id {instance}", f"Adding new member {M} with group instance id Some(i)"),
    _reason("Adding new member {member} with group instanceid {instance}", f"Adding new member {M} with group instanceid None"),
    _reason("Adding new member {member}"),
    _reason("removing member {member} on heartbeat expiration."),
    _reason("removing member {member} on heartbeat expiration"),
    _reason("explicit `LeaveGroup` request for ({members}) members.", f"explicit `LeaveGroup` request for ({M}, {N}) members."),
    _reason("explicit `LeaveGroup` request for ({members}) members", f"explicit `LeaveGroup` request for ({M}) members"),
    _reason("Removing member {member} on LeaveGroup; client reason: {text}",
            f"Removing member {M} on LeaveGroup; client reason: the consumer is being closed"),
    _reason("Removing member {member} on LeaveGroup"),
    _reason("removing member {member} on LeaveGroup"),
    _reason("Updating metadata for static member {member} with instance id {instance}; client reason: {text}",
            f"Updating metadata for static member {M} with instance id i 1; client reason: not provided"),
    _reason("Updating metadata for static member {member} with instance id {instance}"),
    _reason("Updating metadata for member {member} during {state}; client reason: {text}",
            f"Updating metadata for member {M} during Stable; client reason: subscription has changed"),
    _reason("Updating metadata for member {member} during {state}"),
    _reason("Updating metadata for member {member}"),
    _reason("Leader {member} re-joining group during {state}; client reason: {text}",
            f"Leader {M} re-joining group during Stable; client reason: rebalance enforced by user"),
    _reason("Leader {member} re-joining group during {state}"),
    _reason("leader {member} re-joining group during {state}"),
    _reason("Member {member} is joining group during {state}; client reason: {text}"),
    _reason("Member {member} joining group during {state}; client reason: {text}"),
    _reason("Member {member} joining group during {state}"),
    _reason("Group's selectedProtocol will change because static member {member} with instance id {instance} joined with change of protocol; client reason: {text}"),
    _reason("Group's selectedProtocol will change because static member {member} with instance id {instance} joined with change of protocol"),
    _reason("Removing {members} on pending sync request expiration",
            f"Removing Set({M}) on pending sync request expiration",
            f"Removing [{M}, {N}] on pending sync request expiration"),
    _reason("{text}rror {text}when storing group assignment{text}during SyncGroup (member: {member}).",
            f"Error NOT_COORDINATOR when storing group assignmentduring SyncGroup (member: {M})."),
    _reason("{text}rror {text}when storing group assignment{text}during SyncGroup (member: {member})",
            f"error when storing group assignment during SyncGroup (member: {M})"),
)  # fmt: skip

"""What packets hold as events only, whatever form the heartbeats have in them."""

import pandas as pd

from coordinator_model.events import Event
from jobs.pipeline.tracking.packets import unpacked


def events_in(packets: pd.DataFrame) -> list[Event]:
    """The events of packets, and the plain heartbeats as such."""
    events, beats, _, _ = unpacked([packets])
    return [*events, *(run.event() for group in beats for run in group.runs())]

"""What stands around a broker's line: what containers and log shippers add to it, and other log4j patterns."""

from jobs.logs.envelopes.patterns import layouts_named
from jobs.logs.envelopes.unwrap import Unwrapper, unwrapped

__all__ = ["Unwrapper", "layouts_named", "unwrapped"]

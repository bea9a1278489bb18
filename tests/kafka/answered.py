"""Answers of an admin client."""

from concurrent.futures import Future


def done(result):
    """What has been answered; an exception was the answer."""
    future = Future()
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
    return future

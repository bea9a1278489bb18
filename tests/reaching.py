"""How tests reach an object store."""

from contextlib import contextmanager

import pytest

from jobs.common import store_clients
from tests.lab.local_store import ACCESS_KEY, SECRET_KEY


@contextmanager
def reached(store, endpoint=""):
    """Lets this process reach a store as it reaches any: by its environment. `endpoint`: that of a proxy before the store."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in store.environment(endpoint).items():
            patch.setenv(name, value)
        patch.setenv(store_clients.PATIENCE, "")
        patch.delenv(store_clients.PATIENCE)  # who works in a lakehouse sets it: afterwards it is as it was before
        store_clients.forget()
        yield
    store_clients.forget()


@contextmanager
def checkpoints_in(store, endpoint, spark, folder):
    """Lets a session that runs, this process and its workers work in a store, with the settings of a session that was started for it.

    The JVM alone has to find the credentials: in a profile, as on a machine where a person works.
    """
    from jobs.pipeline import session

    profiles, context = folder / "credentials", spark.sparkContext
    profiles.write_text(f"[default]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n")
    java, known, before = context._jvm.java.lang.System, dict(context.environment), dict(spark.conf.getAll)
    with reached(store, endpoint):
        settings = {**session._CREDENTIALS, **session.S3, **store_clients.spark_settings()}
        settings = {name.removeprefix("spark.hadoop."): value for name, value in settings.items()}
        java.setProperty("aws.sharedCredentialsFile", str(profiles))
        context.environment.update(store.environment(endpoint))
        for name, value in settings.items():
            spark.conf.set(name, value)
        try:
            yield
        finally:
            for name in settings:
                spark.conf.set(name, before[name]) if name in before else spark.conf.unset(name)
            context.environment.clear()
            context.environment.update(known)
            java.clearProperty("aws.sharedCredentialsFile")

"""Where the clients of object stores find their settings."""

import pytest

from jobs.common import store_clients

CREDENTIALS = "[default]\naws_access_key_id = of-default\naws_secret_access_key = s\n\n[team]\naws_access_key_id = of-team\n"
CONFIG = "[default]\nregion = eu-north-1\n\n[profile team]\nregion = eu-south-2\nendpoint_url = https://store.example.com\n"


@pytest.fixture
def profiles(tmp_path, monkeypatch):
    """AWS's files, and an environment that says nothing else."""
    for variable, text in (("AWS_SHARED_CREDENTIALS_FILE", CREDENTIALS), ("AWS_CONFIG_FILE", CONFIG)):
        (tmp_path / variable).write_text(text)
        monkeypatch.setenv(variable, str(tmp_path / variable))
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ENDPOINT_URL", "AWS_PROFILE", "RUST_LOG"):
        monkeypatch.setenv(variable, "")  # so that it is restored afterwards
        monkeypatch.delenv(variable)
    return monkeypatch


def _told():
    store_clients.use_profile()
    return [store_clients.os.environ.get(name) for name in ("AWS_ACCESS_KEY_ID", "AWS_REGION", "AWS_ENDPOINT_URL")]


@pytest.mark.usefixtures("profiles")
def test_the_default_profile_is_used():
    assert _told() == ["of-default", "eu-north-1", None]


def test_another_profile_is_used_if_it_is_named(profiles):
    profiles.setenv("AWS_PROFILE", "team")
    assert _told() == ["of-team", "eu-south-2", "https://store.example.com"]


def test_the_environment_comes_first(profiles):
    profiles.setenv("AWS_ACCESS_KEY_ID", "of-environment")
    assert _told() == ["of-environment", None, None]

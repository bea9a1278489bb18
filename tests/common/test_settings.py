from pathlib import Path

import pytest

from jobs.common.settings import Settings, SettingsError, load


def test_the_shipped_configuration_file_says_the_defaults():
    assert load(Path("conf/pipeline.toml")) == Settings()


def test_the_command_line_goes_before_the_file(tmp_path):
    file = tmp_path / "pipeline.toml"
    file.write_text('[pipeline]\ntimezone = "Europe/Berlin"\nlateness_ms = 10\n[timezones]\n"a b" = "Asia/Tokyo"\n')
    settings = load(file, timezones=["America/New_York", "x=y=UTC"], lateness_ms=20, shards=None)
    assert settings.lateness_ms == 20
    assert settings.shards == 50
    assert settings.timezone == "America/New_York"
    assert dict(settings.timezones) == {"a b": "Asia/Tokyo", "x=y": "UTC"}


@pytest.mark.parametrize(
    ("toml", "named"),
    [
        ("[pipeline]\nlatenes_ms = 1\n", "latenes_ms"),
        ("[pipe]\n", "pipe"),
        ("pipeline = 3\n", "`$.pipeline`"),
        ("[pipeline]\nlateness_ms = -1\n", "lateness_ms"),
        ("[pipeline]\nshards = 0\n", "shards"),
        ("[pipeline]\nshards = true\n", "shards"),
        ('[pipeline]\nslice_lines = "many"\n', "slice_lines"),
        ('[pipeline]\ntimezone = "Berlin"\n', "Berlin"),
        ('[pipeline]\nkafka_version = "newest"\n', "newest"),
        ("[pipeline]\nkafka_version = 3.9\n", "kafka_version"),
        ("[timezones]\nc1 = 3\n", "c1"),
        ("[log_formats]\nours = 3\n", "log_formats"),
        ('[timezones]\nc1 = "../../etc/passwd"\n', "c1"),
        ("[alerts]\nreceivers = 3\n", "receivers"),
        ("[alerts.receivers]\noncall = 3\n", "receivers"),
        ("[alerts]\nmax_age = 3\n", "max_age"),
        ('[alerts]\ndashboard_url = "dash:80"\n', "dashboard_url"),
        ('[alerts.receivers."../x"]\nformat = "json"\nurl_file = "f"\n', "../x"),
        ('[alerts.receivers.a]\nformat = "smoke signals"\nurl_file = "f"\n', "format"),
        ('[alerts.receivers.a]\nformat = "json"\n', "url_file"),
        ('[alerts.receivers.a]\nformat = "json"\nurl = "http://h"\nurl_file = "f"\n', "`url`"),
        ('[alerts.receivers.a]\nformat = "json"\nurl_file = "f"\nseverity = "FATAL"\n', "severity"),
        ("not toml", "TOML"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line_that_names_what_is_wrong(tmp_path, toml, named):
    file = tmp_path / "pipeline.toml"
    file.write_text(toml)
    with pytest.raises(SettingsError) as error:
        load(file)
    assert named in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"nowhere\.toml"):
        load(tmp_path / "nowhere.toml")


@pytest.mark.parametrize("zone", ["=UTC", "Mars/Olympus", "c=", ""])
def test_a_wrong_zone_is_refused(zone):
    with pytest.raises(SettingsError):
        load(timezones=[zone])

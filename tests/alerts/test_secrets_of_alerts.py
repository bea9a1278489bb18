"""URLs and tokens of receivers stay in their files: no message, no log, no table and no process list has them."""

import pytest

from jobs.alerts.messages import Message
from jobs.alerts.posting import Webhook
from jobs.cli.entry import main
from jobs.common.alert_settings import ReceiverSettings
from jobs.common.errors import SettingsError
from jobs.common.settings import Settings, load
from jobs.lakehouse.folder import Lakehouse, check_layout
from tests.alerts.webhooks import SECRET, finding, found, hook, secret_file
from tests.lakehouse.rows import empty_lakehouse

TOKEN = "tok-Wq7xT2m9Lr4v"
EMPTY = Message(b"{}", "")
PIECES = (*SECRET.split("/"), TOKEN)


@pytest.fixture
def received():
    with hook() as server:
        yield server


def webhook(url_file, **values):
    return Webhook(ReceiverSettings("oncall", "json", str(url_file), timeout_ms=500, **values))


def check_untold(text):
    assert [piece for piece in PIECES if piece[:6].lower() in text.lower()] == []


def test_a_sample_is_posted_and_its_fate_told(received, tmp_path, capfd):
    file = secret_file(tmp_path, received.url)
    assert main(["alert", "--test", "--alert", f"json={file}", "--dashboard-url", "http://dash"]) == 0
    assert capfd.readouterr().out.startswith("json: delivered in ")
    (told,) = received.findings()
    assert (told["code"], told["link"][:18]) == ("TEST", "http://dash/group?")
    assert received.got[0][0] == f"/services/{SECRET}"
    received.answers = [(404, {}, f"Cannot POST /services/{SECRET}".encode())]
    assert main(["alert", "--test", "--alert", f"json={file}"]) == 1
    out, err = capfd.readouterr()
    assert (out, err) == ("", "rebalance: json: not delivered: HTTP 404 Not Found\n")


def test_what_the_receiver_says_is_shown_unless_it_repeats_a_secret(received, tmp_path):
    token_file = secret_file(tmp_path, TOKEN, "token")
    asked = webhook(secret_file(tmp_path, received.url), token_file=str(token_file))
    for said, shown in (
        (b"channel_is_archived", ": channel_is_archived"),
        (f"no hook {PIECES[2].upper()}".encode(), ""),
        (b"no hook " + PIECES[2][3:12].encode(), ""),
        (b"Bearer " + TOKEN.encode(), ""),
        (b"\x1b[31mred", ": \\x1b[31mred"),
        (b"", ""),
    ):
        received.answers = [(403, {}, said)]
        outcome = asked.post(EMPTY)
        assert outcome.text == f"HTTP 403 Forbidden{shown}"
        assert not outcome.delivered
    assert received.got[0][1]["Authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize(
    "url", [f"http://127.0.0.1:1/{SECRET}", f"http://no-such-host.invalid/{SECRET}", f"https://127.0.0.1:PORT/{SECRET}"]
)
def test_a_receiver_that_cannot_be_reached_is_named_without_its_address(received, tmp_path, url):
    outcome = webhook(secret_file(tmp_path, url.replace("PORT", str(received.port)))).post(EMPTY)
    assert not outcome.delivered
    assert outcome.reason == "connection"
    check_untold(outcome.text)


@pytest.mark.parametrize(
    "url",
    ["", SECRET, f"ftp://host/{SECRET}", f"file:///{SECRET}", f"http://h/{SECRET}\nmore", f"http://h:x/{SECRET}", f"http://u:{TOKEN}@h/"],
)
def test_a_file_without_a_usable_url_is_refused_unshown(tmp_path, url):
    with pytest.raises(SettingsError) as error:
        webhook(secret_file(tmp_path, url)).address()
    assert "oncall" in str(error.value)
    check_untold(str(error.value))


def test_a_file_that_others_may_read_is_refused(tmp_path):
    file = secret_file(tmp_path, f"http://h/{SECRET}")
    file.chmod(0o644)
    with pytest.raises(SettingsError, match=r"can be read by any user of this machine: chmod 600"):
        webhook(file).address()
    with pytest.raises(SettingsError, match=r"cannot read .*nowhere"):
        webhook(tmp_path / "nowhere").address()


def test_a_replaced_file_counts_from_the_next_post_on(received, tmp_path):
    file = secret_file(tmp_path, "http://127.0.0.1:1/")
    asked = webhook(file)
    assert not asked.post(EMPTY).delivered
    file.write_text(received.url)
    assert asked.post(EMPTY).delivered
    file.unlink()
    assert asked.post(EMPTY).reason == "settings"


def test_settings_and_commands_do_not_show_them(received, tmp_path, capfd):
    lake = empty_lakehouse(tmp_path / "lake")
    check_layout(Lakehouse(lake), Settings())
    found(lake, finding())
    config = tmp_path / "pipeline.toml"
    token = secret_file(tmp_path, TOKEN, "token")
    config.write_text(
        f'[alerts.receivers.oncall]\nformat = "alertmanager"\nurl_file = "{secret_file(tmp_path, received.url)}"\ntoken_file = "{token}"\n'
    )
    check_untold(repr(load(config)))
    assert main(["alert", "--dry-run", "--lakehouse", str(lake), "--config", str(config)]) == 0
    assert main(["alert", "--once", "--lakehouse", str(lake), "--config", str(config)]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("# oncall (alertmanager): 1 of 1 finding in 1 message\n[")
    check_untold(out + err)
    assert received.got == []
    check_untold("".join(path.read_text("latin-1") for path in lake.rglob("*") if path.is_file()))


@pytest.mark.parametrize("alert", ["slack", "slack=", "mail=f", "=f"])
def test_a_wrong_receiver_on_the_command_line(alert):
    with pytest.raises(SettingsError, match="write FORMAT=FILE"):
        load(alerts=[alert])


def test_what_the_command_needs(tmp_path, capfd):
    file = secret_file(tmp_path, "http://127.0.0.1:1/")
    for words, said in (
        (["--test"], "no receiver"),
        (["--alert", f"json={file}"], "give --lakehouse"),
        (["--alert", f"json={file}", "--lakehouse", str(tmp_path / "none")], "no lakehouse"),
        (["--alert", f"json={file}", "--lakehouse", str(tmp_path / "none"), "--dry-run"], "no findings"),
        (["--alert", f"json={file}", "--alert", f"json={file}", "--test"], "receiver json already"),
    ):
        assert main(["alert", *words]) == 2
        assert said in capfd.readouterr().err

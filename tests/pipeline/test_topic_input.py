"""jobs/pipeline/topic_input.py: settings of a client in the words of librdkafka and of Java."""

import pytest

from jobs.common.errors import UserError
from jobs.pipeline.topic_input import java_settings


def test_settings_of_librdkafka_in_javas_words(tmp_path):
    path = tmp_path / "client.properties"
    (tmp_path / "cert.pem").write_text("CERTIFICATE")
    (tmp_path / "key.pem").write_text("KEY")
    path.write_text(
        'security.protocol=SASL_SSL\nsasl.mechanisms=SCRAM-SHA-512\nsasl.username=reader\nsasl.password=a"b\\c\nssl.ca.location=/ca.pem\n'
        f"ssl.certificate.location={tmp_path}/cert.pem\nssl.key.location={tmp_path}/key.pem\nssl.key.password=k\nlinger.ms=5\n"
    )
    path.chmod(0o600)
    assert java_settings(path) == {
        "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": 'org.apache.kafka.common.security.scram.ScramLoginModule required username="reader" password="a\\"b\\\\c";',
        "ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca.pem", "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "CERTIFICATE", "ssl.keystore.key": "KEY", "ssl.key.password": "k",
    }  # fmt: skip
    path.write_text("sasl.mechanisms=GSSAPI\nsasl.username=u\n")
    with pytest.raises(UserError, match="known are PLAIN"):
        java_settings(path)
    path.write_text(f"ssl.certificate.location={tmp_path}/cert.pem\n")
    with pytest.raises(UserError, match=r"needs ssl\.key\.location"):
        java_settings(path)
    path.write_text("sasl.jaas.config=mine;\nsasl.mechanism=OAUTHBEARER\n")
    assert java_settings(path) == {"sasl.jaas.config": "mine;", "sasl.mechanism": "OAUTHBEARER"}
    assert java_settings(None) == {}

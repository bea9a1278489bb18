"""Workers of Connect, instances of Kafka Streams and share consumers, beside a broker: real ones, of Kafka 4.2.

Workers are processes of Connect's own program. The others live in a JVM that Py4J drives, as the Java consumers of the demo do.
"""

import json
import subprocess
import threading
import urllib.request
from urllib.error import URLError

from py4j.java_gateway import GatewayParameters, JavaGateway

from jobs.common.java import java_program
from jobs.common.places import kafka_jar_dir
from jobs.demo.bound import bound
from jobs.demo.java_consumer import gateway_jar
from jobs.demo.local_broker import free_port

SESSION_MS = 6_000
SESSION = {"session.timeout.ms": str(SESSION_MS), "heartbeat.interval.ms": "1000"}
DELAY_MS = 5_000
"""scheduled.rebalance.max.delay.ms of the workers."""
_STRINGS = "org.apache.kafka.connect.storage.StringConverter"
_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
_OF_BYTES = "org.apache.kafka.common.serialization."


def _java(*arguments, heap, **streams):
    options = (f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC")
    classes = f"{kafka_jar_dir('clients')}/*:{gateway_jar()}"
    return subprocess.Popen(bound(java_program(), *options, "-cp", classes, *arguments), stderr=subprocess.DEVNULL, **streams)


class Worker:
    """A worker of a Connect cluster, by its REST interface."""

    def __init__(self, bootstrap, group, client_id, folder):
        self.folder = folder
        self.address = f"127.0.0.1:{free_port()}"
        storage = {f"{name}.storage.topic": f"{group}-{name}" for name in ("config", "offset", "status")}
        storage |= {f"{name}.storage.replication.factor": "1" for name in ("config", "offset", "status")}
        storage |= {f"{name}.storage.partitions": "1" for name in ("offset", "status")}
        properties = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": client_id,
            "listeners": f"http://{self.address}",
            "key.converter": _STRINGS,
            "value.converter": _STRINGS,
            "plugin.discovery": "service_load",
            "scheduled.rebalance.max.delay.ms": str(DELAY_MS),
            **storage,
            **SESSION,
        }
        file = folder / f"{client_id}.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()), encoding="utf-8")
        self._process = _java("org.apache.kafka.connect.cli.ConnectDistributed", str(file), heap="200m", stdout=subprocess.DEVNULL)

    def create_sink(self, name, topic, tasks):
        """Creates a connector that writes a topic into a file; whether the worker was ready to."""
        config = {"connector.class": _SINK, "topics": topic, "file": str(self.folder / name), "tasks.max": str(tasks)}
        return self._ask("/connectors", {"name": name, "config": config}) is not None

    def running(self, name):
        """How many running tasks of a connector each worker has, by its address."""
        tasks = (self._ask(f"/connectors/{name}/status") or {"tasks": []})["tasks"]
        where = [task["worker_id"] for task in tasks if task["state"] == "RUNNING"]
        return {worker: where.count(worker) for worker in where}

    def kill(self):
        self._process.kill()
        self._process.wait()

    def _ask(self, path, body=None):
        """The answer; None where the worker does not listen yet, or rebalances."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://{self.address}{path}", data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except (URLError, ConnectionError):
            return None


class Clients:
    """A JVM with instances of Kafka Streams and share consumers."""

    def __init__(self, bootstrap, folder):
        self._bootstrap, self._folder = bootstrap, folder
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = _java("py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0", heap="96m", **streams)
        output = self._process.stdout
        port, token = int(output.readline()), output.readline().decode().strip()
        threading.Thread(target=output.read, daemon=True).start()
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
        self._jvm = self._gateway.jvm

    def streams(self, application, client_id, source, target, *, protocol):
        """Starts an instance that copies a topic."""
        of_protocol = SESSION if protocol == "classic" else {"group.protocol": protocol}
        serde = f"{_OF_BYTES}Serdes$ByteArraySerde"
        settings = {"application.id": application, "client.id": client_id, "state.dir": str(self._folder / client_id)}
        settings |= {"default.key.serde": serde, "default.value.serde": serde}
        package = self._jvm.org.apache.kafka.streams
        builder = package.StreamsBuilder()
        builder.stream(source).to(target)
        instance = package.KafkaStreams(builder.build(), self._properties(settings | of_protocol))
        instance.start()
        return instance

    def share(self, group, client_id, topic):
        """A share consumer that has subscribed."""
        bytes_of = {f"{part}.deserializer": f"{_OF_BYTES}ByteArrayDeserializer" for part in ("key", "value")}
        package = self._jvm.org.apache.kafka.clients.consumer
        consumer = package.KafkaShareConsumer(self._properties({"group.id": group, "client.id": client_id, **bytes_of}))
        consumer.subscribe([topic])
        return consumer

    def poll(self, consumer):
        """One poll, in which the consumer joins, too."""
        consumer.poll(self._jvm.java.time.Duration.ofMillis(100))

    def kill(self):
        self._process.kill()
        self._process.wait()
        self._gateway.close()

    def _properties(self, settings):
        properties = self._jvm.java.util.Properties()
        for name, value in {"bootstrap.servers": self._bootstrap, **settings}.items():
            properties.setProperty(name, value)
        return properties

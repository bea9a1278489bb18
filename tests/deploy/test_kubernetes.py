"""conf/deploy/kubernetes: the manifests follow Kubernetes' API, and what they start exists."""

from copy import deepcopy

import pytest

from jobs.kafka.finder import Pods
from tests.deploy.settings import DEPLOY, documents, options_of, problems, schema

SHIPPER = documents(DEPLOY / "kubernetes" / "shipper.yaml")
PIPELINE = documents(DEPLOY / "kubernetes" / "pipeline.yaml")
DEFINITIONS = {
    "DaemonSet": "io.k8s.api.apps.v1.DaemonSet",
    "StatefulSet": "io.k8s.api.apps.v1.StatefulSet",
    "Service": "io.k8s.api.core.v1.Service",
}


def pod_of(workload):
    return workload["spec"]["template"]["spec"]


@pytest.mark.parametrize("manifest", [*SHIPPER, *PIPELINE], ids=lambda manifest: manifest["kind"])
def test_a_manifest_follows_the_api(manifest):
    against = schema("kubernetes-1.34.json", DEFINITIONS[manifest["kind"]])
    assert problems(manifest, against) == []
    wrong = deepcopy(manifest)
    wrong["spec"]["selectro"] = {}
    assert problems(wrong, against)


@pytest.mark.parametrize("workload", [SHIPPER[0], PIPELINE[0]], ids=["shipper", "pipeline"])
def test_what_belongs_together_has_one_name(workload):
    """The API server checks these, the schema does not."""
    spec, pod = workload["spec"], pod_of(workload)
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"] == workload["metadata"]["labels"]
    volumes = {volume["name"] for volume in pod["volumes"]} | {claim["metadata"]["name"] for claim in spec.get("volumeClaimTemplates", ())}
    (container,) = pod["containers"]
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes


def test_the_shipper_ships_the_pods_of_the_node():
    (container,) = pod_of(SHIPPER[0])["containers"]
    options = options_of(container["args"])
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    assert mounts[str(options["inputs"][0])]["readOnly"]
    assert str(options["state"].parent) in mounts
    assert not mounts[str(options["state"].parent)].get("readOnly")
    assert str(options["config"].parent) in mounts
    pods = Pods.parse(options["pods"])
    assert pods.pod_of("kafka_production-kafka-2_2f3c9a52-6f0e-4a3e-9c39-1f1d2c3b4a5e") == "production-kafka-2"
    assert pods.pod_of("kafka_production-entity-operator-7d9c_2f3c9a52-6f0e-4a3e-9c39-1f1d2c3b4a5e") is None


def test_the_pipeline_works_on_its_volume_and_serves_its_metrics():
    (container,) = pod_of(PIPELINE[0])["containers"]
    (lakehouse,) = [variable["value"] for variable in container["env"] if variable["name"] == "REBALANCE_LAKEHOUSE"]
    options = options_of([*container["args"], f"--lakehouse={lakehouse}"])
    assert lakehouse.startswith(f"{container['volumeMounts'][0]['mountPath']}/")
    assert options["metrics_host"] == "0.0.0.0"
    (port,) = container["ports"]
    (service,) = [manifest for manifest in PIPELINE if manifest["kind"] == "Service"]
    assert (options["metrics_port"], port["name"]) == (port["containerPort"], service["spec"]["ports"][0]["targetPort"])
    assert service["spec"]["selector"] == PIPELINE[0]["metadata"]["labels"]
    assert service["metadata"]["name"] == PIPELINE[0]["spec"]["serviceName"]


@pytest.mark.parametrize("probe", ["startupProbe", "livenessProbe", "readinessProbe"])
def test_probes_ask_a_command_that_exists(probe):
    """What only people can mend must not restart the pod."""
    (container,) = pod_of(PIPELINE[0])["containers"]
    program, *command = container[probe]["exec"]["command"]
    assert program == "rebalance"
    assert options_of([*command, "--lakehouse=lake"])["process_only"] == (probe != "readinessProbe")

"""The page about Kubernetes: what its manifests set is what resolvers read, and train.py trains."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from laminar.distribute import ClusterSpec, certs, resolvers
from tests.distribute.cluster.local_cluster import free_addresses

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "guide" / "kubernetes.md").read_text()
PROGRAM = re.findall(r"^```py\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)[0]


def manifests() -> dict[str, Any]:
    """What the manifests of the page describe, by kind."""
    yaml = pytest.importorskip("yaml")
    blocks = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return {found["kind"]: found for block in blocks for found in yaml.safe_load_all(block)}


def container(job: Any) -> Any:
    """The one container of a Job's pods."""
    (found,) = job["spec"]["template"]["spec"]["containers"]
    return found


def test_pods_of_the_job_know_each_other() -> None:
    found = manifests()
    job, service = found["Job"], found["Service"]
    name, count = job["metadata"]["name"], job["spec"]["completions"]
    assert job["spec"]["completionMode"] == "Indexed"
    assert job["spec"]["parallelism"] == count
    assert job["spec"]["template"]["spec"]["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == {"job-name": name}
    assert service["spec"]["clusterIP"] == "None"
    (call,) = re.findall(r"KubernetesResolver\((.*?)\)", PROGRAM)
    assert call == f'count={count}, service="workers", jobs={{"ps": 1, "worker": 3}}'
    seen = []
    for i in range(count):
        environ = {"JOB_COMPLETION_INDEX": str(i), "HOSTNAME": f"{name}-{i}"}
        resolver = resolvers.KubernetesResolver(
            count, service["metadata"]["name"], {"ps": 1, "worker": 3}, environ=environ
        )
        own = resolver.cluster_spec().task_address(resolver.task_type, resolver.task_id)
        assert own == f"{name}-{i}.workers:{container(job)['ports'][0]['containerPort']}"
        seen.append((resolver.task_type, resolver.cluster_spec()))
    assert {spec for _, spec in seen} == {seen[0][1]}
    first, last = map(int, job["spec"]["successPolicy"]["rules"][0]["succeededIndexes"].split("-"))
    assert [i for i, (kind, _) in enumerate(seen) if kind == "worker"] == [*range(first, last + 1)]


def test_pods_of_the_jobset_know_each_other() -> None:
    jobset = manifests()["JobSet"]
    name, spec = jobset["metadata"]["name"], jobset["spec"]
    assert spec["successPolicy"]["targetReplicatedJobs"] == ["worker"]
    clusters, places = set(), set()
    for job in spec["replicatedJobs"]:
        template = job["template"]
        count = template["spec"]["completions"]
        assert (job["replicas"], template["spec"]["parallelism"]) == (1, count)
        index, config = container(template)["env"]
        path = index["valueFrom"]["fieldRef"]["fieldPath"]
        assert path == "metadata.annotations['batch.kubernetes.io/job-completion-index']"
        for i in range(count):
            text = config["value"].replace(f"$({index['name']})", str(i))
            resolver = resolvers.resolve(environ={config["name"]: text})
            assert (resolver.task_type, resolver.task_id) == (job["name"], i)
            own = resolver.cluster_spec().task_address(job["name"], i)
            port = container(template)["ports"][0]["containerPort"]
            assert own == f"{name}-{job['name']}-0-{i}.{name}:{port}"
            clusters.add(resolver.cluster_spec())
            places.add((job["name"], i))
    (cluster,) = clusters
    assert places == {(job, i) for job in cluster.jobs for i in cluster.task_indices(job)}


def test_what_pods_run_is_what_the_program_takes() -> None:
    found = manifests()
    jobs = [found["Job"], *(job["template"] for job in found["JobSet"]["spec"]["replicatedJobs"])]
    for job in jobs:
        pod, command = job["spec"]["template"]["spec"], container(job)["command"]
        assert command[:2] == ["python", "train.py"]
        options = dict(zip(command[2::2], command[3::2], strict=True))
        assert all(f'"{option}", required=True' in PROGRAM for option in options)
        mounts = {m["mountPath"]: m["name"] for m in container(job)["volumeMounts"]}
        assert set(options.values()) == set(mounts)
        volumes = {v["name"]: v for v in pod["volumes"]}
        assert set(mounts.values()) == set(volumes)
        assert volumes["certs"]["secret"]["defaultMode"] == 0o400  # a key is for its owner alone


@pytest.mark.slow
def test_the_program_trains(tmp_path: Path) -> None:
    """A server and two workers, with certificates, each told its task as by the JobSet."""
    pytest.importorskip("cryptography")
    certs.main([str(tmp_path / "certs"), "--names", "node"])
    program, folder = tmp_path / "train.py", tmp_path / "checkpoints"
    program.write_text(PROGRAM)
    folder.mkdir()
    ps, *workers = free_addresses(3)
    cluster = ClusterSpec({"ps": [ps], "worker": workers}).as_dict()
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS")}
    running = []
    try:
        for job, task in (("ps", 0), ("worker", 0), ("worker", 1)):
            told = {"cluster": cluster, "task": {"type": job, "index": task}}
            running.append(
                subprocess.Popen(
                    [
                        *(sys.executable, str(program), "--steps", "30"),
                        *("--folder", str(folder), "--certs", str(tmp_path / "certs")),
                    ],
                    env={**environment, "PYTHONPATH": str(ROOT), "TF_CONFIG": json.dumps(told)},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            )
        for task, worker in enumerate(running[1:]):
            output, _ = worker.communicate(timeout=60)
            assert worker.returncode == 0, output
            (loss,) = re.findall(rf"worker {task}: the loss is (\S+)", output)
            assert float(loss) < 0.05
        assert running[0].poll() is None  # the server serves until it is ended
    finally:
        for process in running:
            process.kill()
            process.communicate()

#!/usr/bin/env python3
"""Never: lost OOM knowledge. A container runs out of memory; 5 s later the recommender is killed with -9 and everything that could
remind its successor (the workload, its pods, their statuses) is gone. What remains is what was written in those 5 s."""
from never import *

LIMIT = 256 << 20

cluster = Cluster()
cluster.vpa("web")
# The first whole pass is far away: an OOM waits neither for it nor for metrics.
run = Run(cluster, "--controllers", "recommender", "--recommender-interval", "1h").await_start()
run.await_ready()
resources = {"requests": {"memory": "200Mi"}, "limits": {"memory": "256Mi"}}
cluster.deploy("web", "10m,300Mi", resources, replicas=1)


def has_died():
    for pod in cluster.items(PODS):
        for status in pod.get("status", {}).get("containerStatuses", []):
            for state in (status.get("state", {}), status.get("lastState", {})):
                if state.get("terminated", {}).get("reason") == "OOMKilled":
                    return True


check("a container is killed for want of memory", soon(30 * SLOW, has_died, 0.05))
time.sleep(5)
run.kill()
checkpoint = cluster.get(CHECKPOINTS + "/web-app") or {"metadata": {}}
check("5 s later it is written", "tandem.dev/oom" in checkpoint["metadata"].get("annotations", {}), json.dumps(checkpoint) + run.tail())

cluster.delete(DEPLOYMENTS + "/web")
check("its pods are gone", soon(20 * SLOW, lambda: not cluster.items(PODS)))
cluster.deploy("web", "10m,20Mi", {"requests": {"memory": "200Mi"}}, replicas=1)
run = Run(cluster, "--controllers", "recommender", "--recommender-interval", "1s").await_start()


def knows():
    return bytes_of(cluster.target("web", "memory")) > LIMIT


# 20Mi are used now: only who knows of the OOM asks for more than there was.
check("its successor asks for more than what was too little", soon(60 * SLOW, knows), str(cluster.target("web", "memory")) + run.tail())
time.sleep(3)
check("and goes on doing so", knows(), cluster.target("web", "memory"))
finish()

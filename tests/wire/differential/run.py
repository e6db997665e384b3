"""The same stories on a real control plane and on the local cluster, compared. Usage: run.py REAL_KUBECONFIG OUR_KUBECONFIG
[STORY...]. Ends with the line "differential: N sequences equal, M differences listed"."""

import concurrent.futures
import sys
import time

import stories
from planes import Plane
from story import Story

AT_ONCE = 8

# Known differences, as in the table of docs/local-cluster.md: what is replaced before two texts are compared.
LISTED = [
    # Claims are bound at once to volumes that are not there, and nothing protects them.
    [(r'"finalizers": \["kubernetes.io/pvc-protection"\], ', ""), (r', "volumeName": "pvc-[^"]*"', ""),
     (r'"accessModes": \["ReadWriteOnce"\], "capacity": {"storage": "1Gi"}, "phase": "Bound"', '"phase": "Pending"'),
     (r"^event PersistentVolumeClaim \S+ Normal FailedBinding.*$", "")],
]
FIRST = ("cron-job-replace", "cron-job")  # they wait for full minutes


def make_nodes(planes):
    for name, pool in stories.NODES.items():
        room = {"cpu": "64", "memory": "256Gi", "pods": "2000"}
        node = {"kind": "Node", "apiVersion": "v1",
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "pool": pool, "kwok": "yes"}},
                "status": {"capacity": room, "allocatable": room}}
        for plane in planes:
            code, answer = plane.call("POST", "/api/v1/nodes", node)
            if code != 201:
                raise AssertionError(f"{plane.name}: node {name}: {code} {answer}")
    for plane in planes:
        end = time.monotonic() + 30
        for name in stories.NODES:
            while True:
                node = plane.call("GET", f"/api/v1/nodes/{name}")[1]
                is_ready = any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", []))
                if is_ready and not node["spec"].get("taints"):
                    break
                if time.monotonic() > end:
                    raise AssertionError(f"{plane.name}: {name} is not ready: {node['spec']} {node['status']}")
                time.sleep(0.1)


def tell(planes, name, script):
    story = Story(planes, name, LISTED)
    story.tell(script)
    return story


def main():
    planes = Plane("real", sys.argv[1]), Plane("ours", sys.argv[2])
    chosen = {name: script for name, script in stories.STORIES.items() if not sys.argv[3:] or name in sys.argv[3:]}
    make_nodes(planes)
    for plane in planes:
        plane.start()
    equal, met, is_good = 0, set(), True
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        names = sorted(chosen, key=lambda name: name not in FIRST)
        told = [pool.submit(tell, planes, name, chosen[name]) for name in names]
        for future in told:
            story = future.result()
            equal += story.equal
            met |= story.met
            verdict = "FAIL" if story.differences else "ok  "
            is_good = is_good and not story.differences
            print(f"{verdict} {story.name}: {story.equal} equal in {story.seconds:.0f} s", flush=True)
            for text in story.differences:
                print("    " + text, flush=True)
    print(f"differential: {equal} sequences equal, {len(met)} differences listed")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
